//! A GPU of the driver: its handle, its constant properties, its instances, and the processes on it.

use nvml_wrapper::{
    Device, Nvml, enums::device::UsedGpuMemory, error::NvmlError, struct_wrappers::device::ProcessInfo,
    sys_exports::field_id::NVML_FI_DEV_NVLINK_GET_VERSION,
};

use super::{ffi, row::reason};
use crate::{Fabric, Gpu, GpuProcess, GpuTrouble, MigInstance, Platform, Reason};

/// Reads the constant properties of a GPU.
fn describe(device: &Device<'_>, index: u32) -> Gpu {
    let pci_bus_id = device.pci_info().map(|pci| pci.bus_id).ok();
    let uuid = device.uuid().ok().filter(|uuid| !uuid.is_empty());
    let unopened = Gpu::unopened(index, pci_bus_id);
    let version = device.cuda_compute_capability().ok();
    Gpu {
        uuid: uuid.unwrap_or_else(|| unopened.uuid.clone()),
        name: device.name().unwrap_or_default(),
        minor_number: device.minor_number().ok(),
        serial: device.serial().ok(),
        vbios_version: device.vbios_version().ok(),
        architecture: device.architecture().ok().map(|name| name.to_string()),
        compute_capability: version.map(|version| (version.major, version.minor)),
        nvlink_version: nvlink_version(device),
        platform: platform(device),
        ..unopened
    }
}

/// Reads the version of the NVLinks (`nvml.h`, `NVML_NVLINK_VERSION_*`); all links of a GPU have the same.
fn nvlink_version(device: &Device<'_>) -> Option<&'static str> {
    let mut cells = [ffi::field(NVML_FI_DEV_NVLINK_GET_VERSION, 0)];
    ffi::field_values(device, &mut cells).ok()?;
    Some(match ffi::field_count(&cells[0]).ok()? {
        1 => "1.0",
        2 => "2.0",
        3 => "2.2",
        4 => "3.0",
        5 => "3.1",
        6 => "4.0",
        7 => "5.0",
        8 => "6.0",
        _ => return None,
    })
}

/// Reads the position of the GPU in a rack.
fn platform(device: &Device<'_>) -> Option<Platform> {
    let platform = ffi::platform(device).ok()?;
    let serial_number = platform
        .chassisSerialNumber
        .split(|byte| *byte == 0)
        .next()
        .unwrap_or_default();
    Some(Platform {
        chassis_serial_number: String::from_utf8_lossy(serial_number).trim().to_owned(),
        slot: platform.slotNumber,
        tray: platform.trayIndex,
        host: platform.hostId,
        module: platform.moduleId,
    })
}

/// Reads the NVLink fabric; `None` until the GPU is registered with it.
///
/// # Errors
/// The driver has no fabric for the GPU.
pub(super) fn fabric(device: &Device<'_>) -> Result<Option<Fabric>, NvmlError> {
    let fabric = ffi::fabric(device)?;
    let byte = |place: usize| format!("{:02x}", fabric.cluster_uuid[place]);
    let part = |places: std::ops::Range<usize>| places.map(byte).collect::<String>();
    Ok((fabric.cluster_uuid != [0; 16]).then(|| Fabric {
        cluster_uuid: [part(0..4), part(4..6), part(6..8), part(8..10), part(10..16)].join("-"),
        clique_id: fabric.clique_id,
    }))
}

/// Lists the MIG instances: none if MIG is off, `None` if the GPU does not support MIG.
pub(super) fn instances<'nvml>(
    device: &Device<'nvml>,
) -> Result<Option<Vec<(Device<'nvml>, MigInstance)>>, NvmlError> {
    let mode = match device.mig_mode() {
        Ok(mode) => mode,
        Err(NvmlError::GpuLost) => return Err(NvmlError::GpuLost),
        Err(_) => return Ok(None),
    };
    if mode.current == 0 {
        return Ok(Some(Vec::new()));
    }
    let most = device.mig_device_count()?;
    // Indexes without an instance answer with an error.
    let found = (0..most).filter_map(|index| {
        let instance = device.mig_device_by_index(index).ok()?;
        let description = describe_instance(&instance, index).ok()?;
        Some((instance, description))
    });
    Ok(Some(found.collect()))
}

fn describe_instance(device: &Device<'_>, index: u32) -> Result<MigInstance, NvmlError> {
    let (gpu_instance_id, compute_instance_id) = ffi::mig_ids(device)?;
    let name = device.name().unwrap_or_default();
    // "NVIDIA H100 80GB HBM3 MIG 1g.10gb"
    let profile = name
        .rsplit_once("MIG ")
        .map_or(name.as_str(), |(_, profile)| profile);
    Ok(MigInstance {
        index,
        uuid: device.uuid()?,
        profile: profile.to_owned(),
        gpu_instance_id,
        compute_instance_id,
    })
}

