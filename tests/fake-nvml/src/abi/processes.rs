//! The processes on a GPU: their memory, and their utilization by engine.

use std::ffi::{c_uint, c_ulonglong};

use nvml_wrapper_sys::bindings::{
    nvmlDevice_t, nvmlProcessInfo_t, nvmlProcessInfo_v1_t, nvmlProcessUtilizationInfo_v1_t,
    nvmlProcessUtilizationSample_t, nvmlProcessesUtilizationInfo_t,
    nvmlReturn_enum_NVML_ERROR_NO_PERMISSION as NO_PERMISSION,
    nvmlReturn_enum_NVML_ERROR_NOT_FOUND as NOT_FOUND,
    nvmlReturn_enum_NVML_ERROR_NOT_SUPPORTED as NOT_SUPPORTED, nvmlReturn_t,
};

use crate::{
    call::{CallTarget, answer_for},
    function::Function,
    gpu::{Process, ProcessKind},
    out::{get_versioned, put, put_list},
};

/// Calls that list the processes of a kind, with the current structure and with the first version of it.
macro_rules! lists {
    ($($call:ident: $info:ident => $kind:expr;)*) => {$(
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $call(device: nvmlDevice_t, count: *mut c_uint, infos: *mut $info) -> nvmlReturn_t {
            answer_for(stringify!($call), device, |target| {
                if target.mig.is_none() && target.read("mig.restricted").is_ok() {
                    return Err(NO_PERMISSION);
                }
                let listed: Vec<$info> = of_kind(target, $kind).map(|process| process.$info(target.second)).collect();
                // SAFETY: by NVML's contract `count` points to the capacity of `infos`.
                unsafe { put_list(infos, count, &listed) }
            })
        }
    )*};
}

lists! {
    nvmlDeviceGetComputeRunningProcesses_v3: nvmlProcessInfo_t => ProcessKind::Compute;
    nvmlDeviceGetGraphicsRunningProcesses_v3: nvmlProcessInfo_t => ProcessKind::Graphics;
    nvmlDeviceGetMPSComputeRunningProcesses_v3: nvmlProcessInfo_t => ProcessKind::Mps;
    nvmlDeviceGetComputeRunningProcesses_v2: nvmlProcessInfo_t => ProcessKind::Compute;
    nvmlDeviceGetGraphicsRunningProcesses_v2: nvmlProcessInfo_t => ProcessKind::Graphics;
    nvmlDeviceGetComputeRunningProcesses: nvmlProcessInfo_v1_t => ProcessKind::Compute;
    nvmlDeviceGetGraphicsRunningProcesses: nvmlProcessInfo_v1_t => ProcessKind::Graphics;
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetProcessUtilization(
    device: nvmlDevice_t,
    utilization: *mut nvmlProcessUtilizationSample_t,
    count: *mut c_uint,
    last_seen: c_ulonglong,
) -> nvmlReturn_t {
    answer_for("nvmlDeviceGetProcessUtilization", device, |target| {
        let listed: Vec<_> = busy(target, last_seen)?
            .iter()
            .map(|busy| nvmlProcessUtilizationSample_t {
                pid: busy.pid,
                timeStamp: busy.timeStamp,
                smUtil: busy.smUtil,
                memUtil: busy.memUtil,
                encUtil: busy.encUtil,
                decUtil: busy.decUtil,
            })
            .collect();
        // SAFETY: by NVML's contract `count` points to the capacity of `utilization`.
        unsafe { put_list(utilization, count, &listed) }
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetProcessesUtilizationInfo(
    device: nvmlDevice_t,
    info: *mut nvmlProcessesUtilizationInfo_t,
) -> nvmlReturn_t {
    answer_for("nvmlDeviceGetProcessesUtilizationInfo", device, |target| {
        // SAFETY: by NVML's contract the pointer is null or points to the structure with its capacity and its array.
        let mut asked = unsafe { get_versioned(info, 1) }?;
        let listed = busy(target, asked.lastSeenTimeStamp)?;
        // SAFETY: as above; the count is a separate variable and the array has that capacity.
        let reply = unsafe { put_list(asked.procUtilArray, &mut asked.processSamplesCount, &listed) };
        // SAFETY: as above.
        unsafe { put(info, asked) }?;
        reply
    })
}

impl Process {
    fn nvmlProcessInfo_t(&self, second: f64) -> nvmlProcessInfo_t {
        nvmlProcessInfo_t {
            pid: self.pid().unwrap_or_default(),
            usedGpuMemory: self.memory(second),
            gpuInstanceId: self.gpu_instance.unwrap_or(u32::MAX),
            computeInstanceId: self.compute_instance.unwrap_or(u32::MAX),
        }
    }

    fn nvmlProcessInfo_v1_t(&self, second: f64) -> nvmlProcessInfo_v1_t {
        nvmlProcessInfo_v1_t {
            pid: self.pid().unwrap_or_default(),
            usedGpuMemory: self.memory(second),
        }
    }

    /// Returns the memory, or NVML's "not available" if the driver does not report it.
    fn memory(&self, second: f64) -> u64 {
        self.memory_bytes
            .as_ref()
            .map_or(u64::MAX, |bytes| bytes.at(second) as u64)
    }
}

/// Returns the processes of a kind that the target shows: those of the GPU, or those of the MIG instance.
fn of_kind(target: &CallTarget, kind: ProcessKind) -> impl Iterator<Item = &Process> {
    running(target).filter(move |process| process.kind == kind && !process.elsewhere)
}

fn running(target: &CallTarget) -> impl Iterator<Item = &Process> {
    let processes = target.gpu.processes.iter();
    processes.filter(|process| {
        let here = target.mig.is_none_or(|mig| {
            process.gpu_instance == Some(mig.gpu_instance)
                && process
                    .compute_instance
                    .is_none_or(|instance| instance == mig.compute_instance)
        });
        here && process.runs(target.second)
    })
}

/// Returns the samples of the last full second, one per measured process, if they are newer than the last seen one.
fn busy(target: &CallTarget, last_seen: u64) -> Result<Vec<nvmlProcessUtilizationInfo_v1_t>, nvmlReturn_t> {
    // The driver measures no process of a partitioned GPU.
    target.full_gpu()?;
    if target.read("mode.mig").is_ok_and(|mode| mode != 0.0) {
        return Err(NOT_SUPPORTED);
    }
    let second = target.second.floor();
    let stamp = target.world.clock.stamp_micros(second);
    let measured = running(target).filter(|process| process.sm_percent.is_some() && stamp > last_seen);
    let percent = |function: &Option<Function>| function.as_ref().map_or(0, |share| share.at(second) as u32);
    // "One utilization sample structure is returned per process running, that had some non-zero utilization" (nvml.h).
    let listed: Vec<_> = measured
        .map(|process| nvmlProcessUtilizationInfo_v1_t {
            timeStamp: stamp,
            pid: process.pid().unwrap_or_default(),
            smUtil: percent(&process.sm_percent),
            memUtil: percent(&process.memory_percent),
            encUtil: percent(&process.encoder_percent),
            decUtil: percent(&process.decoder_percent),
            jpgUtil: 0,
            ofaUtil: 0,
        })
        .filter(|busy| busy.smUtil + busy.memUtil + busy.encUtil + busy.decUtil > 0)
        .collect();
    if listed.is_empty() {
        Err(NOT_FOUND)
    } else {
        Ok(listed)
    }
}
