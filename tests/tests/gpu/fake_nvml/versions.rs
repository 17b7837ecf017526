//! Versioned structures: a call with another version is refused, as in NVML.

use nvml_wrapper::error::{NvmlError, nvml_try};
use nvml_wrapper_sys::bindings as c;
use pulsetrain_tests::FakeNvml;

use crate::fake_nvml::driver::connect;

/// Calls a function with a structure of this version, which is its first member; all other members are zero.
macro_rules! ask {
    ($device:expr, $call:ident, $kind:ty, $version:expr) => {{
        // SAFETY: the structure consists of numbers, for which zero is valid.
        let mut value: $kind = unsafe { std::mem::zeroed() };
        value.version = $version;
        let call = $device
            .nvml()
            .lib()
            .$call
            .as_ref()
            .expect("the fake has the symbol");
        // SAFETY: the handle is the device's own, and the structure has the type of the call's parameter.
        nvml_try(unsafe { call($device.handle(), &mut value) })
    }};
}

#[test]
fn a_structure_of_another_version_is_refused() {
    let fake = FakeNvml::start("h100x8");
    let nvml = connect(&fake);
    let device = nvml.device_by_index(0).unwrap();
    let first = |size: usize| size as u32 | 1 << 24;
    let margin = first(size_of::<c::nvmlMarginTemperature_t>());
    let sram = first(size_of::<c::nvmlEccSramErrorStatus_t>());
    ask!(
        device,
        nvmlDeviceGetMarginTemperature,
        c::nvmlMarginTemperature_t,
        margin
    )
    .unwrap();
    ask!(
        device,
        nvmlDeviceGetSramEccErrorStatus,
        c::nvmlEccSramErrorStatus_t,
        sram
    )
    .unwrap();
    ask!(
        device,
        nvmlGpmQueryDeviceSupport,
        c::nvmlGpmSupport_t,
        c::NVML_GPM_SUPPORT_VERSION
    )
    .unwrap();
    for refused in [
        ask!(
            device,
            nvmlDeviceGetMarginTemperature,
            c::nvmlMarginTemperature_t,
            0
        ),
        ask!(
            device,
            nvmlDeviceGetSramEccErrorStatus,
            c::nvmlEccSramErrorStatus_t,
            sram + (1 << 24)
        ),
        ask!(device, nvmlGpmQueryDeviceSupport, c::nvmlGpmSupport_t, 0),
        ask!(device, nvmlDeviceGetFanSpeedRPM, c::nvmlFanSpeedInfo_t, 0),
    ] {
        assert!(
            matches!(refused, Err(NvmlError::UnexpectedVariant(25))),
            "{refused:?}"
        );
    }
}
