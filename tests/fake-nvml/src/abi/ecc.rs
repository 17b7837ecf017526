//! Memory errors: counted by kind, by period and by location.

use std::ffi::{c_uint, c_ulonglong};

use nvml_wrapper_sys::bindings::{
    nvmlDevice_t, nvmlEccErrorCounts_t, nvmlEccSramErrorStatus_t,
    nvmlReturn_enum_NVML_ERROR_INVALID_ARGUMENT as INVALID_ARGUMENT, nvmlReturn_t,
};

use crate::{
    call::answer_for,
    out::{get_versioned, put},
};

const KINDS: [&str; 2] = ["corrected", "uncorrected"];
const SINCE: [&str; 2] = ["volatile", "aggregate"];
const PLACES: [&str; 8] = [
    "l1_cache",
    "l2_cache",
    "dram",
    "register_file",
    "texture",
    "texture_shm",
    "cbu",
    "sram",
];

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetTotalEccErrors(
    device: nvmlDevice_t,
    kind: c_uint,
    since: c_uint,
    count: *mut c_ulonglong,
) -> nvmlReturn_t {
    answer_for("nvmlDeviceGetTotalEccErrors", device, |target| {
        // SAFETY: by NVML's contract the pointer is null or points to a number.
        unsafe { put(count, target.read(&name(kind, since, None)?)? as u64) }
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetMemoryErrorCounter(
    device: nvmlDevice_t,
    kind: c_uint,
    since: c_uint,
    place: c_uint,
    count: *mut c_ulonglong,
) -> nvmlReturn_t {
    answer_for("nvmlDeviceGetMemoryErrorCounter", device, |target| {
        // SAFETY: by NVML's contract the pointer is null or points to a number.
        unsafe { put(count, target.read(&name(kind, since, Some(place))?)? as u64) }
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetDetailedEccErrors(
    device: nvmlDevice_t,
    kind: c_uint,
    since: c_uint,
    counts: *mut nvmlEccErrorCounts_t,
) -> nvmlReturn_t {
    answer_for("nvmlDeviceGetDetailedEccErrors", device, |target| {
        let read = |place: c_uint| -> Result<u64, nvmlReturn_t> {
            Ok(target.read(&name(kind, since, Some(place))?)? as u64)
        };
        let answer = nvmlEccErrorCounts_t {
            l1Cache: read(0)?,
            l2Cache: read(1)?,
            deviceMemory: read(2)?,
            registerFile: read(3)?,
        };
        // SAFETY: by NVML's contract the pointer is null or points to the structure.
        unsafe { put(counts, answer) }
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetSramEccErrorStatus(
    device: nvmlDevice_t,
    status: *mut nvmlEccSramErrorStatus_t,
) -> nvmlReturn_t {
    answer_for("nvmlDeviceGetSramEccErrorStatus", device, |target| {
        let read = |name: &str| target.read(&format!("ecc.sram.{name}")).map(|count| count as u64);
        let answer = nvmlEccSramErrorStatus_t {
            // SAFETY: by NVML's contract the pointer is null or points to the structure with its version.
            version: unsafe { get_versioned(status, 1) }?.version,
            aggregateUncParity: read("aggregate.parity")?,
            aggregateUncSecDed: read("aggregate.secded")?,
            aggregateCor: read("aggregate.corrected")?,
            volatileUncParity: read("volatile.parity")?,
            volatileUncSecDed: read("volatile.secded")?,
            volatileCor: read("volatile.corrected")?,
            aggregateUncBucketL2: read("bucket.l2")?,
            aggregateUncBucketSm: read("bucket.sm")?,
            aggregateUncBucketPcie: read("bucket.pcie")?,
            aggregateUncBucketMcu: read("bucket.mcu")?,
            aggregateUncBucketOther: read("bucket.other")?,
            bThresholdExceeded: read("threshold_exceeded")? as c_uint,
        };
        // SAFETY: as above.
        unsafe { put(status, answer) }
    })
}

/// Returns the name of a reading: `ecc.corrected.volatile`, or `ecc.corrected.volatile.dram` for one location.
fn name(kind: c_uint, since: c_uint, place: Option<c_uint>) -> Result<String, nvmlReturn_t> {
    let part =
        |names: &[&'static str], index: c_uint| names.get(index as usize).copied().ok_or(INVALID_ARGUMENT);
    let total = format!("ecc.{}.{}", part(&KINDS, kind)?, part(&SINCE, since)?);
    match place {
        Some(place) => Ok(format!("{total}.{}", part(&PLACES, place)?)),
        None => Ok(total),
    }
}
