//! The GPUs that the driver has, and what never changes about them.

use nvml_wrapper::{Device, Nvml, error::NvmlError};

use crate::nvml::Gpu;

/// All GPUs with what never changes about them.
///
/// # Errors
/// The driver does not say how many there are, or has lost one of them.
pub(super) fn find(nvml: &Nvml) -> Result<Vec<(Device<'_>, Gpu)>, NvmlError> {
    (0..nvml.device_count()?)
        .map(|index| {
            let device = nvml.device_by_index(index)?;
            let gpu = describe(&device, index);
            Ok((device, gpu))
        })
        .collect()
}

fn describe(device: &Device<'_>, index: u32) -> Gpu {
    let pci_bus_id = device.pci_info().map(|pci| pci.bus_id).unwrap_or_default();
    Gpu {
        index,
        uuid: device.uuid().unwrap_or_else(|_| pci_bus_id.clone()),
        name: device.name().unwrap_or_default(),
        pci_bus_id,
        minor_number: device.minor_number().ok(),
        serial: device.serial().ok(),
        vbios_version: device.vbios_version().ok(),
        architecture: device.architecture().ok().map(|name| name.to_string()),
        compute_capability: device
            .cuda_compute_capability()
            .ok()
            .map(|version| (version.major, version.minor)),
        ..Gpu::default()
    }
}
