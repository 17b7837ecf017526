//! Versioned structures: a call with another version is refused, as in NVML.

use nvml_wrapper::error::nvml_try;
use nvml_wrapper_sys::bindings::{
    NVML_GPM_SUPPORT_VERSION, nvmlEccSramErrorStatus_t as Sram, nvmlFanSpeedInfo_t as FanSpeed,
    nvmlGpmSupport_t as Support, nvmlMarginTemperature_t as Margin,
};

use crate::fake_nvml::driver::{error_of, start};

/// Calls a function with a structure of this version, which is its first member; all other members are zero.
macro_rules! ask {
    ($device:expr, $call:ident, $kind:ty, $version:expr) => {{
        // SAFETY: the structure consists of numbers, for which zero is valid.
        let mut value: $kind = unsafe { std::mem::zeroed() };
        value.version = $version;
        let call = $device.nvml().lib().$call.as_ref();
        let call = call.expect("the fake has the symbol");
        // SAFETY: the handle is the device's own, and the structure has the type of the call's parameter.
        nvml_try(unsafe { call($device.handle(), &mut value) })
    }};
}

#[test]
fn a_structure_of_another_version_is_refused() {
    let (_fake, nvml) = start("h100x8", "");
    let device = nvml.device_by_index(0).unwrap();
    let first = |size: usize| size as u32 | 1 << 24;
    let (margin, sram) = (first(size_of::<Margin>()), first(size_of::<Sram>()));
    ask!(device, nvmlDeviceGetMarginTemperature, Margin, margin).unwrap();
    ask!(device, nvmlDeviceGetSramEccErrorStatus, Sram, sram).unwrap();
    let support = NVML_GPM_SUPPORT_VERSION;
    ask!(device, nvmlGpmQueryDeviceSupport, Support, support).unwrap();
    for refused in [
        ask!(device, nvmlDeviceGetMarginTemperature, Margin, 0),
        ask!(device, nvmlDeviceGetSramEccErrorStatus, Sram, sram + (1 << 24)),
        ask!(device, nvmlGpmQueryDeviceSupport, Support, 0),
        ask!(device, nvmlDeviceGetFanSpeedRPM, FanSpeed, 0),
    ] {
        assert_eq!(error_of(refused), "UnexpectedVariant(25)");
    }
}
