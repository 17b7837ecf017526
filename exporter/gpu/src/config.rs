//! The configuration of the GPU source: the metrics, their intervals and their names.

use std::{path::PathBuf, time::Duration};

use crate::ImexConfig;

/// The names under which the telemetry of the GPUs is sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum GpuSemconv {
    /// Pulsetrain's own names: `gpu.*`.
    #[default]
    Gpu,
    /// OpenTelemetry's names: `hw.*`, and `gpu.*` only for metrics without a standard name.
    Hw,
    /// Both names.
    Both,
}

/// The configuration of the GPU source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GpuConfig {
    /// The path of the NVML library; `None` to search the system for `libnvidia-ml.so.1`.
    pub library: Option<PathBuf>,
    /// The interval of passes, which read the values that change all the time.
    pub interval: Duration,
    /// The interval of searches for the next change of the energy counter; if it is longer than `interval`, the counter is read
    /// in passes only.
    pub energy_interval: Duration,
    /// The mount point of sysfs, where the kernel lists AMD GPUs.
    pub sysfs: PathBuf,
    /// The names under which the telemetry is sent.
    pub semconv: GpuSemconv,
    /// Whether memory and utilization are read per process.
    pub processes: bool,
    /// Whether counters of NVLinks of the fifth generation are read per link; otherwise the driver sums the links of a GPU. For
    /// the standard names they are always read per link, because a link is a port.
    pub each_nvlink: bool,
    /// Whether the GPUs' own performance counters are read (GPM: SM activity, occupancy, pipes).
    pub profiling: bool,
    /// The delay before the first retry of a query without an answer. It doubles with each retry, up to an hour.
    pub retry: Duration,
    /// The time for which the driver is released when a GPU that no process uses needs a reset; `None` if it is never released.
    pub release_for_reset: Option<Duration>,
    /// Whether and how the state of IMEX is read.
    pub imex: ImexConfig,
    /// Resource attributes of the host, such as `host.name`.
    pub resource: Vec<(String, String)>,
}

impl Default for GpuConfig {
    fn default() -> Self {
        Self {
            library: None,
            sysfs: PathBuf::from("/sys"),
            interval: Duration::from_secs(1),
            energy_interval: Duration::from_millis(100),
            semconv: GpuSemconv::Gpu,
            processes: true,
            each_nvlink: false,
            profiling: true,
            retry: Duration::from_secs(60),
            release_for_reset: Some(Duration::from_secs(300)),
            imex: ImexConfig::default(),
            resource: Vec::new(),
        }
    }
}

impl GpuConfig {
    /// Returns whether counters of NVLinks of the fifth generation are read per link.
    pub(crate) fn reads_each_nvlink(&self) -> bool {
        self.each_nvlink || self.semconv != GpuSemconv::Gpu
    }

    /// Returns the age from which the last readings are stale: three intervals, and long enough that a busy machine is not
    /// mistaken for a hanging one.
    pub fn stale_after(&self) -> Duration {
        self.interval.saturating_mul(3).max(Duration::from_secs(5))
    }
}
