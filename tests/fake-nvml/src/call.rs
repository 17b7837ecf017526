//! The steps before a call is answered: it is recorded, delayed, hangs, or fails as in the scenario.

mod codes;
mod spent;

use std::{thread, time::Duration};

use nvml_wrapper_sys::bindings::{
    nvmlDevice_t, nvmlReturn_enum_NVML_ERROR_DRIVER_NOT_LOADED as DRIVER_NOT_LOADED,
    nvmlReturn_enum_NVML_ERROR_GPU_IS_LOST as GPU_IS_LOST,
    nvmlReturn_enum_NVML_ERROR_INVALID_ARGUMENT as INVALID_ARGUMENT,
    nvmlReturn_enum_NVML_ERROR_NOT_SUPPORTED as NOT_SUPPORTED,
    nvmlReturn_enum_NVML_ERROR_UNINITIALIZED as UNINITIALIZED, nvmlReturn_enum_NVML_ERROR_UNKNOWN as UNKNOWN,
    nvmlReturn_t,
};

pub(crate) use self::codes::{ERRORS, code_of};
use crate::{
    clock,
    gpu::{Gpu, Mig},
    handle::Handle,
    scenario::Trouble,
    world::World,
};

/// The result of a call: only its return code; the values are written through the caller's pointers.
pub(crate) type Reply = Result<(), nvmlReturn_t>;

/// Answers a call that has no GPU argument.
pub(crate) fn answer(call: &str, body: impl FnOnce(&'static World, f64) -> Reply) -> nvmlReturn_t {
    spent::count(|| {
        enter(call, None).and_then(|(world, second)| {
            connected(world, second)?;
            body(world, second)
        })
    })
}

/// Answers a call that needs no connection: init and shutdown.
pub(crate) fn answer_unconnected(
    call: &str,
    body: impl FnOnce(&'static World, f64) -> Reply,
) -> nvmlReturn_t {
    spent::count(|| enter(call, None).and_then(|(world, second)| body(world, second)))
}

/// Answers a call that looks up a GPU. The faults of that GPU apply to the call, because a driver that initializes a GPU with
/// its first handle fails there.
pub(crate) fn answer_lookup(
    call: &str,
    find: impl Fn(&World, f64) -> Option<usize>,
    body: impl FnOnce(&'static World, f64) -> Reply,
) -> nvmlReturn_t {
    spent::count(|| {
        let place = World::get().and_then(|world| find(world, world.clock.now()));
        enter(call, place).and_then(|(world, second)| {
            connected(world, second)?;
            body(world, second)
        })
    })
}

/// Answers a call about a GPU or a MIG instance.
pub(crate) fn answer_for(
    call: &str,
    device: nvmlDevice_t,
    body: impl FnOnce(&CallTarget) -> Reply,
) -> nvmlReturn_t {
    let handle = Handle::from_device(device);
    let place = handle.map(|handle| usize::from(handle.gpu));
    spent::count(|| {
        enter(call, place).and_then(|(world, second)| {
            connected(world, second)?;
            body(&CallTarget::new(world, second, handle.ok_or(INVALID_ARGUMENT)?)?)
        })
    })
}

/// The target of a device handle at the moment of a call.
pub(crate) struct CallTarget {
    pub(crate) world: &'static World,
    pub(crate) second: f64,
    pub(crate) handle: Handle,
    pub(crate) gpu: &'static Gpu,
    pub(crate) mig: Option<&'static Mig>,
}

impl CallTarget {
    /// Resolves a handle; returns an error if it is invalid or the GPU is lost.
    pub(crate) fn new(world: &'static World, second: f64, handle: Handle) -> Result<Self, nvmlReturn_t> {
        let place = usize::from(handle.gpu);
        let gpu = world.scenario.gpus.get(place).ok_or(INVALID_ARGUMENT)?;
        if handle.generation != world.connection().generation {
            return Err(INVALID_ARGUMENT);
        }
        if world.is(Trouble::Lost, second, place) || world.is(Trouble::Absent, second, place) {
            return Err(GPU_IS_LOST);
        }
        let mig = match handle.mig {
            Some(mig) => {
                let mig = gpu.mig.get(usize::from(mig)).ok_or(INVALID_ARGUMENT)?;
                Some(mig)
                    .filter(|mig| mig.exists(second))
                    .ok_or(INVALID_ARGUMENT)?
                    .into()
            }
            None => None,
        };
        Ok(Self {
            world,
            second,
            handle,
            gpu,
            mig,
        })
    }

    /// Returns a reading at the time of the call; not supported if the scenario has none.
    pub(crate) fn read(&self, name: &str) -> Result<f64, nvmlReturn_t> {
        let readings = self.mig.map_or(&self.gpu.readings, |mig| &mig.readings);
        let function = readings.function(name).ok_or(NOT_SUPPORTED)?;
        Ok(function.at(self.second))
    }

    /// Returns the reading of one part: `nvlink.3.rx_kib`, or `nvlink.rx_kib` if that part has none of its own.
    pub(crate) fn read_part(&self, of: &str, part: u32, name: &str) -> Result<f64, nvmlReturn_t> {
        let own = self.read(&format!("{of}.{part}.{name}"));
        own.or_else(|_| self.read(&format!("{of}.{name}")))
    }

    /// Returns a string property.
    pub(crate) fn fact(&self, name: &str) -> Result<&'static str, nvmlReturn_t> {
        let facts = self.mig.map_or(&self.gpu.facts, |mig| &mig.facts);
        facts.get(name).map(String::as_str).ok_or(NOT_SUPPORTED)
    }

    /// Returns the GPU itself, or an error for a MIG instance, which does not support the call.
    pub(crate) fn full_gpu(&self) -> Result<&'static Gpu, nvmlReturn_t> {
        match self.mig {
            None => Ok(self.gpu),
            Some(_) => Err(NOT_SUPPORTED),
        }
    }
}

/// Applies the recording, hangs, latency and faults of a call; returns the second at which it is answered.
fn enter(call: &str, gpu: Option<usize>) -> Result<(&'static World, f64), nvmlReturn_t> {
    let world = World::get().ok_or(UNKNOWN)?;
    world.record(world.clock.now(), call, gpu);
    let second = hang(world, call, gpu);
    let latency = &world.scenario.latency;
    let micros = latency
        .calls_us
        .get(call)
        .copied()
        .unwrap_or(latency.every_call_us);
    if micros > 0 {
        thread::sleep(Duration::from_micros(micros));
    }
    if world.is_unloaded(second) && call != "nvmlShutdown" {
        return Err(DRIVER_NOT_LOADED);
    }
    let mut answers = world.faults(Trouble::Answers, second, gpu);
    match answers.find(|fault| fault.fields.is_none() && fault.affects_call(call)) {
        Some(fault) => Err(fault.code()),
        None => Ok((world, second)),
    }
}

/// Waits while the driver hangs, and returns the second at which the call continues.
fn hang(world: &World, call: &str, gpu: Option<usize>) -> f64 {
    loop {
        let second = world.clock.now();
        let mut hanging = world.faults(Trouble::Hangs, second, gpu);
        match hanging.find(|fault| fault.affects_call(call)) {
            Some(_) if second >= clock::END => return second,
            Some(fault) => {
                let end = fault.until.unwrap_or(clock::END);
                world.clock.wait_until(end.min(clock::END));
            }
            None => return second,
        }
    }
}

fn connected(world: &World, second: f64) -> Reply {
    let connection = world.connection();
    if connection.inits == 0 || world.reloaded_since(connection.since, second) {
        return Err(UNINITIALIZED);
    }
    Ok(())
}
