//! The board around the GPU: its module, its link to the CPU, what it repairs, and thermal sensors of older boards.

use nvml_wrapper_sys::bindings::{
    nvmlC2cModeInfo_v1_t, nvmlDevice_t, nvmlGpuDynamicPstatesInfo_st__bindgen_ty_1,
    nvmlGpuDynamicPstatesInfo_t, nvmlPlatformInfo_t, nvmlRepairStatus_t, nvmlReturn_t,
};

use crate::{
    call::answer_for,
    out::{get_versioned, put},
};

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetC2cModeInfoV(
    device: nvmlDevice_t,
    info: *mut nvmlC2cModeInfo_v1_t,
) -> nvmlReturn_t {
    answer_for("nvmlDeviceGetC2cModeInfoV", device, |target| {
        let enabled = target.read("c2c.enabled")? as u32;
        // SAFETY: by NVML's contract the pointer is null or points to the structure.
        unsafe {
            put(
                info,
                nvmlC2cModeInfo_v1_t {
                    isC2cEnabled: enabled,
                },
            )
        }
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetRepairStatus(
    device: nvmlDevice_t,
    status: *mut nvmlRepairStatus_t,
) -> nvmlReturn_t {
    answer_for("nvmlDeviceGetRepairStatus", device, |target| {
        // SAFETY: by NVML's contract the pointer is null or points to the structure with its version.
        let mut answer = unsafe { get_versioned(status, 1) }?;
        answer.bChannelRepairPending = target.read("repair.channel_pending")? as u32;
        answer.bTpcRepairPending = target.read("repair.tpc_pending")? as u32;
        // SAFETY: as above.
        unsafe { put(status, answer) }
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetPlatformInfo(
    device: nvmlDevice_t,
    info: *mut nvmlPlatformInfo_t,
) -> nvmlReturn_t {
    answer_for("nvmlDeviceGetPlatformInfo", device, |target| {
        let number = |name: &str| {
            target
                .read(&format!("platform.{name}"))
                .map(|number| number as u8)
        };
        // SAFETY: by NVML's contract the pointer is null or points to the structure with its version.
        let mut answer = unsafe { get_versioned(info, 2) }?;
        answer.slotNumber = number("slot")?;
        answer.trayIndex = number("tray")?;
        answer.hostId = number("host")?;
        answer.peerType = number("peer_type")?;
        answer.moduleId = number("module")?;
        // SAFETY: as above.
        unsafe { put(info, answer) }
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetDynamicPstatesInfo(
    device: nvmlDevice_t,
    info: *mut nvmlGpuDynamicPstatesInfo_t,
) -> nvmlReturn_t {
    answer_for("nvmlDeviceGetDynamicPstatesInfo", device, |target| {
        let share = |reading: &str| target.read(reading).map(|percent| percent as u32);
        let part = |percentage: Option<u32>| nvmlGpuDynamicPstatesInfo_st__bindgen_ty_1 {
            bIsPresent: percentage.is_some().into(),
            percentage: percentage.unwrap_or_default(),
            incThreshold: 0,
            decThreshold: 0,
        };
        let mut utilization = [part(None); 8];
        utilization[0] = part(Some(share("utilization.gpu_percent")?));
        utilization[1] = part(share("utilization.memory_percent").ok());
        utilization[2] = part(share("utilization.decoder_percent").ok());
        // SAFETY: by NVML's contract the pointer is null or points to the structure.
        unsafe {
            put(
                info,
                nvmlGpuDynamicPstatesInfo_t {
                    flags: 0,
                    utilization,
                },
            )
        }
    })
}
