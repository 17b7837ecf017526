//! The usage of each process, as the driver measures it; never a share of the usage of the GPU.

use std::collections::BTreeMap;

use nvml_wrapper::error::NvmlError;
use pulsetrain_semconv::{
    attribute::GPU_ENGINE_NAME,
    metric::{GPU_PROCESS_MEMORY, GPU_PROCESS_PEAK_MEMORY, GPU_PROCESS_TIME, GPU_PROCESS_UTILIZATION},
};

use super::super::row::{Cadence::Infrequent, QueryContext, QueryError, Row};
use crate::{
    Reason,
    reading::{Entity, Fixed, Labels, Readings},
};

/// Each process has samples at its own times: samples that are slightly older than the newest are requested again.
const OVERLAP_MICROS: u64 = 1_000_000;

/// The engines in the order of the driver's samples.
const ENGINES: [Fixed; 4] = [
    &[(&GPU_ENGINE_NAME, "sm")],
    &[(&GPU_ENGINE_NAME, "memory")],
    &[(&GPU_ENGINE_NAME, "nvenc")],
    &[(&GPU_ENGINE_NAME, "nvdec")],
];

const HIDDEN: &str = "the driver does not show the processes";
const NO_ACCOUNTING: &str = "accounting is off: nvidia-smi --accounting-mode=1 turns it on";

pub(super) static ROWS: &[Row] = &[
    Row::call(
        &GPU_PROCESS_MEMORY,
        "nvmlDeviceGetComputeRunningProcesses_v3",
        Infrequent,
        HIDDEN,
        |gpu, out| {
            for process in gpu.processes.map_err(QueryError::Because)? {
                let Some(bytes) = process.memory_bytes else {
                    continue;
                };
                out.entity = Entity::Process(process.pid);
                out.now(&GPU_PROCESS_MEMORY, Labels::default(), bytes as f64);
            }
            Ok(())
        },
    ),
    Row::call(
        &GPU_PROCESS_UTILIZATION,
        "nvmlDeviceGetProcessUtilization",
        Infrequent,
        "the driver keeps no samples of processes",
        utilization,
    ),
    Row::call(
        &GPU_PROCESS_PEAK_MEMORY,
        "nvmlDeviceGetAccountingStats",
        Infrequent,
        NO_ACCOUNTING,
        accounting,
    )
    .also(&[&GPU_PROCESS_TIME]),
];

/// Reads the mean of the samples since the last query, by process. The driver lists a process only while it uses a part of the
/// GPU (`nvml.h`): the other processes on the GPU are idle.
fn utilization(gpu: &QueryContext<'_, '_>, out: &mut Readings) -> Result<(), QueryError> {
    let processes = gpu.processes.map_err(QueryError::Because)?;
    let mut means: BTreeMap<u32, Mean> = processes
        .iter()
        .map(|process| (process.pid, Mean::default()))
        .collect();
    let mut seen = gpu.seen.processes.borrow_mut();
    let newest = seen.values().copied().max().unwrap_or_default();
    let samples = match gpu
        .device
        .process_utilization_stats(newest.saturating_sub(OVERLAP_MICROS))
    {
        Ok(samples) => samples,
        // No process ran.
        Err(NvmlError::NotFound) => Vec::new(),
        Err(error) => return Err(error.into()),
    };
    for sample in samples {
        // The driver reports time 0 for a process that it has not sampled, and samples of the overlap again.
        let last = seen.entry(sample.pid).or_default();
        if sample.timestamp <= *last {
            continue;
        }
        *last = sample.timestamp;
        let percents = [sample.sm_util, sample.mem_util, sample.enc_util, sample.dec_util];
        if percents.iter().any(|percent| *percent > 100) {
            // Drivers are known to fill samples with garbage.
            means.remove(&sample.pid);
        } else if let Some(mean) = means.get_mut(&sample.pid) {
            mean.add(percents);
        }
    }
    seen.retain(|_, last| *last >= newest.saturating_sub(OVERLAP_MICROS));
    for (pid, mean) in means {
        out.entity = Entity::Process(pid);
        for (engine, share) in ENGINES.into_iter().zip(mean.shares()) {
            out.now(&GPU_PROCESS_UTILIZATION, Labels::fixed(engine), share);
        }
    }
    Ok(())
}

/// The mean of samples in percent.
#[derive(Default)]
struct Mean {
    count: u32,
    sums: [f64; 4],
}

impl Mean {
    fn add(&mut self, percents: [u32; 4]) {
        self.count += 1;
        for (sum, percent) in self.sums.iter_mut().zip(percents) {
            *sum += f64::from(percent);
        }
    }

    /// Returns shares of 1: zero without a sample.
    fn shares(&self) -> [f64; 4] {
        let count = f64::from(self.count.max(1));
        self.sums.map(|sum| sum / count / 100.0)
    }
}

fn accounting(gpu: &QueryContext<'_, '_>, out: &mut Readings) -> Result<(), QueryError> {
    if !gpu.device.is_accounting_enabled()? {
        return Err(QueryError::Because(Reason::TurnedOff));
    }
    for process in gpu.processes.map_err(QueryError::Because)? {
        // A process that has just started has no statistics yet.
        let Ok(stats) = gpu.device.accounting_stats_for(process.pid) else {
            continue;
        };
        out.entity = Entity::Process(process.pid);
        if let Some(bytes) = stats.max_memory_usage {
            out.now(&GPU_PROCESS_PEAK_MEMORY, Labels::default(), bytes as f64);
        }
        out.total(&GPU_PROCESS_TIME, Labels::default(), stats.time, 1e-3);
    }
    Ok(())
}
