//! What each process takes of the GPU: real numbers of each, never the GPU's as a whole.

use std::collections::BTreeMap;

use pulsetrain_semconv::{
    attribute::GPU_ENGINE_NAME,
    metric::{GPU_PROCESS_MEMORY, GPU_PROCESS_PEAK_MEMORY, GPU_PROCESS_TIME, GPU_PROCESS_UTILIZATION},
};

use super::super::row::{Asked, Cadence::Seldom, Refusal, Row};
use crate::nvml::{
    Reason,
    reading::{Labels, Readings, Whose},
};

const HIDDEN: &str = "the driver does not let us see the processes";
const NO_ACCOUNTING: &str = "accounting is off: nvidia-smi --accounting-mode=1 turns it on";

pub(super) static ROWS: &[Row] = &[
    Row::call(
        &GPU_PROCESS_MEMORY,
        "nvmlDeviceGetComputeRunningProcesses_v3",
        Seldom,
        HIDDEN,
        |gpu, out| {
            for process in gpu.processes.map_err(Refusal::Because)? {
                let Some(bytes) = process.memory_bytes else {
                    continue;
                };
                out.whose = Whose::Process(process.pid);
                out.now(&GPU_PROCESS_MEMORY, Labels::default(), bytes as f64);
            }
            Ok(())
        },
    ),
    Row::call(
        &GPU_PROCESS_UTILIZATION,
        "nvmlDeviceGetProcessUtilization",
        Seldom,
        "the driver keeps no samples of processes",
        utilization,
    ),
    Row::call(
        &GPU_PROCESS_PEAK_MEMORY,
        "nvmlDeviceGetAccountingStats",
        Seldom,
        NO_ACCOUNTING,
        accounting,
    )
    .also(&[&GPU_PROCESS_TIME]),
];

/// The mean of what the driver has sampled since it was asked last, by process.
fn utilization(gpu: &Asked<'_, '_>, out: &mut Readings) -> Result<(), Refusal> {
    let samples = match gpu.device.process_utilization_stats(gpu.seen.processes.get()) {
        Ok(samples) => samples,
        // Nothing ran.
        Err(nvml_wrapper::error::NvmlError::NotFound) => return Ok(()),
        Err(error) => return Err(error.into()),
    };
    let mut sums = BTreeMap::<u32, (f64, [u32; 4])>::new();
    for sample in samples {
        gpu.seen
            .processes
            .set(gpu.seen.processes.get().max(sample.timestamp));
        // What the driver gives for a process that it has not sampled.
        if sample.timestamp == 0 {
            continue;
        }
        let (count, sum) = sums.entry(sample.pid).or_default();
        *count += 1.0;
        let engines = [sample.sm_util, sample.mem_util, sample.enc_util, sample.dec_util];
        sum.iter_mut()
            .zip(engines)
            .for_each(|(sum, percent)| *sum += percent);
    }
    for (pid, (count, sum)) in sums {
        out.whose = Whose::Process(pid);
        let shares = sum.map(|percent| f64::from(percent) / count / 100.0);
        let engine = |name| Labels::fixed(name);
        out.now(
            &GPU_PROCESS_UTILIZATION,
            engine(&[(&GPU_ENGINE_NAME, "sm")]),
            shares[0],
        );
        out.now(
            &GPU_PROCESS_UTILIZATION,
            engine(&[(&GPU_ENGINE_NAME, "memory")]),
            shares[1],
        );
        out.now(
            &GPU_PROCESS_UTILIZATION,
            engine(&[(&GPU_ENGINE_NAME, "nvenc")]),
            shares[2],
        );
        out.now(
            &GPU_PROCESS_UTILIZATION,
            engine(&[(&GPU_ENGINE_NAME, "nvdec")]),
            shares[3],
        );
    }
    Ok(())
}

fn accounting(gpu: &Asked<'_, '_>, out: &mut Readings) -> Result<(), Refusal> {
    if !gpu.device.is_accounting_enabled()? {
        return Err(Refusal::Because(Reason::TurnedOff));
    }
    for process in gpu.processes.map_err(Refusal::Because)? {
        // One that has just begun is not in the books yet.
        let Ok(stats) = gpu.device.accounting_stats_for(process.pid) else {
            continue;
        };
        out.whose = Whose::Process(process.pid);
        if let Some(bytes) = stats.max_memory_usage {
            out.now(&GPU_PROCESS_PEAK_MEMORY, Labels::default(), bytes as f64);
        }
        out.total(&GPU_PROCESS_TIME, Labels::default(), stats.time, 1e-3);
    }
    Ok(())
}
