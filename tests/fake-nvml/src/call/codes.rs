//! NVML's errors by name, as its header and a scenario spell them.

use std::ffi::CStr;

use nvml_wrapper_sys::bindings::nvmlReturn_t;

/// Name, code and message text of NVML's errors.
pub(crate) const ERRORS: [(&str, nvmlReturn_t, &CStr); 31] = [
    ("UNINITIALIZED", 1, c"Uninitialized"),
    ("INVALID_ARGUMENT", 2, c"Invalid argument"),
    ("NOT_SUPPORTED", 3, c"Not supported"),
    ("NO_PERMISSION", 4, c"No permission"),
    ("ALREADY_INITIALIZED", 5, c"Already initialized"),
    ("NOT_FOUND", 6, c"Not found"),
    ("INSUFFICIENT_SIZE", 7, c"Insufficient size"),
    ("INSUFFICIENT_POWER", 8, c"Insufficient power"),
    ("DRIVER_NOT_LOADED", 9, c"Driver not loaded"),
    ("TIMEOUT", 10, c"Timeout"),
    ("IRQ_ISSUE", 11, c"Irq issue"),
    ("LIBRARY_NOT_FOUND", 12, c"Library not found"),
    ("FUNCTION_NOT_FOUND", 13, c"Function not found"),
    ("CORRUPTED_INFOROM", 14, c"Corrupted inforom"),
    ("GPU_IS_LOST", 15, c"GPU is lost"),
    ("RESET_REQUIRED", 16, c"Reset required"),
    ("OPERATING_SYSTEM", 17, c"Operating system"),
    ("LIB_RM_VERSION_MISMATCH", 18, c"Lib rm version mismatch"),
    ("IN_USE", 19, c"In use"),
    ("MEMORY", 20, c"Memory"),
    ("NO_DATA", 21, c"No data"),
    ("VGPU_ECC_NOT_SUPPORTED", 22, c"VGPU ecc not supported"),
    ("INSUFFICIENT_RESOURCES", 23, c"Insufficient resources"),
    ("FREQ_NOT_SUPPORTED", 24, c"Freq not supported"),
    ("ARGUMENT_VERSION_MISMATCH", 25, c"Argument version mismatch"),
    ("DEPRECATED", 26, c"Deprecated"),
    ("NOT_READY", 27, c"Not ready"),
    ("GPU_NOT_FOUND", 28, c"GPU not found"),
    ("INVALID_STATE", 29, c"Invalid state"),
    ("RESET_TYPE_NOT_SUPPORTED", 30, c"Reset type not supported"),
    ("UNKNOWN", 999, c"Unknown"),
];

/// Returns the code of an error's name.
pub(crate) fn code_of(name: &str) -> Option<nvmlReturn_t> {
    ERRORS
        .iter()
        .find(|(error, ..)| *error == name)
        .map(|(_, code, _)| *code)
}
