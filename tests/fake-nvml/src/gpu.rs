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
    /// Addresses and seconds of retired pages, by cause.
    #[serde(default)]
    pub(crate) retired_pages: Vec<RetiredPage>,
    /// The interval and the capacity of the driver's sample buffers.
    #[serde(default)]
    pub(crate) samples: Samples,
}

/// Readings over time, by name. The GPU does not support a reading that is not in the map.
#[derive(Debug, Default, Deserialize)]
#[serde(transparent)]
pub(crate) struct Readings(HashMap<String, Function>);

/// A MIG instance: a part of a GPU that is a device of its own.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Mig {
    pub(crate) gpu_instance: u32,
    pub(crate) compute_instance: u32,
    /// The index, which does not change when other instances are created or destroyed; by default its position in the list.
    pub(crate) slot: Option<u32>,
    pub(crate) facts: HashMap<String, String>,
    pub(crate) readings: Readings,
    /// The second at which it is created.
    #[serde(default)]
    pub(crate) from: f64,
    /// The second at which it is destroyed.
    pub(crate) until: Option<f64>,
}

/// One process on a GPU.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Process {
    #[serde(default)]
    pid: u32,
    /// The file in the library's folder that contains the pid, instead of `pid`; there is no process while the file is missing.
    pid_file: Option<String>,
    #[serde(default)]
    pub(crate) kind: ProcessKind,
    /// Whether it is in a PID namespace that the caller does not see: no list has it, and its utilization has the host's pid.
    #[serde(default)]
    pub(crate) elsewhere: bool,
    /// `None` if the driver does not report it.
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
    /// The peak memory, for accounting; by default the current memory.
    pub(crate) memory_max_bytes: Option<Function>,
}

/// The process list that a process is in.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ProcessKind {
    #[default]
    Compute,
    Graphics,
    Mps,
}

/// A retired page.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RetiredPage {
    /// The cause: 0 after several corrected errors, 1 after an uncorrected one.
    pub(crate) cause: u32,
    pub(crate) address: u64,
    /// The second at which it is retired.
    #[serde(default)]
    pub(crate) at: f64,
}

/// A ring of samples: their interval in seconds, and the capacity.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Samples {
    pub(crate) every: f64,
    pub(crate) kept: usize,
}

impl Gpu {
    /// Parses a GPU of a scenario.
    pub(crate) fn from_value(value: Value) -> Result<Self, String> {
        serde_json::from_value(value).map_err(|error| error.to_string())
    }
}

impl Readings {
    /// Returns the function of a reading.
    pub(crate) fn function(&self, name: &str) -> Option<&Function> {
        self.0.get(name)
    }
}

impl Mig {
    /// Returns whether it exists at a second.
    pub(crate) fn exists(&self, second: f64) -> bool {
        self.from <= second && self.until.is_none_or(|until| second < until)
    }
}

impl Process {
    /// Returns the pid, or `None` while there is no such process.
    pub(crate) fn pid(&self) -> Option<u32> {
        let Some(file) = &self.pid_file else {
            return Some(self.pid);
        };
        let text = fs::read_to_string(in_own_folder(file)).ok()?;
        text.trim().parse().ok()
    }

    /// Returns whether it runs at a second.
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
