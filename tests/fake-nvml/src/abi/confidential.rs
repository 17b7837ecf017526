//! Confidential computing: its state and its protected memory. Also other features of the driver: encryption and licences.

use nvml_wrapper_sys::bindings::{
    nvmlConfComputeSystemState_t, nvmlDevice_t, nvmlDramEncryptionInfo_t, nvmlGridLicensableFeature_t,
    nvmlGridLicensableFeatures_t, nvmlGridLicenseExpiry_t, nvmlMemory_t,
    nvmlReturn_enum_NVML_ERROR_NOT_SUPPORTED as NOT_SUPPORTED, nvmlReturn_t, nvmlSystemConfComputeSettings_t,
};

use crate::{
    call::{answer, answer_for},
    out::{get_versioned, put},
};

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlSystemGetConfComputeState(
    state: *mut nvmlConfComputeSystemState_t,
) -> nvmlReturn_t {
    answer("nvmlSystemGetConfComputeState", |world, _| {
        let on = world.scenario.driver.confidential_compute.ok_or(NOT_SUPPORTED)?;
        let answer = nvmlConfComputeSystemState_t {
            environment: 0,
            ccFeature: on.into(),
            devToolsMode: 0,
        };
        // SAFETY: by NVML's contract the pointer is null or points to the structure.
        unsafe { put(state, answer) }
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlSystemGetConfComputeSettings(
    settings: *mut nvmlSystemConfComputeSettings_t,
) -> nvmlReturn_t {
    answer("nvmlSystemGetConfComputeSettings", |world, _| {
        let on = world.scenario.driver.confidential_compute.ok_or(NOT_SUPPORTED)?;
        // SAFETY: by NVML's contract the pointer is null or points to the structure with its version.
        let mut answer = unsafe { get_versioned(settings, 1) }?;
        answer.ccFeature = on.into();
        // SAFETY: as above.
        unsafe { put(settings, answer) }
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetConfComputeProtectedMemoryUsage(
    device: nvmlDevice_t,
    memory: *mut nvmlMemory_t,
) -> nvmlReturn_t {
    answer_for("nvmlDeviceGetConfComputeProtectedMemoryUsage", device, |target| {
        let total = target.read("memory.protected_total_bytes")? as u64;
        let used = target.read("memory.protected_used_bytes")? as u64;
        let free = total - used;
        // SAFETY: by NVML's contract the pointer is null or points to the structure.
        unsafe { put(memory, nvmlMemory_t { total, free, used }) }
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetDramEncryptionMode(
    device: nvmlDevice_t,
    current: *mut nvmlDramEncryptionInfo_t,
    pending: *mut nvmlDramEncryptionInfo_t,
) -> nvmlReturn_t {
    answer_for("nvmlDeviceGetDramEncryptionMode", device, |target| {
        let state = target.read("dram_encryption")? as u32;
        for info in [current, pending] {
            // SAFETY: by NVML's contract the pointers are null or point to the structure with its version.
            let mut answer = unsafe { get_versioned(info, 1) }?;
            answer.encryptionState = state;
            // SAFETY: as above.
            unsafe { put(info, answer) }?;
        }
        Ok(())
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetGridLicensableFeatures_v4(
    device: nvmlDevice_t,
    features: *mut nvmlGridLicensableFeatures_t,
) -> nvmlReturn_t {
    answer_for("nvmlDeviceGetGridLicensableFeatures_v4", device, |target| {
        let licensed = target.read("vgpu_license")? as u32;
        let feature = nvmlGridLicensableFeature_t {
            featureCode: 0,
            featureState: licensed,
            licenseInfo: [0; 128],
            productName: [0; 128],
            featureEnabled: licensed,
            licenseExpiry: nvmlGridLicenseExpiry_t {
                year: 0,
                month: 0,
                day: 0,
                hour: 0,
                min: 0,
                sec: 0,
                status: 0,
            },
        };
        let answer = nvmlGridLicensableFeatures_t {
            isGridLicenseSupported: target.read("vgpu_license.supported").unwrap_or_default() as i32,
            licensableFeaturesCount: 1,
            gridLicensableFeatures: [feature; 3],
        };
        // SAFETY: by NVML's contract the pointer is null or points to the structure.
        unsafe { put(features, answer) }
    })
}
