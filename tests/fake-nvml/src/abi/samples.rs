//! The driver's sample buffers: rings of values with their timestamps.

use std::ffi::{c_uint, c_ulonglong};

use nvml_wrapper_sys::bindings::{
    nvmlDevice_t, nvmlReturn_enum_NVML_ERROR_INVALID_ARGUMENT as INVALID_ARGUMENT,
    nvmlReturn_enum_NVML_ERROR_NOT_FOUND as NOT_FOUND,
    nvmlReturn_enum_NVML_ERROR_NOT_SUPPORTED as NOT_SUPPORTED, nvmlReturn_t, nvmlSample_t,
    nvmlValueType_enum_NVML_VALUE_TYPE_UNSIGNED_INT as UNSIGNED, nvmlValueType_t,
};

use super::fields;
use crate::{
    call::{CallTarget, answer_for},
    out::{put, put_list},
};

/// The readings that NVML keeps samples of, in the order of the buffer ids.
const BUFFERS: [&str; 10] = [
    "power.instant_mw",
    "utilization.gpu_percent",
    "utilization.memory_percent",
    "utilization.encoder_percent",
    "utilization.decoder_percent",
    "clock.sm_mhz",
    "clock.memory_mhz",
    "power.module.instant_mw",
    "utilization.jpeg_percent",
    "utilization.ofa_percent",
];

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetSamples(
    device: nvmlDevice_t,
    buffer: c_uint,
    last_seen: c_ulonglong,
    kind: *mut nvmlValueType_t,
    count: *mut c_uint,
    samples: *mut nvmlSample_t,
) -> nvmlReturn_t {
    answer_for("nvmlDeviceGetSamples", device, |target| {
        let reading = BUFFERS.get(buffer as usize).ok_or(INVALID_ARGUMENT)?;
        let newer = newer_than(target, reading, last_seen)?;
        if samples.is_null() {
            // Without an output buffer, NVML returns the capacity of its own buffer.
            // SAFETY: by NVML's contract the pointer is null or points to a number.
            return unsafe { put(count, target.gpu.samples.kept as c_uint) };
        }
        if newer.is_empty() {
            return Err(NOT_FOUND);
        }
        // SAFETY: by NVML's contract the pointers are null or point to values of their types, and `count` to the capacity.
        unsafe {
            put(kind, UNSIGNED)?;
            put_list(samples, count, &newer)
        }
    })
}

fn newer_than(target: &CallTarget, reading: &str, last_seen: u64) -> Result<Vec<nvmlSample_t>, nvmlReturn_t> {
    let gpu = target.full_gpu()?;
    let function = gpu.readings.function(reading).ok_or(NOT_SUPPORTED)?;
    let ring = gpu.samples;
    let newest = (target.second / ring.every).floor() as u64;
    let oldest = (newest + 1).saturating_sub(ring.kept as u64);
    let taken = (oldest..=newest).map(|number| number as f64 * ring.every);
    let samples = taken.map(|second| nvmlSample_t {
        timeStamp: target.world.clock.stamp_micros(second),
        sampleValue: fields::value(UNSIGNED, function.at(second)),
    });
    Ok(samples.filter(|sample| sample.timeStamp > last_seen).collect())
}
