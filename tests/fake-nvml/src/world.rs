//! The one driver that a loaded library is: its scenario, its clock and who is connected to it.

use std::{
    fs::{File, OpenOptions},
    io::{self, Write},
    sync::{Mutex, MutexGuard, OnceLock, PoisonError},
};

use crate::{
    clock::Clock,
    events::EventSets,
    place::beside_the_library,
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

/// Who is connected. NVML counts its inits, and the last shutdown ends what they began.
#[derive(Debug, Default)]
pub(crate) struct Connection {
    pub(crate) inits: u32,
    /// How often a first init has been; handles of an earlier one are void.
    pub(crate) generation: u32,
    /// The second of the first init.
    pub(crate) since: f64,
    /// Held open while a client is connected, as NVML holds `/dev/nvidia*`: other processes see by it that the GPUs are in use.
    pub(crate) device: Option<File>,
}

impl World {
    /// The driver of this library, from its scenario at the first use; none where there is no scenario that can be read.
    pub(crate) fn get() -> Option<&'static Self> {
        static WORLD: OnceLock<Option<World>> = OnceLock::new();
        let world = WORLD.get_or_init(|| match Self::open() {
            Ok(world) => Some(world),
            Err(error) => {
                // A library without an answer has only this to report an error; where that fails nothing can be done.
                let _ = writeln!(io::stderr(), "fake NVML: {error}");
                None
            }
        });
        world.as_ref()
    }

    fn open() -> Result<Self, String> {
        let scenario = Scenario::read(&beside_the_library("scenario.yaml", "FAKE_NVML_SCENARIO"))?;
        let clock_file = beside_the_library("clock", "FAKE_NVML_CLOCK");
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

    /// The connection, to be looked at or changed.
    pub(crate) fn connection(&self) -> MutexGuard<'_, Connection> {
        self.connection.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The faults of one kind that hold at a second for a GPU.
    pub(crate) fn faults(
        &self,
        what: Trouble,
        second: f64,
        gpu: Option<usize>,
    ) -> impl Iterator<Item = &Fault> {
        let faults = self.scenario.faults.iter();
        faults.filter(move |fault| fault.what == what && fault.holds(second) && fault.befalls(gpu))
    }

    /// Whether the driver was unloaded after a second at which a client connected, which only a forced unload does.
    pub(crate) fn reloaded_since(&self, since: f64, second: f64) -> bool {
        self.reloads()
            .any(|fault| fault.forced && since < fault.from && fault.from <= second)
    }

    /// Whether the driver is unloaded at a second. A client that connected before the unload holds it.
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

    /// The GPUs that are there, by their places in the scenario, in the order of their indices.
    pub(crate) fn present(&self, second: f64) -> Vec<usize> {
        let places = 0..self.scenario.gpus.len();
        places
            .filter(|place| !self.is(Trouble::Absent, second, *place))
            .collect()
    }

    /// Whether a GPU is lost or absent at a second.
    pub(crate) fn is(&self, what: Trouble, second: f64, gpu: usize) -> bool {
        self.faults(what, second, Some(gpu)).next().is_some()
    }

    /// Writes a line on a call where the scenario asks for that: the second, the call and the GPU's place.
    pub(crate) fn record(&self, second: f64, call: &str, gpu: Option<usize>) {
        let Some(mut calls) = self.calls.as_ref() else {
            return;
        };
        let line = match gpu {
            Some(gpu) => format!("{second:.6} {call} {gpu}\n"),
            None => format!("{second:.6} {call}\n"),
        };
        // One write is one line even where threads call at once; a full disk is the test's own fault.
        let _ = calls.write_all(line.as_bytes());
    }
}

fn record() -> Result<File, String> {
    let path = beside_the_library("calls", "FAKE_NVML_CALLS");
    let file = OpenOptions::new().create(true).append(true).open(&path);
    file.map_err(|error| format!("{}: {error}", path.display()))
}
