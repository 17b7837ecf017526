//! The driver of a loaded library: its scenario, its clock and its connection.

use std::{
    fs::{File, OpenOptions},
    io::{self, Write},
    sync::{Mutex, MutexGuard, OnceLock, PoisonError},
};

use crate::{
    clock::Clock,
    events::EventSets,
    place::path_next_to_library,
    scenario::{Fault, Scenario, Trouble},
};

/// A driver.
#[derive(Debug)]
pub(crate) struct World {
    pub(crate) scenario: Scenario,
    pub(crate) clock: Clock,
    pub(crate) events: EventSets,
    connection: Mutex<Connection>,
    calls: Option<File>,
}

/// The connection of the clients. NVML counts its inits; the last shutdown closes the connection.
#[derive(Debug, Default)]
pub(crate) struct Connection {
    pub(crate) inits: u32,
    /// The number of first inits; handles of earlier generations are invalid.
    pub(crate) generation: u32,
    /// The second of the first init.
    pub(crate) since: f64,
    /// A file that is open while a client is connected, like `/dev/nvidia*` in NVML: other processes use it to detect clients.
    pub(crate) device: Option<File>,
}

impl World {
    /// Returns the driver of this library, created from its scenario on first use; `None` if the scenario cannot be read.
    pub(crate) fn get() -> Option<&'static Self> {
        static WORLD: OnceLock<Option<World>> = OnceLock::new();
        let world = WORLD.get_or_init(|| match Self::open() {
            Ok(world) => Some(world),
            Err(error) => {
                // The library has no other way to report this error; if the write fails, nothing can be done.
                let _ = writeln!(io::stderr(), "fake NVML: {error}");
                None
            }
        });
        world.as_ref()
    }

    fn open() -> Result<Self, String> {
        let scenario = Scenario::read(&path_next_to_library("scenario.yaml", "FAKE_NVML_SCENARIO"))?;
        let clock_file = path_next_to_library("clock", "FAKE_NVML_CLOCK");
        let clock = Clock::open(&clock_file).map_err(|error| format!("{}: {error}", clock_file.display()))?;
        let calls = scenario.record_calls.then(record).transpose()?;
        Ok(Self {
            scenario,
            clock,
            events: EventSets::default(),
            connection: Mutex::default(),
            calls,
        })
    }

    /// Locks the connection.
    pub(crate) fn connection(&self) -> MutexGuard<'_, Connection> {
        self.connection.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the faults of one kind that hold for a GPU at a second.
    pub(crate) fn faults(
        &self,
        what: Trouble,
        second: f64,
        gpu: Option<usize>,
    ) -> impl Iterator<Item = &Fault> {
        let faults = self.scenario.faults.iter();
        faults.filter(move |fault| fault.what == what && fault.holds(second) && fault.affects_gpu(gpu))
    }

    /// Returns whether a forced unload of the driver happened after the second at which a client connected.
    pub(crate) fn reloaded_since(&self, since: f64, second: f64) -> bool {
        self.reloads()
            .any(|fault| fault.forced && since < fault.from && fault.from <= second)
    }

    /// Returns whether the driver is unloaded at a second. A client that connected before the unload prevents it, unless it is
    /// forced.
    pub(crate) fn is_unloaded(&self, second: f64) -> bool {
        let connection = self.connection();
        let is_held = |from: f64| connection.inits > 0 && connection.since < from;
        self.reloads()
            .any(|fault| fault.holds(second) && (fault.forced || !is_held(fault.from)))
    }

    fn reloads(&self) -> impl Iterator<Item = &Fault> {
        let faults = self.scenario.faults.iter();
        faults.filter(|fault| fault.what == Trouble::DriverReload)
    }

    /// Returns the GPUs that are present, by their index in the scenario, in the order of their NVML indices.
    pub(crate) fn present(&self, second: f64) -> Vec<usize> {
        let places = 0..self.scenario.gpus.len();
        places
            .filter(|place| !self.is(Trouble::Absent, second, *place))
            .collect()
    }

    /// Returns whether a fault of this kind holds for a GPU at a second.
    pub(crate) fn is(&self, what: Trouble, second: f64, gpu: usize) -> bool {
        self.faults(what, second, Some(gpu)).next().is_some()
    }

    /// Records a call if the scenario enables that: a line with the second, the call and the index of the GPU.
    pub(crate) fn record(&self, second: f64, call: &str, gpu: Option<usize>) {
        let Some(mut calls) = self.calls.as_ref() else {
            return;
        };
        let line = match gpu {
            Some(gpu) => format!("{second:.6} {call} {gpu}\n"),
            None => format!("{second:.6} {call}\n"),
        };
        // One write is one line even if threads call at the same time; a full disk is an error of the test.
        let _ = calls.write_all(line.as_bytes());
    }
}

fn record() -> Result<File, String> {
    let path = path_next_to_library("calls", "FAKE_NVML_CALLS");
    let file = OpenOptions::new().create(true).append(true).open(&path);
    file.map_err(|error| format!("{}: {error}", path.display()))
}
