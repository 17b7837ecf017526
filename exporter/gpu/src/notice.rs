//! Notices about the GPUs for the operator: one line each, when something changes.

use std::fmt;

use pulsetrain_pipeline::Problem;

use crate::{DriverState, Gpu, GpuTrouble, MissingMetric, Reason, inventory::list_missing};

/// A change in the observation of the GPUs.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum GpuNotice {
    /// There is no driver; GPUs are not observed until there is one.
    NoDriver(Problem),
    /// These GPUs are observed from now on.
    Observed {
        /// The version of the driver.
        driver: String,
        /// The number of observed GPUs.
        gpus: usize,
        /// The models, each once.
        models: String,
    },
    /// Some GPUs do not provide all of their telemetry.
    Unavailable {
        /// The indexes of the GPUs. GPUs that lack the same metrics share a notice.
        gpus: Vec<u32>,
        /// The reason.
        reason: Reason,
        /// The metrics, with the meaning of their absence.
        metrics: Vec<MissingMetric>,
    },
    /// A GPU cannot be read.
    Trouble {
        /// The GPU.
        gpu: u32,
        /// Its UUID.
        uuid: String,
        /// The reason.
        trouble: GpuTrouble,
    },
    /// A GPU answers again.
    Back {
        /// The GPU.
        gpu: u32,
        /// Its UUID.
        uuid: String,
    },
    /// The driver has not answered for too long; its series have ended.
    Silent {
        /// The time without an answer in seconds.
        secs: u64,
    },
    /// The driver answers again.
    Answers,
    /// The state of IMEX cannot be read. The notice is sent once, until the state can be read again.
    Imex {
        /// The reason.
        why: String,
    },
}

impl fmt::Display for GpuNotice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoDriver(problem) => write!(f, "GPUs are not observed: {problem}"),
            Self::Observed { driver, gpus, models } => {
                let s = if *gpus == 1 { "" } else { "s" };
                write!(f, "observing {gpus} GPU{s} ({models}, driver {driver})")
            }
            Self::Unavailable {
                gpus,
                reason,
                metrics,
            } => {
                let (s, does) = if gpus.len() == 1 {
                    ("", "does")
                } else {
                    ("s", "do")
                };
                let gpus: Vec<String> = gpus.iter().map(u32::to_string).collect();
                let (gpus, metrics) = (gpus.join(", "), list_missing(*reason, metrics));
                write!(f, "GPU{s} {gpus} {does} not give {metrics}")
            }
            Self::Trouble { gpu, uuid, trouble } => {
                write!(f, "GPU {gpu} ({uuid}) {trouble}: {}", trouble.advice())
            }
            Self::Back { gpu, uuid } => write!(f, "GPU {gpu} ({uuid}) answers again"),
            Self::Silent { secs } => write!(
                f,
                "the GPU driver has not answered for {secs} s: its series have ended and resume when it answers"
            ),
            Self::Answers => f.write_str("the GPU driver answers again"),
            Self::Imex { why } => write!(
                f,
                "the state of IMEX is not known: {why}; check the IMEX service, or set gpu.imex to off"
            ),
        }
    }
}

impl GpuNotice {
    /// Returns the notice for a driver and its GPUs when they are first seen, or `None` if the driver has not answered.
    pub(super) fn new(driver: &DriverState, gpus: &[Gpu]) -> Option<Self> {
        match driver {
            DriverState::Absent(problem) => Some(Self::NoDriver(problem.clone())),
            DriverState::Present(driver) => {
                let ours = gpus.iter().filter(|gpu| gpu.is_ours());
                let named = ours.clone().filter(|gpu| !gpu.name.is_empty());
                let mut models: Vec<&str> = named.map(|gpu| gpu.name.as_str()).collect();
                models.sort_unstable();
                models.dedup();
                Some(Self::Observed {
                    driver: driver.version.clone(),
                    gpus: ours.count(),
                    models: models.join(", "),
                })
            }
            DriverState::Unknown | DriverState::Silent => None,
        }
    }
}