/// Lists processes by the third version of a call, or by the second if the driver has no third or a flawed one.
fn list<'nvml>(
    device: &Device<'nvml>,
    third: impl FnOnce(&Device<'nvml>) -> Result<Vec<ProcessInfo>, NvmlError>,
    second: impl FnOnce(&Device<'nvml>) -> Result<Vec<ProcessInfo>, NvmlError>,
) -> Result<Vec<ProcessInfo>, NvmlError> {
    if has_flawed_lists(device.nvml()) {
        return second(device);
    }
    match third(device) {
        Err(NvmlError::FailedToLoadSymbol(_)) => second(device),
        listed => listed,
    }
}

/// Returns whether the third version of the calls that list processes writes beyond the end of the list: drivers from 535.43 to
/// 535.86 fill a longer structure than the call has (XuehaiPan/nvitop#79).
fn has_flawed_lists(nvml: &Nvml) -> bool {
    let version = nvml.sys_driver_version().unwrap_or_default();
    let mut parts = version.split('.').map(|part| part.parse().unwrap_or_default());
    let is_flawed = |minor: u32| (43..=86).contains(&minor);
    parts.next() == Some(535) && parts.next().is_some_and(is_flawed)
}

/// Lists the processes on the GPU, each once per instance.
pub(super) fn processes(device: &Device<'_>) -> Result<Vec<GpuProcess>, Reason> {
    let compute = list(
        device,
        Device::running_compute_processes,
        Device::running_compute_processes_v2,
    )
    .map_err(|error| reason(&error))?;
    // Graphics processes may compute too, and MPS clients have a separate list. A failure of these lists does not hide the
    // compute processes.
    let graphics = list(
        device,
        Device::running_graphics_processes,
        Device::running_graphics_processes_v2,
    );
    let mps = list(device, Device::mps_running_compute_processes, |_| Ok(Vec::new()));
    let (graphics, mps) = (graphics.unwrap_or_default(), mps.unwrap_or_default());
    let mut processes: Vec<GpuProcess> = Vec::with_capacity(compute.len());
    for process in compute.into_iter().chain(graphics).chain(mps) {
        let process = GpuProcess {
            pid: process.pid,
            memory_bytes: match process.used_gpu_memory {
                UsedGpuMemory::Used(bytes) => Some(bytes),
                UsedGpuMemory::Unavailable => None,
            },
            gpu_instance_id: process.gpu_instance_id,
            compute_instance_id: process.compute_instance_id,
        };
        let is_known = |known: &&GpuProcess| {
            (known.pid, known.gpu_instance_id) == (process.pid, process.gpu_instance_id)
        };
        if processes.iter().find(is_known).is_none() {
            processes.push(process);
        }
    }
    Ok(processes)
}

/// Lists the processes on the instances of a GPU. A caller without permission to query the GPU may still query its instances.
pub(super) fn processes_of_instances(
    instances: &[(Device<'_>, MigInstance)],
) -> Result<Vec<GpuProcess>, Reason> {
    let mut all = Vec::new();
    for (device, instance) in instances {
        all.extend(processes(device)?.into_iter().map(|process| GpuProcess {
            gpu_instance_id: Some(instance.gpu_instance_id),
            compute_instance_id: Some(instance.compute_instance_id),
            ..process
        }));
    }
    Ok(all)
}

/// Opens a GPU. Returns its handle and its constant properties.
///
/// # Errors
/// The GPU has no handle, or its handle does not answer.
pub(super) fn open(nvml: &Nvml, index: u32) -> Result<(Device<'_>, Gpu), NvmlError> {
    let device = nvml.device_by_index(index)?;
    match device.uuid() {
        // A GPU may have no UUID; its PCI address is used instead.
        Ok(_) | Err(NvmlError::NotSupported | NvmlError::FailedToLoadSymbol(_)) => {}
        Err(error) => return Err(error),
    }
    let gpu = describe(&device, index);
    Ok((device, gpu))
}

/// Returns the trouble of a GPU that cannot be opened (`nvml.h`, `nvmlDeviceGetHandleByIndex_v2`), or `None` if NVML has to be
/// loaded again.
pub(super) fn trouble_of(error: &NvmlError) -> Option<GpuTrouble> {
    match error {
        NvmlError::Uninitialized | NvmlError::DriverNotLoaded | NvmlError::LibRmVersionMismatch => None,
        NvmlError::GpuLost | NvmlError::ResetRequired => Some(GpuTrouble::Lost),
        // OPERATING_SYSTEM is "blocked by the operating system/cgroups".
        NvmlError::NoPermission | NvmlError::OperatingSystem => Some(GpuTrouble::NotPermitted),
        NvmlError::IrqIssue => Some(GpuTrouble::NoInterrupts),
        NvmlError::InsufficientPower => Some(GpuTrouble::NoPower),
        _ => Some(GpuTrouble::DriverError),
    }
}
