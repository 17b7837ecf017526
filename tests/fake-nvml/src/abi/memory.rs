//! Memory, total and used: of the GPU, and of its BAR1 aperture on the bus.

use nvml_wrapper_sys::bindings::{
    nvmlBAR1Memory_t, nvmlDevice_t, nvmlMemory_t, nvmlMemory_v2_t,
    nvmlReturn_enum_NVML_ERROR_ARGUMENT_VERSION_MISMATCH as VERSION_MISMATCH, nvmlReturn_t,
};

use crate::{
    call::answer_for,
    out::{get, put},
};

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetMemoryInfo(
    device: nvmlDevice_t,
    memory: *mut nvmlMemory_t,
) -> nvmlReturn_t {
    answer_for("nvmlDeviceGetMemoryInfo", device, |target| {
        let total = target.read("memory.total_bytes")? as u64;
        // Reserved memory counts as used in this version; the second version reports it separately.
        let reserved = target.read("memory.reserved_bytes").unwrap_or_default() as u64;
        let used = target.read("memory.used_bytes")? as u64 + reserved;
        let free = total - used;
        // SAFETY: by NVML's contract the pointer is null or points to the structure.
        unsafe { put(memory, nvmlMemory_t { total, free, used }) }
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetMemoryInfo_v2(
    device: nvmlDevice_t,
    memory: *mut nvmlMemory_v2_t,
) -> nvmlReturn_t {
    answer_for("nvmlDeviceGetMemoryInfo_v2", device, |target| {
        // SAFETY: by NVML's contract the pointer is null or points to the structure with its version.
        let version = unsafe { get(memory) }?.version;
        if version != size_of::<nvmlMemory_v2_t>() as u32 | 2 << 24 {
            return Err(VERSION_MISMATCH);
        }
        let total = target.read("memory.total_bytes")? as u64;
        let reserved = target.read("memory.reserved_bytes").unwrap_or_default() as u64;
        let used = target.read("memory.used_bytes")? as u64;
        let free = total - used - reserved;
        let answer = nvmlMemory_v2_t {
            version,
            total,
            reserved,
            free,
            used,
        };
        // SAFETY: as above.
        unsafe { put(memory, answer) }
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetBAR1MemoryInfo(
    device: nvmlDevice_t,
    memory: *mut nvmlBAR1Memory_t,
) -> nvmlReturn_t {
    answer_for("nvmlDeviceGetBAR1MemoryInfo", device, |target| {
        let total = target.read("bar1.total_bytes")? as u64;
        let used = target.read("bar1.used_bytes")? as u64;
        let answer = nvmlBAR1Memory_t {
            bar1Total: total,
            bar1Free: total - used,
            bar1Used: used,
        };
        // SAFETY: by NVML's contract the pointer is null or points to the structure.
        unsafe { put(memory, answer) }
    })
}
