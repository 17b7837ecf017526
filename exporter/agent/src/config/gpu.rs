//! The section `gpu`: whether and how the GPUs of this machine are watched.

use std::{fmt, path::PathBuf, time::Duration};

use pulsetrain_gpu::{GpuConfig, GpuSemconv, ImexConfig, ImexProgram};
use serde::{
    Deserialize, Deserializer,
    de::{Error, Visitor},
};

use super::{
    Spanned,
    quantity::Time,
    section::{Setting, Shown, section},
};

/// The name of the source that watches the GPUs.
pub(crate) const GPUS: &str = "gpu";

section! {
    /// The GPUs of this machine: NVIDIA GPUs through NVML, AMD GPUs through sysfs. Without GPUs, one log line reports
    /// it and everything else continues.
    pub(crate) struct GpuSection {
        /// Whether the GPUs are watched.
        enabled: bool = true,
        /// The interval of readings of fast-changing values.
        interval: Spanned<Time> = Spanned::without_location(Time::secs(1)),
        /// The poll interval of the energy counters, each until it changes. The energy of short steps needs a short
        /// interval. A value above interval has the effect of interval.
        energy_interval: Spanned<Time> = Spanned::without_location(Time(Duration::from_millis(100))),
        /// The metric names: gpu for ours (gpu.*), hw for the standard names (hw.*) where they exist, or both.
        semconv: GpuNames = GpuNames::Gpu,
        /// Whether traffic and errors of fifth-generation NVLinks (Blackwell) are read by link; otherwise the driver sums
        /// the links of a GPU. With hw and both they are always read by link.
        each_nvlink: bool = false,
        /// The library of the NVIDIA driver. Default: libnvidia-ml.so.1 in the library path of the system.
        library: Option<String> = None,
        /// The sysfs folder for AMD GPUs; in a container, the mount of the host's /sys.
        sysfs: String = "/sys".to_owned(),
        /// Whether the driver is released once automatically when a GPU needs a reset and no process uses it.
        release_for_reset: bool = true,
        /// The duration of this release, and of POST /gpu/release on the health address.
        release_time: Spanned<Time> = Spanned::without_location(Time::secs(300)),
        /// Whether memory and utilization are read per process.
        processes: bool = true,
        /// Whether the GPU performance counters are read: activity of multiprocessors, tensor cores, memory. Some profilers
        /// cannot share them.
        profiling: bool = true,
        /// The program that reports the state of IMEX (NVLink domains of several hosts): auto for nvidia-imex-ctl where
        /// its packages install it, off, or an absolute path. A program that does not end within 5 s is killed.
        imex: Imex = Imex(ImexProgram::Auto),
        /// The interval of these reports.
        imex_interval: Spanned<Time> = Spanned::without_location(Time::secs(60)),
    }
}

/// The names of the GPU metrics.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum GpuNames {
    Gpu,
    Hw,
    Both,
}

/// The program that reports the state of IMEX.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Imex(ImexProgram);

impl GpuSection {
    /// Returns the settings of the source.
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
            imex: ImexConfig {
                program: self.imex.0.clone(),
                interval: self.imex_interval.0,
                ..ImexConfig::default()
            },
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

impl<'de> Deserialize<'de> for Imex {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ImexVisitor)
    }
}

struct ImexVisitor;

impl Visitor<'_> for ImexVisitor {
    type Value = Imex;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("auto, off, or an absolute path")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Imex, E> {
        match text {
            "auto" => Ok(Imex(ImexProgram::Auto)),
            "off" => Ok(Imex(ImexProgram::Off)),
            path if path.starts_with('/') => Ok(Imex(ImexProgram::At(PathBuf::from(path)))),
            other => Err(E::custom(format!(
                "imex is {other:?}; write auto, off, or the absolute path of nvidia-imex-ctl"
            ))),
        }
    }

    /// YAML 1.1 reads `off` as `false`.
    fn visit_bool<E: Error>(self, is_on: bool) -> Result<Imex, E> {
        Ok(Imex(if is_on {
            ImexProgram::Auto
        } else {
            ImexProgram::Off
        }))
    }
}

impl Setting for Imex {
    fn shown(&self) -> Shown {
        Shown::Scalar(match &self.0 {
            ImexProgram::Auto => "auto".to_owned(),
            ImexProgram::Off => "off".to_owned(),
            ImexProgram::At(path) => path.display().to_string(),
        })
    }
}
