//! Event sets: created, registered, waited on.

use std::{
    ffi::{c_uint, c_ulonglong},
    ptr,
    time::Duration,
};

use nvml_wrapper_sys::bindings::{
    nvmlDevice_t, nvmlEventData_t, nvmlEventSet_t, nvmlReturn_enum_NVML_ERROR_GPU_IS_LOST as GPU_IS_LOST,
    nvmlReturn_enum_NVML_ERROR_INVALID_ARGUMENT as INVALID_ARGUMENT,
    nvmlReturn_enum_NVML_ERROR_TIMEOUT as TIMEOUT, nvmlReturn_enum_NVML_ERROR_UNINITIALIZED as UNINITIALIZED,
    nvmlReturn_t,
};

use crate::{
    call::{answer, answer_for},
    handle::Handle,
    out::put,
    scenario::{Event, Trouble},
    world::World,
};

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlEventSetCreate(set: *mut nvmlEventSet_t) -> nvmlReturn_t {
    answer("nvmlEventSetCreate", |world, _| {
        let number = world.events.create();
        // SAFETY: by NVML's contract the pointer is null or points to a handle.
        unsafe { put(set, ptr::without_provenance_mut(number)) }
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn nvmlEventSetFree(set: nvmlEventSet_t) -> nvmlReturn_t {
    answer("nvmlEventSetFree", |world, _| {
        if world.events.free(set.addr()) {
            Ok(())
        } else {
            Err(INVALID_ARGUMENT)
        }
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetSupportedEventTypes(
    device: nvmlDevice_t,
    kinds: *mut c_ulonglong,
) -> nvmlReturn_t {
    answer_for("nvmlDeviceGetSupportedEventTypes", device, |target| {
        // SAFETY: by NVML's contract the pointer is null or points to a number.
        unsafe { put(kinds, target.read("event_types")? as c_ulonglong) }
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn nvmlDeviceRegisterEvents(
    device: nvmlDevice_t,
    kinds: c_ulonglong,
    set: nvmlEventSet_t,
) -> nvmlReturn_t {
    answer_for("nvmlDeviceRegisterEvents", device, |target| {
        if kinds & !(target.read("event_types")? as u64) != 0 {
            return Err(INVALID_ARGUMENT);
        }
        let gpu = usize::from(target.handle.gpu);
        let sets = &target.world.events;
        let found = sets.with(set.addr(), |set| set.register(gpu, kinds, target.second));
        found.ok_or(INVALID_ARGUMENT)
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlEventSetWait_v2(
    set: nvmlEventSet_t,
    data: *mut nvmlEventData_t,
    timeout_ms: c_uint,
) -> nvmlReturn_t {
    answer("nvmlEventSetWait_v2", |world, _| {
        let timeout = Duration::from_millis(timeout_ms.into());
        let next_change_after = |second| world.scenario.next_change(second);
        let news = world
            .clock
            .wait_for(timeout, next_change_after, || look(world, set.addr()));
        let news = news.ok_or(TIMEOUT)??;
        // SAFETY: by NVML's contract the pointer is null or points to the structure.
        unsafe { put(data, news) }
    })
}

/// Returns the next result of a set: an event, or an error if the set is invalid or a GPU is lost; `None` if there is no event.
fn look(world: &World, number: usize) -> Option<Result<nvmlEventData_t, nvmlReturn_t>> {
    let second = world.clock.now();
    if world.reloaded_since(world.connection().since, second) {
        return Some(Err(UNINITIALIZED));
    }
    let next = world.events.with(number, |set| {
        let is_delivered = |event: &Event| event.gpu_instance.is_none() || !is_restricted(world, event.gpu);
        let event = set.next(&world.scenario.events, is_delivered, second);
        let lost = set.gpus().any(|gpu| world.is(Trouble::Lost, second, gpu));
        (event, lost)
    });
    match next {
        None => Some(Err(INVALID_ARGUMENT)),
        Some((Some(event), _)) => Some(Ok(event_data(world, event))),
        Some((None, true)) => Some(Err(GPU_IS_LOST)),
        Some((None, false)) => None,
    }
}

/// Returns whether the caller is an unprivileged user on a partitioned GPU: such a user gets no events of single instances.
fn is_restricted(world: &World, gpu: usize) -> bool {
    let gpu = world.scenario.gpus.get(gpu);
    gpu.is_some_and(|gpu| gpu.readings.function("mig.restricted").is_some())
}

fn event_data(world: &World, event: &Event) -> nvmlEventData_t {
    let handle = Handle {
        generation: world.connection().generation,
        gpu: event.gpu as u16,
        mig: None,
    };
    nvmlEventData_t {
        device: handle.to_device(),
        eventType: event.kind,
        eventData: event.data,
        gpuInstanceId: event.gpu_instance.unwrap_or(u32::MAX),
        computeInstanceId: event.compute_instance.unwrap_or(u32::MAX),
    }
}
