//! MIG: the instances of a GPU, their ids, their sizes and their parent.

use std::ffi::c_uint;

use nvml_wrapper_sys::bindings::{
    nvmlDevice_t, nvmlDeviceAttributes_t, nvmlReturn_enum_NVML_ERROR_INVALID_ARGUMENT as INVALID_ARGUMENT,
    nvmlReturn_enum_NVML_ERROR_NOT_FOUND as NOT_FOUND, nvmlReturn_t,
};

use crate::{
    call::{CallTarget, answer_for},
    gpu::Mig,
    handle::Handle,
    out::put,
};

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceIsMigDeviceHandle(
    device: nvmlDevice_t,
    is_mig: *mut c_uint,
) -> nvmlReturn_t {
    answer_for("nvmlDeviceIsMigDeviceHandle", device, |target| {
        // SAFETY: by NVML's contract the pointer is null or points to a number.
        unsafe { put(is_mig, u32::from(target.mig.is_some())) }
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetMaxMigDeviceCount(
    device: nvmlDevice_t,
    count: *mut c_uint,
) -> nvmlReturn_t {
    answer_for("nvmlDeviceGetMaxMigDeviceCount", device, |target| {
        // SAFETY: by NVML's contract the pointer is null or points to a number.
        unsafe { put(count, target.read("mig.device_count_max")? as c_uint) }
    })
}

/// The index is a slot: an instance keeps its slot when others are created or destroyed, and an empty slot is not found.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetMigDeviceHandleByIndex(
    device: nvmlDevice_t,
    index: c_uint,
    mig_device: *mut nvmlDevice_t,
) -> nvmlReturn_t {
    answer_for("nvmlDeviceGetMigDeviceHandleByIndex", device, |target| {
        let gpu = target.full_gpu()?;
        if f64::from(index) >= target.read("mig.device_count_max")? {
            return Err(INVALID_ARGUMENT);
        }
        let existing = gpu
            .mig
            .iter()
            .enumerate()
            .filter(|(_, mig)| mig.exists(target.second));
        let found = existing.map(|(place, mig)| (place, mig.slot.unwrap_or(place as u32)));
        let (place, _) = found
            .into_iter()
            .find(|(_, slot)| *slot == index)
            .ok_or(NOT_FOUND)?;
        let handle = Handle {
            mig: Some(place as u16),
            ..target.handle
        };
        // SAFETY: by NVML's contract the pointer is null or points to a handle.
        unsafe { put(mig_device, handle.to_device()) }
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetDeviceHandleFromMigDeviceHandle(
    mig_device: nvmlDevice_t,
    device: *mut nvmlDevice_t,
) -> nvmlReturn_t {
    answer_for(
        "nvmlDeviceGetDeviceHandleFromMigDeviceHandle",
        mig_device,
        |target| {
            instance(target)?;
            let handle = Handle {
                mig: None,
                ..target.handle
            };
            // SAFETY: by NVML's contract the pointer is null or points to a handle.
            unsafe { put(device, handle.to_device()) }
        },
    )
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetGpuInstanceId(device: nvmlDevice_t, id: *mut c_uint) -> nvmlReturn_t {
    answer_for("nvmlDeviceGetGpuInstanceId", device, |target| {
        // SAFETY: by NVML's contract the pointer is null or points to a number.
        unsafe { put(id, instance(target)?.gpu_instance) }
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetComputeInstanceId(
    device: nvmlDevice_t,
    id: *mut c_uint,
) -> nvmlReturn_t {
    answer_for("nvmlDeviceGetComputeInstanceId", device, |target| {
        // SAFETY: by NVML's contract the pointer is null or points to a number.
        unsafe { put(id, instance(target)?.compute_instance) }
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetAttributes_v2(
    device: nvmlDevice_t,
    attributes: *mut nvmlDeviceAttributes_t,
) -> nvmlReturn_t {
    answer_for("nvmlDeviceGetAttributes_v2", device, |target| {
        let size = |name: &str| {
            target
                .read(&format!("attributes.{name}"))
                .map(|number| number as u32)
        };
        let answer = nvmlDeviceAttributes_t {
            multiprocessorCount: size("multiprocessors")?,
            sharedCopyEngineCount: size("copy_engines").unwrap_or_default(),
            sharedDecoderCount: size("decoders").unwrap_or_default(),
            sharedEncoderCount: size("encoders").unwrap_or_default(),
            sharedJpegCount: size("jpegs").unwrap_or_default(),
            sharedOfaCount: size("ofas").unwrap_or_default(),
            gpuInstanceSliceCount: size("gpu_slices").unwrap_or_default(),
            computeInstanceSliceCount: size("compute_slices").unwrap_or_default(),
            memorySizeMB: (target.read("memory.total_bytes")? / f64::from(1 << 20)) as u64,
        };
        // SAFETY: by NVML's contract the pointer is null or points to the structure.
        unsafe { put(attributes, answer) }
    })
}

fn instance(target: &CallTarget) -> Result<&'static Mig, nvmlReturn_t> {
    target.mig.ok_or(INVALID_ARGUMENT)
}
