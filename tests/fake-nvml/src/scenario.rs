//! A scenario file: the GPUs, their values over time, and the faults with their times.
//!
//! `scenarios/README.md` documents the file format. The file is read once, on the first use of the library.

mod layers;

use std::path::Path;

use nvml_wrapper_sys::bindings::{nvmlReturn_enum_NVML_ERROR_UNKNOWN as UNKNOWN, nvmlReturn_t};
use serde::Deserialize;
use serde_json::Value;

use crate::{call::code_of, events::XID, gpu::Gpu};

/// A scenario.
#[derive(Debug)]
pub(crate) struct Scenario {
    pub(crate) driver: Driver,
    pub(crate) gpus: Vec<Gpu>,
    pub(crate) faults: Vec<Fault>,
    pub(crate) events: Vec<Event>,
    pub(crate) latency: Latency,
    pub(crate) record_calls: bool,
}

/// The versions of the driver.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Driver {
    /// From 580.82 on, the field ids from 251 to 273 are those of the newer header.
    pub(crate) version: String,
    pub(crate) nvml: String,
    /// The version in CUDA's encoding: 12080 is 12.8.
    pub(crate) cuda: i32,
    /// Whether confidential computing is on; by default the system does not support it.
    pub(crate) confidential_compute: Option<bool>,
}

/// A fault that holds for a time.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Fault {
    pub(crate) what: Trouble,
    /// The second at which it starts.
    #[serde(default)]
    pub(crate) from: f64,
    /// The second at which it ends; never by default.
    pub(crate) until: Option<f64>,
    /// The GPUs that are affected, by their index in the scenario; all by default.
    pub(crate) gpus: Option<Vec<usize>>,
    /// The affected calls; all by default.
    pub(crate) calls: Option<Vec<String>>,
    /// The affected field ids (of the header before 580.82), inside a call for field values that itself succeeds.
    pub(crate) fields: Option<Vec<u32>>,
    /// The error that the call returns: `NOT_SUPPORTED` and so on, as in NVML's header.
    pub(crate) error: Option<String>,
    /// Whether the driver is unloaded although clients are connected; otherwise the kernel refuses to unload it.
    #[serde(default)]
    pub(crate) forced: bool,
}

/// The kind of a fault.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Trouble {
    /// The call does not return until the fault ends.
    Hangs,
    /// The GPU has fallen off the bus.
    Lost,
    /// The GPU is not there: it is not counted and has no index.
    Absent,
    /// The driver is unloaded and, at the end, loaded again. The unload fails while a client is connected, unless it is forced:
    /// then connected clients must connect again.
    DriverReload,
    /// The call returns an error.
    Answers,
}

/// Events of one kind that a GPU raises.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Event {
    /// The second of the first event.
    pub(crate) at: f64,
    pub(crate) gpu: usize,
    #[serde(default = "one")]
    pub(crate) count: u64,
    /// Seconds between two events.
    #[serde(default)]
    pub(crate) every: f64,
    /// The bit of the event type in NVML's header; 8 is a critical XID error.
    #[serde(default = "xid_bit", rename = "type")]
    pub(crate) kind: u64,
    /// The code of an XID error.
    pub(crate) data: u64,
    /// The MIG instance that raised it.
    pub(crate) gpu_instance: Option<u32>,
    pub(crate) compute_instance: Option<u32>,
}

/// The latencies of calls, in microseconds of real time.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Latency {
    #[serde(default)]
    pub(crate) every_call_us: u64,
    #[serde(default)]
    pub(crate) calls_us: std::collections::HashMap<String, u64>,
    /// The latencies by field id (of the header before 580.82), inside a call for field values.
    #[serde(default)]
    pub(crate) fields_us: std::collections::HashMap<u32, u64>,
}

impl Scenario {
    /// Reads a scenario and the files that it extends; an error names the file and the reason.
    pub(crate) fn read(path: &Path) -> Result<Self, String> {
        let mut value = layers::read(path, 0)?;
        layers::without_nulls(&mut value);
        Self::from_value(value).map_err(|error| format!("{}: {error}", path.display()))
    }

