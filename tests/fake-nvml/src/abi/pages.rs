//! Memory that is no longer used: retired pages of older GPUs, remapped rows of newer ones.

use std::ffi::{c_uint, c_ulonglong};

use nvml_wrapper_sys::bindings::{
    nvmlDevice_t, nvmlReturn_enum_NVML_ERROR_INSUFFICIENT_SIZE as INSUFFICIENT_SIZE, nvmlReturn_t,
    nvmlRowRemapperHistogramValues_t,
};

use crate::{
    call::{CallTarget, answer_for},
    out::{put, put_list},
};

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetRetiredPages(
    device: nvmlDevice_t,
    cause: c_uint,
    count: *mut c_uint,
    addresses: *mut c_ulonglong,
) -> nvmlReturn_t {
    answer_for("nvmlDeviceGetRetiredPages", device, |target| {
        let (found, _) = retired(target, cause)?;
        // SAFETY: by NVML's contract `count` points to the capacity of `addresses`.
        unsafe { put_list(addresses, count, &found) }
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetRetiredPages_v2(
    device: nvmlDevice_t,
    cause: c_uint,
    count: *mut c_uint,
    addresses: *mut c_ulonglong,
    stamps: *mut c_ulonglong,
) -> nvmlReturn_t {
    answer_for("nvmlDeviceGetRetiredPages_v2", device, |target| {
        let (found, times) = retired(target, cause)?;
        // SAFETY: by NVML's contract `count` points to the capacity of `addresses` and of `stamps`.
        unsafe {
            put_list(addresses, count, &found)?;
            if stamps.is_null() && !times.is_empty() {
                return Err(INSUFFICIENT_SIZE);
            }
            let mut room = times.len() as c_uint;
            put_list(stamps, &mut room, &times)
        }
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetRemappedRows(
    device: nvmlDevice_t,
    corrected: *mut c_uint,
    uncorrected: *mut c_uint,
    pending: *mut c_uint,
    failed: *mut c_uint,
) -> nvmlReturn_t {
    answer_for("nvmlDeviceGetRemappedRows", device, |target| {
        let read = |name: &str| {
            target
                .read(&format!("remapped_rows.{name}"))
                .map(|count| count as c_uint)
        };
        // SAFETY: by NVML's contract the pointers are null or point to numbers.
        unsafe {
            put(corrected, read("corrected")?)?;
            put(uncorrected, read("uncorrected")?)?;
            put(pending, read("pending")?)?;
            put(failed, read("failure")?)
        }
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetRowRemapperHistogram(
    device: nvmlDevice_t,
    values: *mut nvmlRowRemapperHistogramValues_t,
) -> nvmlReturn_t {
    answer_for("nvmlDeviceGetRowRemapperHistogram", device, |target| {
        let read = |name: &str| {
            target
                .read(&format!("remapped_rows.banks.{name}"))
                .map(|count| count as c_uint)
        };
        let answer = nvmlRowRemapperHistogramValues_t {
            max: read("max")?,
            high: read("high")?,
            partial: read("partial")?,
            low: read("low")?,
            none: read("none")?,
        };
        // SAFETY: by NVML's contract the pointer is null or points to the structure.
        unsafe { put(values, answer) }
    })
}

/// Returns the addresses and the Unix seconds of the pages retired for a cause; not supported by a GPU that remaps rows.
fn retired(target: &CallTarget, cause: c_uint) -> Result<(Vec<u64>, Vec<u64>), nvmlReturn_t> {
    target.read("retired_pages.pending")?;
    let pages = target.gpu.retired_pages.iter();
    let found = pages.filter(|page| page.cause == cause && page.at <= target.second);
    Ok(found
        .map(|page| (page.address, target.world.clock.stamp_micros(page.at) / 1_000_000))
        .unzip())
}
