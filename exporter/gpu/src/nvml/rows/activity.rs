//! The utilization of the GPU, as the driver samples it.

use nvml_wrapper::enum_wrappers::device::Sampling;
use pulsetrain_semconv::{attribute::GPU_TASK, metric};

use super::super::{
    ffi,
    row::{Cadence::Tick, QueryContext, QueryError, Row},
    samples,
};
use crate::reading::{Fixed, Labels, Readings};

/// The factor from percent to a share.
const PERCENT: f64 = 0.01;

const SPLIT: &str = "a GPU with MIG has it only as counters of its instances";

pub(super) static ROWS: &[Row] = &[
    Row::call(
        &metric::GPU_UTILIZATION,
        "nvmlDeviceGetUtilizationRates",
        Tick,
        SPLIT,
        |gpu, out| {
            let rates = gpu.device.utilization_rates()?;
            put(out, &[(&GPU_TASK, "general")], rates.gpu);
            let activity = f64::from(rates.memory) * PERCENT;
            out.now(&metric::GPU_MEMORY_ACTIVITY, Labels::default(), activity);
            Ok(())
        },
    )
    .also(&[&metric::GPU_MEMORY_ACTIVITY]),
    Row::call(
        &metric::GPU_UTILIZATION,
        "nvmlDeviceGetEncoderUtilization",
        Tick,
        "there is no encoder",
        |gpu, out| {
            let busy = gpu.device.encoder_utilization()?.utilization;
            put(out, &[(&GPU_TASK, "encoder")], busy);
            Ok(())
        },
    ),
    Row::call(
        &metric::GPU_UTILIZATION,
        "nvmlDeviceGetDecoderUtilization",
        Tick,
        "there is no decoder",
        |gpu, out| {
            let busy = gpu.device.decoder_utilization()?.utilization;
            put(out, &[(&GPU_TASK, "decoder")], busy);
            Ok(())
        },
    ),
    Row::call(
        &metric::GPU_UTILIZATION,
        "nvmlDeviceGetJpgUtilization",
        Tick,
        "there is no JPEG engine",
        |gpu, out| {
            put(out, &[(&GPU_TASK, "jpeg")], ffi::jpg_utilization(gpu.device)?);
            Ok(())
        },
    ),
    Row::call(
        &metric::GPU_UTILIZATION,
        "nvmlDeviceGetOfaUtilization",
        Tick,
        "there is no optical flow engine",
        |gpu, out| {
            put(out, &[(&GPU_TASK, "ofa")], ffi::ofa_utilization(gpu.device)?);
            Ok(())
        },
    ),
    Row::call(
        &metric::GPU_UTILIZATION_DISTRIBUTION,
        "nvmlDeviceGetSamples(NVML_GPU_UTILIZATION_SAMPLES)",
        Tick,
        "the driver keeps no samples",
        drain_utilization,
    ),
];

fn put(out: &mut Readings, task: Fixed, percent: u32) {
    let share = f64::from(percent) * PERCENT;
    out.now(&metric::GPU_UTILIZATION, Labels::fixed(task), share);
}

fn drain_utilization(gpu: &QueryContext<'_, '_>, out: &mut Readings) -> Result<(), QueryError> {
    let metric = &metric::GPU_UTILIZATION_DISTRIBUTION;
    samples::drain(
        gpu.device,
        Sampling::GpuUtilization,
        &gpu.seen.utilization,
        PERCENT,
        metric,
        out,
    )
}
