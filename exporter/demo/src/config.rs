//! The configuration of the simulated job, and its errors.

use std::{fmt, str::FromStr, time::Duration};

use pulsetrain_otlp::UnixNanos;

use crate::faults::{FAULT_SPACING_STEPS, Fault};

/// The limit of ranks: those of 64 hosts.
const MAX_RANKS: u32 = 512;
/// The shortest and the longest duration of a step.
const MIN_STEP_TIME: Duration = Duration::from_millis(5);
const MAX_STEP_TIME: Duration = Duration::from_secs(600);

/// The kind of training that is simulated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Workload {
    /// Supervised fine-tuning of a model with mixture of experts.
    #[default]
    Sft,
    /// Reinforcement learning: rollouts on inference engines, training, weight sync.
    Rl,
}

/// The simulated job.
#[derive(Clone, Debug)]
pub struct DemoConfig {
    /// The kind of training.
    pub workload: Workload,
    /// The number of ranks, each with one GPU; eight of them are on one host.
    pub ranks: u32,
    /// The number of optimizer steps.
    pub steps: u64,
    /// The seed of all noise.
    pub seed: u64,
    /// The start time.
    pub start_unix_nanos: UnixNanos,
    /// The duration of an undisturbed step. All other durations of the job are multiples of it.
    pub step_time: Duration,
    /// The interval of GPU readings.
    pub gpu_interval: Duration,
    /// The faults.
    pub faults: Vec<Fault>,
}

impl Default for DemoConfig {
    fn default() -> Self {
        Self {
            workload: Workload::default(),
            ranks: 4,
            steps: 10_000,
            seed: 0,
            // 2026-01-01T00:00:00Z: an arbitrary time for jobs that do not run live.
            start_unix_nanos: UnixNanos(1_767_225_600_000_000_000),
            step_time: Duration::from_millis(500),
            gpu_interval: Duration::from_secs(1),
            faults: Vec::new(),
        }
    }
}

/// An error of the configuration.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// The number of ranks.
    #[error("cannot simulate a job of {0} ranks; give 1 to {MAX_RANKS} ranks")]
    Ranks(u32),
    /// The number of steps.
    #[error("cannot simulate a job of 0 steps; give at least 1 step")]
    Steps,
    /// The duration of a step.
    #[error(
        "cannot simulate a step of {0:?}: a step takes {MIN_STEP_TIME:?} to {MAX_STEP_TIME:?}; choose another rate"
    )]
    StepTime(Duration),
    /// The interval of the GPUs.
    #[error("cannot read GPUs every {0:?}; give an interval of at least 10 ms")]
    GpuInterval(Duration),
    /// A rank that the job does not have.
    #[error("unknown rank {rank} of the fault {fault}; give one of the ranks 0 to {last}")]
    NoSuchRank {
        /// The fault.
        fault: &'static str,
        /// The rank of the fault.
        rank: u32,
        /// The last rank.
        last: u32,
    },
    /// A fault that needs other ranks.
    #[error(
        "the fault {0} needs at least 2 ranks, because it is a difference between ranks; give more ranks"
    )]
    TooFewRanks(&'static str),
    /// A fault of the other workload.
    #[error("the fault {fault} needs the workload {needed}; choose that workload or another fault")]
    OtherWorkload {
        /// The fault.
        fault: &'static str,
        /// The workload that the fault needs.
        needed: Workload,
    },
    /// A fault that begins after the end.
    #[error(
        "the fault {fault} begins at step {step}, but the job ends after step {last}; give an earlier step or more steps"
    )]
    AfterTheEnd {
        /// The fault.
        fault: &'static str,
        /// The step at which it is to begin.
        step: u64,
        /// The last step.
        last: u64,
    },
}

impl DemoConfig {
    /// Checks that such a job can be simulated.
    ///
    /// # Errors
    /// The first error, with advice.
    pub fn check(&self) -> Result<(), ConfigError> {
        if !(1..=MAX_RANKS).contains(&self.ranks) {
            return Err(ConfigError::Ranks(self.ranks));
        }
        if self.steps == 0 {
            return Err(ConfigError::Steps);
        }
        if !(MIN_STEP_TIME..=MAX_STEP_TIME).contains(&self.step_time) {
            return Err(ConfigError::StepTime(self.step_time));
        }
        if self.gpu_interval < Duration::from_millis(10) {
            return Err(ConfigError::GpuInterval(self.gpu_interval));
        }
        let steps = self.fault_steps();
        self.faults
            .iter()
            .zip(steps)
            .try_for_each(|(fault, step)| self.check_fault(fault, step))
    }

    /// Returns the step at which each fault begins: faults without their own step follow one after another.
    pub(crate) fn fault_steps(&self) -> Vec<u64> {
        let mut without = 0;
        let step = |fault: &Fault| {
            fault.step.unwrap_or_else(|| {
                let step = fault.row.step + without * FAULT_SPACING_STEPS;
                without += 1;
                step
            })
        };
        self.faults.iter().map(step).collect()
    }

    fn check_fault(&self, fault: &Fault, step: u64) -> Result<(), ConfigError> {
        let row = fault.row;
        if let Some(needed) = row.workload.filter(|needed| *needed != self.workload) {
            return Err(ConfigError::OtherWorkload {
                fault: row.name,
                needed,
            });
        }
        if row.compares_ranks && self.ranks < 2 {
            return Err(ConfigError::TooFewRanks(row.name));
        }
        if let Some(rank) = fault.rank.filter(|rank| *rank >= self.ranks) {
            return Err(ConfigError::NoSuchRank {
                fault: row.name,
                rank,
                last: self.ranks - 1,
            });
        }
        if step > self.steps {
            return Err(ConfigError::AfterTheEnd {
                fault: row.name,
                step,
                last: self.steps,
            });
        }
        Ok(())
    }
}

impl Workload {
    /// Returns its name on the command line.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Sft => "sft",
            Self::Rl => "rl",
        }
    }
}

impl fmt::Display for Workload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Workload {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        [Self::Sft, Self::Rl]
            .into_iter()
            .find(|workload| workload.as_str() == text)
            .ok_or_else(|| "unknown workload; use sft or rl".to_owned())
    }
}
