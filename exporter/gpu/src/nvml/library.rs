//! Loads NVML, or explains why it cannot be loaded.

use std::{ffi::OsStr, path::Path};

use nvml_wrapper::{Nvml, error::NvmlError};
use pulsetrain_pipeline::Problem;

use crate::driver::DriverEvent;

/// The library names: the first is installed by the driver, the second only by its development package.
const NAMES: [&str; 2] = ["libnvidia-ml.so.1", "libnvidia-ml.so"];

/// Loads and initializes NVML.
///
/// # Errors
/// The reason that NVML cannot be loaded.
pub(crate) fn load(path: Option<&Path>) -> Result<Nvml, DriverEvent> {
    let init = |name: &OsStr| Nvml::builder().lib_path(name).init();
    let loaded = match path {
        Some(path) => init(path.as_os_str()),
        None => match init(NAMES[0].as_ref()) {
            Err(NvmlError::LibloadingError(_)) => init(NAMES[1].as_ref()),
            loaded => loaded,
        },
    };
    loaded.map_err(|error| absent(&error, path))
}

fn absent(error: &NvmlError, path: Option<&Path>) -> DriverEvent {
    let named = path.map_or_else(|| NAMES[0].to_owned(), |path| path.display().to_string());
    let (what, remedy) = match error {
        NvmlError::LibloadingError(_) if path.is_some() => (
            format!("{named} cannot be loaded ({error})"),
            "correct gpu.library",
        ),
        NvmlError::LibloadingError(_) => (
            format!("no NVIDIA driver and no AMD GPU here ({named} and /sys/class/drm)"),
            "in a container, pass the GPUs in with --gpus or the device plugin",
        ),
        NvmlError::FailedToLoadSymbol(_) | NvmlError::FunctionNotFound => {
            (format!("{named} is not NVML ({error})"), "correct gpu.library")
        }
        NvmlError::DriverNotLoaded => (
            "the NVIDIA kernel driver is not loaded".to_owned(),
            "load it with modprobe nvidia, or install it",
        ),
        NvmlError::LibRmVersionMismatch => (
            "the NVIDIA library and the kernel driver are of different versions".to_owned(),
            "reload the driver or restart the machine: it was upgraded while in use",
        ),
        NvmlError::NoPermission => (
            "the NVIDIA devices may not be opened".to_owned(),
            "give the user access to /dev/nvidiactl and /dev/nvidia*",
        ),
        other => (
            format!("the NVIDIA driver does not start ({other})"),
            "look at nvidia-smi and at the kernel log",
        ),
    };
    DriverEvent::Absent(Problem::new(what).with_remedy(remedy))
}