    /// Returns the first second after `second` at which an event occurs, or a fault starts or ends; infinity if nothing does.
    pub(crate) fn next_change(&self, second: f64) -> f64 {
        let events = self.events.iter().filter_map(|event| event.next_after(second));
        let faults = self
            .faults
            .iter()
            .flat_map(|fault| [Some(fault.from), fault.until]);
        let changes = events.chain(faults.flatten()).filter(|change| *change > second);
        changes.fold(f64::INFINITY, f64::min)
    }

    fn from_value(value: Value) -> Result<Self, String> {
        let file: File = serde_json::from_value(value).map_err(|error| error.to_string())?;
        let gpus = (0..file.gpus.count)
            .map(|place| layers::gpu(&file.gpus.all, file.gpus.each.get(&place.to_string()), place))
            .map(|gpu| gpu.and_then(|gpu| Gpu::from_value(gpu).map_err(|error| format!("a GPU: {error}"))))
            .collect::<Result<_, _>>()?;
        file.faults.iter().try_for_each(Fault::check)?;
        Ok(Self {
            driver: file.driver,
            gpus,
            faults: file.faults,
            events: file.events,
            latency: file.latency,
            record_calls: file.record_calls,
        })
    }
}

impl Fault {
    /// Returns whether the fault holds at a second.
    pub(crate) fn holds(&self, second: f64) -> bool {
        self.from <= second && self.until.is_none_or(|until| second < until)
    }

    /// Returns whether the fault affects a GPU; one without GPUs also affects calls without a GPU.
    pub(crate) fn affects_gpu(&self, gpu: Option<usize>) -> bool {
        self.gpus
            .as_ref()
            .is_none_or(|gpus| gpu.is_some_and(|gpu| gpus.contains(&gpu)))
    }

    /// Returns the error code of the fault.
    pub(crate) fn code(&self) -> nvmlReturn_t {
        self.error.as_deref().and_then(code_of).unwrap_or(UNKNOWN)
    }

    fn check(&self) -> Result<(), String> {
        match &self.error {
            Some(error) if code_of(error).is_none() => Err(format!("a fault: NVML has no error {error:?}")),
            None if self.what == Trouble::Answers => Err("a fault that answers needs its error".to_owned()),
            _ => Ok(()),
        }
    }

    /// Returns whether the fault affects a call.
    pub(crate) fn affects_call(&self, call: &str) -> bool {
        self.calls
            .as_ref()
            .is_none_or(|calls| calls.iter().any(|befallen| befallen == call))
    }
}

/// The file format, after the merge with the files that it extends.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    driver: Driver,
    gpus: Gpus,
    #[serde(default)]
    faults: Vec<Fault>,
    #[serde(default)]
    events: Vec<Event>,
    #[serde(default)]
    latency: Latency,
    #[serde(default)]
    record_calls: bool,
    /// The symbols that an older driver lacks, for the code that copies the library; a library cannot hide its own symbols.
    #[serde(default, rename = "missing_symbols")]
    _missing_symbols: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Gpus {
    count: usize,
    all: Value,
    #[serde(default)]
    each: serde_json::Map<String, Value>,
}

fn one() -> u64 {
    1
}

fn xid_bit() -> u64 {
    XID
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn next_change_is_the_next_event_or_fault_boundary() {
        let scenario = Scenario::from_value(serde_json::json!({
            "driver": { "version": "580.82.07", "nvml": "13.580.82.07", "cuda": 13000 },
            "gpus": { "count": 0, "all": {} },
            "faults": [{ "what": "lost", "from": 4.0, "until": 5.0 }],
            "events": [{ "at": 1.0, "gpu": 0, "count": 3, "every": 0.5, "data": 79 }],
        }))
        .unwrap();
        let mut changes = Vec::new();
        let mut second = 0.0;
        while second < f64::INFINITY {
            second = scenario.next_change(second);
            changes.push(second);
        }
        assert_eq!(changes, [1.0, 1.5, 2.0, 4.0, 5.0, f64::INFINITY]);
    }
}
