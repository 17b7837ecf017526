//! Accounting: the GPU usage of each process since it started, if accounting is enabled.

use std::ffi::c_uint;

use nvml_wrapper_sys::bindings::{
    nvmlAccountingStats_t, nvmlDevice_t, nvmlReturn_enum_NVML_ERROR_NOT_FOUND as NOT_FOUND,
    nvmlReturn_enum_NVML_ERROR_NOT_SUPPORTED as NOT_SUPPORTED, nvmlReturn_t,
};

use crate::{
    call::{CallTarget, answer_for},
    function::Function,
    gpu::Process,
    out::{put, put_list},
};

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetAccountingPids(
    device: nvmlDevice_t,
    count: *mut c_uint,
    pids: *mut c_uint,
) -> nvmlReturn_t {
    answer_for("nvmlDeviceGetAccountingPids", device, |target| {
        require_accounting(target)?;
        let begun: Vec<c_uint> = begun(target).filter_map(Process::pid).collect();
        // SAFETY: by NVML's contract `count` points to the capacity of `pids`.
        unsafe { put_list(pids, count, &begun) }
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetAccountingStats(
    device: nvmlDevice_t,
    pid: c_uint,
    stats: *mut nvmlAccountingStats_t,
) -> nvmlReturn_t {
    answer_for("nvmlDeviceGetAccountingStats", device, |target| {
        require_accounting(target)?;
        let process = begun(target)
            .find(|process| process.pid() == Some(pid))
            .ok_or(NOT_FOUND)?;
        // SAFETY: by NVML's contract the pointer is null or points to the structure.
        unsafe { put(stats, account(target, process)) }
    })
}

fn account(target: &CallTarget, process: &Process) -> nvmlAccountingStats_t {
    let ended = process.until.filter(|until| *until <= target.second);
    let last = ended.unwrap_or(target.second);
    let mean = |percent: &Option<Function>| {
        percent
            .as_ref()
            .map_or(u32::MAX, |percent| percent.mean(process.from, last) as u32)
    };
    let most = process
        .memory_max_bytes
        .as_ref()
        .or(process.memory_bytes.as_ref());
    nvmlAccountingStats_t {
        gpuUtilization: mean(&process.sm_percent),
        memoryUtilization: mean(&process.memory_percent),
        maxMemoryUsage: most.map_or(u64::MAX, |bytes| bytes.at(last) as u64),
        // Zero until the process has ended, as in NVML.
        time: ended.map_or(0, |ended| ((ended - process.from) * 1e3) as u64),
        startTime: target.world.clock.stamp_micros(process.from),
        isRunning: ended.is_none().into(),
        reserved: [0; 5],
    }
}

fn begun(target: &CallTarget) -> impl Iterator<Item = &Process> {
    let processes = target.gpu.processes.iter();
    processes.filter(|process| process.from <= target.second)
}

fn require_accounting(target: &CallTarget) -> Result<(), nvmlReturn_t> {
    if target.read("mode.accounting")? == 0.0 {
        Err(NOT_SUPPORTED)
    } else {
        Ok(())
    }
}
