//! What of the GPUs is observed, how often, and under which names.

use std::{path::PathBuf, time::Duration};

use crate::ImexConfig;

/// Under which names the GPUs' telemetry goes out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum GpuSemconv {
    /// Our own: `gpu.*`.
    #[default]
    Gpu,
    /// OpenTelemetry's: `hw.*`, and of ours only what has no standard name.
    Hw,
    /// Both side by side.
    Both,
}

/// How the GPUs are observed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GpuConfig {
    /// NVML's library; `libnvidia-ml.so.1` as the system finds it where it is not given.
    pub library: Option<PathBuf>,
    /// How often what changes from moment to moment is read.
    pub interval: Duration,
    /// How often the energy counter is read until it changes; in passes only if it is longer than `interval`.
    pub energy_interval: Duration,
    /// Where the kernel lists AMD GPUs.
    pub sysfs: PathBuf,
    /// Under which names it goes out.
    pub semconv: GpuSemconv,
    /// Whether memory and utilization are read by process.
    pub processes: bool,
    /// Whether counters of NVLinks of the fifth generation are read by link; else the driver adds up the links of a GPU. The
    /// standard names have them by link in any case, because a link is a port.
    pub each_nvlink: bool,
    /// Whether the GPUs' own performance counters are read (GPM: SM activity, occupancy, pipes).
    pub profiling: bool,
    /// How long until what has no answer is asked again, the first time; from then on ever later, up to an hour.
    pub retry: Duration,
    /// How long the driver is released when a GPU that no process uses needs a reset; `None` if it is not.
    pub release_for_reset: Option<Duration>,
    /// Whether and how the state of IMEX is read.
    pub imex: ImexConfig,
    /// Resource attributes of the host: `host.name` ...
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
    /// Whether counters of NVLinks of the fifth generation are read by link.
    pub(crate) fn reads_each_nvlink(&self) -> bool {
        self.each_nvlink || self.semconv != GpuSemconv::Gpu
    }

    /// The age from which the last readings are stale: three intervals, and long
    /// enough that a busy machine is not taken for a hanging one.
    pub fn stale_after(&self) -> Duration {
        self.interval.saturating_mul(3).max(Duration::from_secs(5))
    }
}
