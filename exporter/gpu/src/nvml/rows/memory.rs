//! Memory of the GPU.

use pulsetrain_semconv::metric;

use super::super::{
    ffi,
    row::{
        Cadence::{Infrequent, Once, Tick},
        Row,
    },
};
use crate::reading::{Labels, Readings};

const V2: &str = "nvmlDeviceGetMemoryInfo_v2";

const SHARED: &str = "the GPU has no memory of its own: it uses the host's";

pub(super) static ROWS: &[Row] = &[
    Row::call(&metric::GPU_MEMORY_USED, V2, Tick, SHARED, |gpu, out| {
        let memory = gpu.device.memory_info()?;
        now(&metric::GPU_MEMORY_USED, memory.used, out);
        now(&metric::GPU_MEMORY_FREE, memory.free, out);
        now(&metric::GPU_MEMORY_RESERVED, memory.reserved, out);
        now(&metric::GPU_MEMORY_LIMIT, memory.total, out);
        Ok(())
    })
    .also(&[
        &metric::GPU_MEMORY_FREE,
        &metric::GPU_MEMORY_RESERVED,
        &metric::GPU_MEMORY_LIMIT,
    ]),
    Row::call(
        &metric::GPU_MEMORY_USED,
        "nvmlDeviceGetMemoryInfo",
        Tick,
        SHARED,
        |gpu, out| {
            let (total, free, used) = ffi::memory_v1(gpu.device)?;
            now(&metric::GPU_MEMORY_USED, used, out);
            now(&metric::GPU_MEMORY_FREE, free, out);
            now(&metric::GPU_MEMORY_LIMIT, total, out);
            Ok(())
        },
    )
    .instead_of(V2)
    .also(&[&metric::GPU_MEMORY_FREE, &metric::GPU_MEMORY_LIMIT]),
    Row::value(
        &metric::GPU_BAR1_USED,
        &[],
        "nvmlDeviceGetBAR1MemoryInfo",
        Infrequent,
        "the GPU is not mapped into the host's addresses",
        |gpu| Ok(gpu.device.bar1_memory_info()?.used as f64),
    ),
    Row::value(
        &metric::GPU_BAR1_LIMIT,
        &[],
        "nvmlDeviceGetBAR1MemoryInfo",
        Once,
        "the GPU is not mapped into the host's addresses",
        |gpu| Ok(gpu.device.bar1_memory_info()?.total as f64),
    ),
    Row::call(
        &metric::GPU_PROTECTED_MEMORY_USED,
        "nvmlDeviceGetConfComputeProtectedMemoryUsage",
        Infrequent,
        "confidential computing is not in use",
        |gpu, out| {
            let (total, used) = ffi::protected_memory(gpu.device)?;
            now(&metric::GPU_PROTECTED_MEMORY_USED, used, out);
            now(&metric::GPU_PROTECTED_MEMORY_LIMIT, total, out);
            Ok(())
        },
    )
    .also(&[&metric::GPU_PROTECTED_MEMORY_LIMIT]),
];

/// Adds a number of bytes to `out`.
pub(super) fn now(metric: &'static pulsetrain_semconv::Metric, bytes: u64, out: &mut Readings) {
    out.now(metric, Labels::default(), bytes as f64);
}
