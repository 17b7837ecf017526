//! The board of the GPU: its module, its link to the CPU, its repair state, and thermal sensors of older boards.

use nvml_wrapper_sys::bindings::{
    nvmlC2cModeInfo_v1_t, nvmlDevice_t, nvmlGpuDynamicPstatesInfo_st__bindgen_ty_1,
    nvmlGpuDynamicPstatesInfo_t, nvmlPlatformInfo_t, nvmlRepairStatus_t, nvmlReturn_t,
    nvmlWorkloadPowerProfileCurrentProfiles_t,
};

use crate::{
    call::{CallTarget, answer_for},
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

/// `nvmlUnrepairableMemoryStatus_v1_t` of driver 590, which the bindings do not have.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct UnrepairableMemory {
    version: u32,
    unrepairable: u32,
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetUnrepairableMemoryFlag_v1(
    device: nvmlDevice_t,
    status: *mut UnrepairableMemory,
) -> nvmlReturn_t {
    answer_for("nvmlDeviceGetUnrepairableMemoryFlag_v1", device, |target| {
        // SAFETY: by NVML's contract the pointer is null or points to the structure with its version.
        let mut answer = unsafe { get_versioned(status, 1) }?;
        answer.unrepairable = target.read("repair.unrepairable_memory")? as u32;
        // SAFETY: as above.
        unsafe { put(status, answer) }
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceWorkloadPowerProfileGetCurrentProfiles(
    device: nvmlDevice_t,
    profiles: *mut nvmlWorkloadPowerProfileCurrentProfiles_t,
) -> nvmlReturn_t {
    answer_for(
        "nvmlDeviceWorkloadPowerProfileGetCurrentProfiles",
        device,
        |target| {
            // SAFETY: by NVML's contract the pointer is null or points to the structure with its version.
            let mut answer = unsafe { get_versioned(profiles, 1) }?;
            for (mask, reading) in [
                (&mut answer.perfProfilesMask, "power_profiles.supported"),
                (&mut answer.requestedProfilesMask, "power_profiles.requested"),
                (&mut answer.enforcedProfilesMask, "power_profiles.enforced"),
            ] {
                let bits = self::mask(target, reading)?;
                (mask.mask[0], mask.mask[1]) = (bits as u32, (bits >> 32) as u32);
            }
            // SAFETY: as above.
            unsafe { put(profiles, answer) }
        },
    )
}

fn mask(target: &CallTarget, reading: &str) -> Result<u64, nvmlReturn_t> {
    target.read(reading).map(|mask| mask as u64)
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
        for (byte, letter) in answer
            .chassisSerialNumber
            .iter_mut()
            .zip(target.fact("chassis_serial_number").unwrap_or_default().bytes())
        {
            *byte = letter;
        }
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
