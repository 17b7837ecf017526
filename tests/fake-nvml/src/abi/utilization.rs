//! Values in structures: utilization, fan speed in RPM, temperatures of the newer calls, throttle time, fabric.

use nvml_wrapper_sys::bindings::{
    nvmlDevice_t, nvmlFanSpeedInfo_t, nvmlGpuFabricInfo_t, nvmlGpuFabricInfo_v2_t, nvmlGpuFabricInfo_v3_t,
    nvmlGpuFabricInfoV_t, nvmlMarginTemperature_t,
    nvmlReturn_enum_NVML_ERROR_ARGUMENT_VERSION_MISMATCH as VERSION_MISMATCH, nvmlReturn_t,
    nvmlTemperature_t, nvmlUtilization_t, nvmlViolationTime_t,
};

use crate::{
    call::{CallTarget, answer_for},
    out::{get, get_versioned, put},
};

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetUtilizationRates(
    device: nvmlDevice_t,
    utilization: *mut nvmlUtilization_t,
) -> nvmlReturn_t {
    answer_for("nvmlDeviceGetUtilizationRates", device, |target| {
        let answer = nvmlUtilization_t {
            gpu: target.read("utilization.gpu_percent")? as u32,
            memory: target.read("utilization.memory_percent")? as u32,
        };
        // SAFETY: by NVML's contract the pointer is null or points to the structure.
        unsafe { put(utilization, answer) }
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetFanSpeedRPM(
    device: nvmlDevice_t,
    info: *mut nvmlFanSpeedInfo_t,
) -> nvmlReturn_t {
    answer_for("nvmlDeviceGetFanSpeedRPM", device, |target| {
        // SAFETY: by NVML's contract the pointer is null or points to the structure with its fan.
        let mut answer = unsafe { get_versioned(info, 1) }?;
        answer.speed = target.read(&format!("fan.{}.rpm", answer.fan))? as u32;
        // SAFETY: as above.
        unsafe { put(info, answer) }
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetTemperatureV(
    device: nvmlDevice_t,
    info: *mut nvmlTemperature_t,
) -> nvmlReturn_t {
    answer_for("nvmlDeviceGetTemperatureV", device, |target| {
        // SAFETY: by NVML's contract the pointer is null or points to the structure with its sensor.
        let mut answer = unsafe { get_versioned(info, 1) }?;
        answer.temperature = target.read("temperature.gpu_c")? as i32;
        // SAFETY: as above.
        unsafe { put(info, answer) }
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetMarginTemperature(
    device: nvmlDevice_t,
    info: *mut nvmlMarginTemperature_t,
) -> nvmlReturn_t {
    answer_for("nvmlDeviceGetMarginTemperature", device, |target| {
        // SAFETY: by NVML's contract the pointer is null or points to the structure with its version.
        let mut answer = unsafe { get_versioned(info, 1) }?;
        answer.marginTemperature = target.read("temperature.margin_c")? as i32;
        // SAFETY: as above.
        unsafe { put(info, answer) }
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetViolationStatus(
    device: nvmlDevice_t,
    policy: u32,
    time: *mut nvmlViolationTime_t,
) -> nvmlReturn_t {
    answer_for("nvmlDeviceGetViolationStatus", device, |target| {
        let answer = nvmlViolationTime_t {
            referenceTime: target.world.clock.stamp_micros(target.second),
            violationTime: target.read(&format!("throttle.{}_ns", policy_name(policy)))? as u64,
        };
        // SAFETY: by NVML's contract the pointer is null or points to the structure.
        unsafe { put(time, answer) }
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetGpuFabricInfo(
    device: nvmlDevice_t,
    info: *mut nvmlGpuFabricInfo_t,
) -> nvmlReturn_t {
    answer_for("nvmlDeviceGetGpuFabricInfo", device, |target| {
        let fabric = fabric(target)?;
        let answer = nvmlGpuFabricInfo_t {
            clusterUuid: fabric.clusterUuid,
            status: fabric.status,
            cliqueId: fabric.cliqueId,
            state: fabric.state,
        };
        // SAFETY: by NVML's contract the pointer is null or points to the structure.
        unsafe { put(info, answer) }
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetGpuFabricInfoV(
    device: nvmlDevice_t,
    info: *mut nvmlGpuFabricInfoV_t,
) -> nvmlReturn_t {
    answer_for("nvmlDeviceGetGpuFabricInfoV", device, |target| {
        let mut fabric = fabric(target)?;
        // SAFETY: every version of the structure begins with its number.
        fabric.version = unsafe { get(info.cast::<u32>()) }?;
        // A driver without a health summary does not support the third version.
        let has_summary = target.read("fabric.health_summary").is_ok();
        if has_summary && fabric.version == size_of::<nvmlGpuFabricInfo_v3_t>() as u32 | 3 << 24 {
            // SAFETY: the caller passes the third version; the pointer type may be an alias of another version.
            return unsafe { put(info.cast(), fabric) };
        }
        if fabric.version != size_of::<nvmlGpuFabricInfo_v2_t>() as u32 | 2 << 24 {
            return Err(VERSION_MISMATCH);
        }
        let second = nvmlGpuFabricInfo_v2_t {
            version: fabric.version,
            clusterUuid: fabric.clusterUuid,
            status: fabric.status,
            cliqueId: fabric.cliqueId,
            state: fabric.state,
            healthMask: fabric.healthMask,
        };
        // SAFETY: the caller passes the second version.
        unsafe { put(info.cast(), second) }
    })
}

fn fabric(target: &CallTarget) -> Result<nvmlGpuFabricInfo_v3_t, nvmlReturn_t> {
    let cluster = u128::from_str_radix(target.fact("fabric_cluster")?, 16).unwrap_or_default();
    Ok(nvmlGpuFabricInfo_v3_t {
        version: 0,
        clusterUuid: cluster.to_be_bytes(),
        status: target.read("fabric.status")? as u32,
        cliqueId: target.read("fabric.clique")? as u32,
        state: target.read("fabric.state")? as u8,
        healthMask: target.read("fabric.health_mask")? as u32,
        healthSummary: target.read("fabric.health_summary").unwrap_or_default() as u8,
    })
}

fn policy_name(policy: u32) -> &'static str {
    match policy {
        0 => "power",
        1 => "thermal",
        2 => "sync_boost",
        3 => "board_limit",
        4 => "low_utilization",
        5 => "reliability",
        10 => "app_clocks",
        11 => "base_clocks",
        _ => "?",
    }
}
