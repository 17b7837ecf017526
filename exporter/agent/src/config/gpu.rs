//! The GPUs of this machine: whether and how they are watched.

use std::{path::PathBuf, time::Duration};

use pulsetrain_gpu::{GpuConfig, GpuSemconv};
use serde::Deserialize;

use super::{
    Spanned,
    quantity::Time,
    section::{Setting, Shown, section},
};

/// The name of the source that watches the GPUs.
pub(crate) const GPUS: &str = "gpu";

section! {
    /// The GPUs of this machine: NVIDIA's through the library of their driver, AMD's through the files of theirs. Where there is
    /// neither, one line reports it and everything else continues.
    pub(crate) struct GpuSection {
        /// Whether they are watched.
        enabled: bool = true,
        /// How often what changes from moment to moment is read.
        interval: Spanned<Time> = Spanned::without_location(Time::secs(1)),
        /// How often the energy counters are read, each until it changes: the energy of short steps needs it. Longer
        /// than interval, they are read every interval.
        energy_interval: Spanned<Time> = Spanned::without_location(Time(Duration::from_millis(100))),
        /// The names: gpu for ours (gpu.*), hw for the standard ones (hw.*) where there are such, both for both.
        semconv: GpuNames = GpuNames::Gpu,
        /// Whether traffic and errors of NVLinks of the fifth generation (Blackwell) are read by link; else the driver adds up the
        /// links of a GPU. With hw and both they are by link in any case.
        each_nvlink: bool = false,
        /// The library of the NVIDIA driver. Where it is not given: libnvidia-ml.so.1 as the system finds it.
        library: Option<String> = None,
        /// Where the kernel lists AMD GPUs; in a container, where the host's /sys is mounted.
        sysfs: String = "/sys".to_owned(),
        /// Whether the driver is released by itself, once, when a GPU needs a reset and no process uses it.
        release_for_reset: bool = true,
        /// How long the driver is released then, and by POST /gpu/release on the address of health.
        release_time: Spanned<Time> = Spanned::without_location(Time::secs(300)),
        /// Whether memory and utilization are read by process.
        processes: bool = true,
        /// Whether the GPUs' own performance counters are read: activity of multiprocessors, tensor cores, memory. They
        /// cannot be shared with some profilers.
        profiling: bool = true,
    }
}

/// Under which names the GPUs' telemetry goes out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum GpuNames {
    Gpu,
    Hw,
    Both,
}

impl GpuSection {
    /// The settings as the source takes them.
    pub(crate) fn settings(&self) -> GpuConfig {
        GpuConfig {
            library: self.library.as_ref().map(PathBuf::from),
            sysfs: PathBuf::from(&self.sysfs),
            interval: self.interval.0,
            energy_interval: self.energy_interval.0,
            semconv: match self.semconv {
                GpuNames::Gpu => GpuSemconv::Gpu,
                GpuNames::Hw => GpuSemconv::Hw,
                GpuNames::Both => GpuSemconv::Both,
            },
            each_nvlink: self.each_nvlink,
            release_for_reset: self.release_for_reset.then_some(self.release_time.0),
            processes: self.processes,
            profiling: self.profiling,
            ..GpuConfig::default()
        }
    }
}

impl Setting for GpuNames {
    fn shown(&self) -> Shown {
        let name = match self {
            Self::Gpu => "gpu",
            Self::Hw => "hw",
            Self::Both => "both",
        };
        Shown::Scalar(name.to_owned())
    }
}
