//! Handles, and the constant properties of a GPU.

use std::ffi::{c_char, c_uint};

use nvml_wrapper_sys::bindings::{
    nvmlDevice_t, nvmlPciInfo_t, nvmlReturn_enum_NVML_ERROR_GPU_IS_LOST as GPU_IS_LOST,
    nvmlReturn_enum_NVML_ERROR_INVALID_ARGUMENT as INVALID_ARGUMENT,
    nvmlReturn_enum_NVML_ERROR_NOT_FOUND as NOT_FOUND, nvmlReturn_t,
};

use crate::{
    call::{CallTarget, Reply, answer_for, answer_lookup},
    handle::Handle,
    out::{characters, get_text, put, put_text},
    scenario::Trouble,
    world::World,
};

/// Calls that return one of the string properties of a GPU.
macro_rules! facts {
    ($($call:ident => $fact:literal;)*) => {$(
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $call(device: nvmlDevice_t, text: *mut c_char, length: c_uint) -> nvmlReturn_t {
            answer_for(stringify!($call), device, |target| {
                // SAFETY: by NVML's contract the pointer is null or has room for that many characters.
                unsafe { put_text(text, length, target.fact($fact)?) }
            })
        }
    )*};
}

facts! {
    nvmlDeviceGetName => "name";
    nvmlDeviceGetUUID => "uuid";
    nvmlDeviceGetSerial => "serial";
    nvmlDeviceGetVbiosVersion => "vbios";
    nvmlDeviceGetBoardPartNumber => "part_number";
    nvmlDeviceGetInforomImageVersion => "inforom_image";
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetInforomVersion(
    device: nvmlDevice_t,
    object: c_uint,
    text: *mut c_char,
    length: c_uint,
) -> nvmlReturn_t {
    answer_for("nvmlDeviceGetInforomVersion", device, |target| {
        let fact = match object {
            0 => "inforom_oem",
            1 => "inforom_ecc",
            2 => "inforom_power",
            _ => return Err(INVALID_ARGUMENT),
        };
        // SAFETY: by NVML's contract the pointer is null or has room for that many characters.
        unsafe { put_text(text, length, target.fact(fact)?) }
    })
}

/// Writes without a length parameter, as NVML does: its header requires 80 characters.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetGspFirmwareVersion(
    device: nvmlDevice_t,
    text: *mut c_char,
) -> nvmlReturn_t {
    answer_for("nvmlDeviceGetGspFirmwareVersion", device, |target| {
        // SAFETY: by NVML's contract the pointer is null or has room for 80 characters.
        unsafe { put_text(text, 80, target.fact("gsp_version")?) }
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetHandleByIndex_v2(
    index: c_uint,
    device: *mut nvmlDevice_t,
) -> nvmlReturn_t {
    let find = |world: &World, second| world.present(second).get(index as usize).copied();
    answer_lookup("nvmlDeviceGetHandleByIndex_v2", find, |world, second| {
        let place = find(world, second).ok_or(INVALID_ARGUMENT)?;
        // SAFETY: by NVML's contract the pointer is null or points to a handle.
        unsafe { put_handle(world, second, place, device) }
    })
}

/// Calls that return the handle with one of the string properties.
macro_rules! lookups {
    ($($call:ident => $fact:literal;)*) => {$(
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $call(text: *const c_char, device: *mut nvmlDevice_t) -> nvmlReturn_t {
            // SAFETY: by NVML's contract the pointer is null or points to a text.
            let value = unsafe { get_text(text) };
            let find = |world: &World, second| {
                find_with(world, second, $fact, value.as_deref().ok()?).map(|(gpu, _)| gpu)
            };
            answer_lookup(stringify!($call), find, |world, second| {
                let value = value.as_deref().map_err(|code| *code)?;
                // SAFETY: by NVML's contract the pointer is null or points to a handle.
                unsafe { put_handle_with(world, second, $fact, value, device) }
            })
        }
    )*};
}

lookups! {
    nvmlDeviceGetHandleByUUID => "uuid";
    nvmlDeviceGetHandleBySerial => "serial";
    nvmlDeviceGetHandleByPciBusId_v2 => "pci_bus_id";
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetIndex(device: nvmlDevice_t, index: *mut c_uint) -> nvmlReturn_t {
    answer_for("nvmlDeviceGetIndex", device, |target| {
        let present = target.world.present(target.second);
        let place = usize::from(target.handle.gpu);
        let found = present.iter().position(|present| *present == place);
        // SAFETY: by NVML's contract the pointer is null or points to a number.
        unsafe { put(index, found.ok_or(NOT_FOUND)? as c_uint) }
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetPciInfo_v3(
    device: nvmlDevice_t,
    pci: *mut nvmlPciInfo_t,
) -> nvmlReturn_t {
    answer_for("nvmlDeviceGetPciInfo_v3", device, |target| {
        // SAFETY: by NVML's contract the pointer is null or points to the structure.
        unsafe { put(pci, pci_info(target)?) }
    })
}

/// Parses the fact `pci_bus_id`, `00000000:1B:00.0`, into its parts.
fn pci_info(target: &CallTarget) -> Result<nvmlPciInfo_t, nvmlReturn_t> {
    let bus_id = target.fact("pci_bus_id")?;
    let mut parts = bus_id
        .split([':', '.'])
        .map(|part| u32::from_str_radix(part, 16).ok());
    let mut part = || parts.next().flatten().ok_or(NOT_FOUND);
    let (domain, bus, slot) = (part()?, part()?, part()?);
    Ok(nvmlPciInfo_t {
        busIdLegacy: characters(&format!("{domain:04X}:{bus:02X}:{slot:02X}.0")),
        domain,
        bus,
        device: slot,
        pciDeviceId: target.read("pci.device_id").unwrap_or_default() as u32,
        pciSubSystemId: target.read("pci.subsystem_id").unwrap_or_default() as u32,
        busId: characters(bus_id),
    })
}

/// Returns the GPU with this fact, or the GPU and the MIG instance with it.
fn find_with(world: &World, second: f64, fact: &str, value: &str) -> Option<(usize, Option<usize>)> {
    let is = |known: Option<&String>| known.is_some_and(|known| known.eq_ignore_ascii_case(value));
    world.present(second).into_iter().find_map(|place| {
        let gpu = &world.scenario.gpus[place];
        if is(gpu.facts.get(fact)) {
            return Some((place, None));
        }
        let mut instances = gpu.mig.iter();
        let found = instances.position(|mig| mig.exists(second) && is(mig.facts.get(fact)));
        found.map(|mig| (place, Some(mig)))
    })
}

/// Writes the handle of the GPU or the MIG instance with this fact.
///
/// # Safety
///
/// `device` is null or points to a handle.
unsafe fn put_handle_with(
    world: &World,
    second: f64,
    fact: &str,
    value: &str,
    device: *mut nvmlDevice_t,
) -> Reply {
    match find_with(world, second, fact, value).ok_or(NOT_FOUND)? {
        // SAFETY: guaranteed by the caller.
        (place, None) => unsafe { put_handle(world, second, place, device) },
        (place, Some(mig)) => {
            let handle = Handle {
                generation: world.connection().generation,
                gpu: place as u16,
                mig: Some(mig as u16),
            };
            // SAFETY: guaranteed by the caller.
            unsafe { put(device, handle.to_device()) }
        }
    }
}

/// Writes the handle of a GPU, unless it is lost.
///
/// # Safety
///
/// `device` is null or points to a handle.
unsafe fn put_handle(world: &World, second: f64, place: usize, device: *mut nvmlDevice_t) -> Reply {
    if world.is(Trouble::Lost, second, place) {
        return Err(GPU_IS_LOST);
    }
    let handle = Handle {
        generation: world.connection().generation,
        gpu: place as u16,
        mig: None,
    };
    // SAFETY: guaranteed by the caller.
    unsafe { put(device, handle.to_device()) }
}
