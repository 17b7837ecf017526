//! NVLink by the older calls, one link per call.

use std::ffi::{c_uint, c_ulonglong};

use nvml_wrapper_sys::bindings::{
    nvmlDevice_t, nvmlReturn_enum_NVML_ERROR_INVALID_ARGUMENT as INVALID_ARGUMENT, nvmlReturn_t,
};

use crate::{
    call::{CallTarget, answer_for},
    out::put,
};

/// Calls that return one number of one link.
macro_rules! links {
    ($($call:ident($($arg:ident)?) -> $out:ty = $reading:expr;)*) => {$(
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $call(device: nvmlDevice_t, link: c_uint, $($arg: c_uint,)? out: *mut $out) -> nvmlReturn_t {
            answer_for(stringify!($call), device, |target| {
                // SAFETY: by NVML's contract the pointer is null or points to a number of its type.
                unsafe { put(out, read(target, link, $reading)? as $out) }
            })
        }
    )*};
}

links! {
    nvmlDeviceGetNvLinkState() -> c_uint = "state";
    nvmlDeviceGetNvLinkVersion() -> c_uint = "version";
    nvmlDeviceGetNvLinkRemoteDeviceType() -> c_uint = "remote_type";
    nvmlDeviceGetNvLinkCapability(capability) -> c_uint = ["p2p", "sysmem", "p2p_atomics", "sysmem_atomics", "sli", "valid"]
        .get(capability as usize).ok_or(INVALID_ARGUMENT)?;
    nvmlDeviceGetNvLinkErrorCounter(counter) -> c_ulonglong = ["replays", "recoveries", "crc_flit_errors", "crc_data_errors", "ecc_data_errors"]
        .get(counter as usize).ok_or(INVALID_ARGUMENT)?;
}

/// The deprecated pair of counters, in unknown units.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetNvLinkUtilizationCounter(
    device: nvmlDevice_t,
    link: c_uint,
    _counter: c_uint,
    rx: *mut c_ulonglong,
    tx: *mut c_ulonglong,
) -> nvmlReturn_t {
    answer_for("nvmlDeviceGetNvLinkUtilizationCounter", device, |target| {
        // SAFETY: by NVML's contract the pointers are null or point to numbers.
        unsafe {
            put(rx, read(target, link, "utilization_rx")? as c_ulonglong)?;
            put(tx, read(target, link, "utilization_tx")? as c_ulonglong)
        }
    })
}

fn read(target: &CallTarget, link: c_uint, reading: &str) -> Result<f64, nvmlReturn_t> {
    if f64::from(link) >= target.read("nvlink.count")? {
        return Err(INVALID_ARGUMENT);
    }
    target.read_part("nvlink", link, reading)
}
