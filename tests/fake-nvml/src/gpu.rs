//! One GPU of a scenario: its facts, its readings over time, its processes and its MIG instances.

use std::{collections::HashMap, fs};

use serde::Deserialize;
use serde_json::Value;

use crate::{function::Function, place::in_own_folder};

/// One GPU.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Gpu {
    pub(crate) facts: HashMap<String, String>,
    pub(crate) readings: Readings,
    #[serde(default)]
    pub(crate) processes: Vec<Process>,
    #[serde(default)]
    pub(crate) mig: Vec<Mig>,
    /// Addresses and wall seconds of retired pages, by cause.
    #[serde(default)]
    pub(crate) retired_pages: Vec<RetiredPage>,
    /// How the driver's sample buffers are filled.
    #[serde(default)]
    pub(crate) samples: Samples,
}

/// Numbers over time, by name. What is not there, this GPU does not support.
#[derive(Debug, Default, Deserialize)]
#[serde(transparent)]
pub(crate) struct Readings(HashMap<String, Function>);

/// One part of a GPU that is a device of its own.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Mig {
    pub(crate) gpu_instance: u32,
    pub(crate) compute_instance: u32,
    /// The index it keeps while others come and go; its place in the list by default.
    pub(crate) slot: Option<u32>,
    pub(crate) facts: HashMap<String, String>,
    pub(crate) readings: Readings,
    /// The second it is made at.
    #[serde(default)]
    pub(crate) from: f64,
    /// The second it is destroyed at.
    pub(crate) until: Option<f64>,
}

/// One process on a GPU.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Process {
    #[serde(default)]
    pid: u32,
    /// The file next to the library that has the number of the process in the place of `pid`; without it there is no process.
    pid_file: Option<String>,
    #[serde(default)]
    pub(crate) kind: ProcessKind,
    /// Whether it is in a PID namespace that the caller does not see: no list has it, and its utilization has the host's number.
    #[serde(default)]
    pub(crate) elsewhere: bool,
    /// `None` where the driver does not report it.
    pub(crate) memory_bytes: Option<Function>,
    pub(crate) sm_percent: Option<Function>,
    pub(crate) memory_percent: Option<Function>,
    pub(crate) encoder_percent: Option<Function>,
    pub(crate) decoder_percent: Option<Function>,
    pub(crate) gpu_instance: Option<u32>,
    pub(crate) compute_instance: Option<u32>,
    #[serde(default)]
    pub(crate) from: f64,
    pub(crate) until: Option<f64>,
    /// The highest memory it had, for accounting; by default the memory that it has.
    pub(crate) memory_max_bytes: Option<Function>,
}

/// In which list of processes it is.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ProcessKind {
    #[default]
    Compute,
    Graphics,
    Mps,
}

/// One page that is out of use.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RetiredPage {
    /// 0 after several corrected errors, 1 after an uncorrected one.
    pub(crate) cause: u32,
    pub(crate) address: u64,
    /// The second from which it is retired.
    #[serde(default)]
    pub(crate) at: f64,
}

/// A ring of samples: their interval, and how many are kept.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Samples {
    pub(crate) every: f64,
    pub(crate) kept: usize,
}

impl Gpu {
    /// A GPU from the scenario.
    pub(crate) fn of(value: Value) -> Result<Self, String> {
        serde_json::from_value(value).map_err(|error| error.to_string())
    }
}

impl Readings {
    /// The function of a reading.
    pub(crate) fn function(&self, name: &str) -> Option<&Function> {
        self.0.get(name)
    }
}

impl Mig {
    /// Whether it exists at a second.
    pub(crate) fn exists(&self, second: f64) -> bool {
        self.from <= second && self.until.is_none_or(|until| second < until)
    }
}

impl Process {
    /// The number of the process; `None` while there is no such process.
    pub(crate) fn pid(&self) -> Option<u32> {
        let Some(file) = &self.pid_file else {
            return Some(self.pid);
        };
        let text = fs::read_to_string(in_own_folder(file)).ok()?;
        text.trim().parse().ok()
    }

    /// Whether it runs at a second.
    pub(crate) fn runs(&self, second: f64) -> bool {
        let runs = self.from <= second && self.until.is_none_or(|until| second < until);
        runs && self.pid().is_some()
    }
}

impl Default for Samples {
    fn default() -> Self {
        Self {
            every: 0.1,
            kept: 120,
        }
    }
}
