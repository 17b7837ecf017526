//! Field values: many readings in one call, each with its own return code, time and latency.

use std::{ffi::c_int, thread, time::Duration};

use nvml_wrapper_sys::bindings::{
    nvmlDevice_t, nvmlFieldValue_t, nvmlReturn_enum_NVML_ERROR_INVALID_ARGUMENT as INVALID_ARGUMENT,
    nvmlReturn_enum_NVML_SUCCESS as SUCCESS, nvmlReturn_t,
};

use super::fields;
use crate::{
    call::{CallTarget, answer_for},
    scenario::Trouble,
};

/// The reported latency in microseconds of a field without one in the scenario.
const FIELD_MICROS: u64 = 3;

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetFieldValues(
    device: nvmlDevice_t,
    count: c_int,
    values: *mut nvmlFieldValue_t,
) -> nvmlReturn_t {
    answer_for("nvmlDeviceGetFieldValues", device, |target| {
        if values.is_null() || count < 1 {
            return Err(INVALID_ARGUMENT);
        }
        let mut micros = 0;
        for place in 0..count as usize {
            // SAFETY: by NVML's contract the pointer points to `count` values, each with its field and scope.
            micros += fill(target, unsafe { &mut *values.add(place) });
        }
        if micros > 0 {
            thread::sleep(Duration::from_micros(micros));
        }
        Ok(())
    })
}

/// Fills in one field; returns its latency in the scenario in microseconds, or 0.
fn fill(target: &CallTarget, value: &mut nvmlFieldValue_t) -> u64 {
    let id = fields::id_before_580_82(&target.world.scenario.driver.version, value.fieldId);
    let place = Some(usize::from(target.handle.gpu));
    let mut faults = target.world.faults(Trouble::Answers, target.second, place);
    let fault = faults.find(|fault| fault.fields.as_ref().is_some_and(|fields| fields.contains(&id)));
    let read = match fault {
        Some(fault) => Err(fault.code()),
        None => fields::read(target, id, value.scopeId),
    };
    value.timestamp = target.world.clock.stamp_micros(target.second) as i64;
    let micros = target.world.scenario.latency.fields_us.get(&id).copied();
    value.latencyUsec = micros.unwrap_or(FIELD_MICROS) as i64;
    match read {
        Ok((kind, number)) => {
            value.nvmlReturn = SUCCESS;
            value.valueType = kind;
            value.value = number;
        }
        Err(code) => value.nvmlReturn = code,
    }
    micros.unwrap_or_default()
}
