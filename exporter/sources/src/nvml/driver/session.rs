//! A session: NVML is loaded, and read in passes until it has gone or has to be loaded anew.

use std::sync::Arc;

use nvml_wrapper::{Nvml, error::NvmlError};
use pulsetrain_pipeline::clock;

use super::{Heard, Telling, Tick, device};
use crate::nvml::{Driver, NvmlConfig};

/// Why a session is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ended {
    /// Nobody listens any more.
    Told,
    /// The driver has gone.
    Gone,
    /// The driver has to be loaded anew to be seen as it is now.
    LoadAgain,
}

/// Reads the driver until it has gone.
pub(super) fn read(nvml: &Nvml, config: &NvmlConfig, telling: &Telling) -> Ended {
    let driver = Arc::new(driver(nvml));
    let mut due = clock::now();
    loop {
        let gpus = match device::find(nvml) {
            Ok(gpus) => gpus,
            Err(NvmlError::GpuLost) => return Ended::LoadAgain,
            Err(_) => return Ended::Gone,
        };
        telling.tell(Heard::Tick(Box::new(Tick {
            driver: Arc::clone(&driver),
            gpus: gpus.into_iter().map(|(_, gpu)| Arc::new(gpu)).collect(),
        })));
        due = clock::later(due, config.interval);
        telling.pause_until(due);
        if telling.is_ending() {
            return Ended::Told;
        }
    }
}

fn driver(nvml: &Nvml) -> Driver {
    Driver {
        version: nvml.sys_driver_version().unwrap_or_default(),
        nvml_version: nvml.sys_nvml_version().unwrap_or_default(),
        cuda_version: nvml.sys_cuda_driver_version().unwrap_or_default(),
    }
}
