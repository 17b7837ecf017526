//! The wrapper on a fake driver, and a call that the wrapper lacks.

use nvml_wrapper::{
    Device, Nvml,
    error::{NvmlError, nvml_try},
};
use nvml_wrapper_sys::bindings::{nvmlFieldValue_t, nvmlReturn_t, nvmlValue_t};
use pulsetrain_tests::FakeNvml;

/// Starts a fake driver with a scenario and changes to it, and connects to it.
pub(crate) fn start(scenario: &str, changes: &str) -> (FakeNvml, Nvml) {
    let fake = FakeNvml::with(scenario, changes);
    let nvml = connect(&fake);
    (fake, nvml)
}

/// Connects to a fake driver as the agent does to a real one.
pub(crate) fn connect(fake: &FakeNvml) -> Nvml {
    try_connect(fake).expect("the wrapper connects to the fake driver")
}

/// As [`connect`], but returns the error if the driver refuses.
pub(crate) fn try_connect(fake: &FakeNvml) -> Result<Nvml, NvmlError> {
    let library = fake.library();
    Nvml::builder().lib_path(library.as_os_str()).init()
}

/// Returns the name of the error of a call.
pub(crate) fn error_of<T>(result: Result<T, NvmlError>) -> String {
    let error = result.err().expect("the call fails");
    format!("{error:?}")
}

/// Returns the values of fields with their scopes, which the wrapper does not support.
pub(crate) fn scoped(device: &Device, fields: &[(u32, u32)]) -> Vec<nvmlFieldValue_t> {
    let mut values: Vec<_> = fields
        .iter()
        .map(|(field, scope)| nvmlFieldValue_t {
            fieldId: *field,
            scopeId: *scope,
            timestamp: 0,
            latencyUsec: 0,
            valueType: 0,
            nvmlReturn: 0,
            value: nvmlValue_t { ullVal: 0 },
        })
        .collect();
    let call = device.nvml().lib().nvmlDeviceGetFieldValues.as_ref();
    let call = call.expect("the fake driver has the symbol");
    // SAFETY: the handle is the device's own, and `values` has the length that is passed.
    let code: nvmlReturn_t = unsafe { call(device.handle(), values.len() as i32, values.as_mut_ptr()) };
    nvml_try(code).expect("field values are read");
    values
}
