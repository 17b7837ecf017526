//! The utilization of the GPU, as the driver samples it.

use nvml_wrapper::enum_wrappers::device::Sampling;
use pulsetrain_semconv::{attribute::GPU_TASK, metric};

use super::super::{
    ffi,
    row::{Cadence::Tick, QueryContext, QueryError, Row},
    samples,
};
use crate::reading::{Labels, Readings};

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
            let general = Labels::fixed(&[(&GPU_TASK, "general")]);
            out.now(&metric::GPU_UTILIZATION, general, share(rates.gpu));
            out.now(
                &metric::GPU_MEMORY_ACTIVITY,
                Labels::default(),
                share(rates.memory),
            );
            Ok(())
        },
    )
    .also(&[&metric::GPU_MEMORY_ACTIVITY]),
    Row::value(
        &metric::GPU_UTILIZATION,
        &[(&GPU_TASK, "encoder")],
        "nvmlDeviceGetEncoderUtilization",
        Tick,
        "there is no encoder",
        |gpu| Ok(share(gpu.device.encoder_utilization()?.utilization)),
    ),
    Row::value(
        &metric::GPU_UTILIZATION,
        &[(&GPU_TASK, "decoder")],
        "nvmlDeviceGetDecoderUtilization",
        Tick,
        "there is no decoder",
        |gpu| Ok(share(gpu.device.decoder_utilization()?.utilization)),
    ),
    Row::value(
        &metric::GPU_UTILIZATION,
        &[(&GPU_TASK, "jpeg")],
        "nvmlDeviceGetJpgUtilization",
        Tick,
        "there is no JPEG engine",
        |gpu| Ok(share(ffi::jpg_utilization(gpu.device)?)),
    ),
    Row::value(
        &metric::GPU_UTILIZATION,
        &[(&GPU_TASK, "ofa")],
        "nvmlDeviceGetOfaUtilization",
        Tick,
        "there is no optical flow engine",
        |gpu| Ok(share(ffi::ofa_utilization(gpu.device)?)),
    ),
    Row::call(
        &metric::GPU_UTILIZATION_DISTRIBUTION,
        "nvmlDeviceGetSamples(NVML_GPU_UTILIZATION_SAMPLES)",
        Tick,
        "the driver keeps no samples",
        drain_utilization,
    ),
];

fn share(percent: u32) -> f64 {
    f64::from(percent) * PERCENT
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
