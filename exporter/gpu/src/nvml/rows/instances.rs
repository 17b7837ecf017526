//! The metrics of a MIG instance; it has the same performance counters as a GPU.

use pulsetrain_semconv::metric;

use super::{
    super::row::{Cadence::Tick, Row},
    memory::now,
};

pub(super) static ROWS: &[Row] = &[Row::call(
    &metric::GPU_MIG_MEMORY_USED,
    "nvmlDeviceGetMemoryInfo_v2",
    Tick,
    "the instance does not report it",
    |instance, out| {
        let memory = instance.device.memory_info()?;
        now(&metric::GPU_MIG_MEMORY_USED, memory.used, out);
        now(&metric::GPU_MIG_MEMORY_FREE, memory.free, out);
        now(&metric::GPU_MIG_MEMORY_RESERVED, memory.reserved, out);
        now(&metric::GPU_MIG_MEMORY_LIMIT, memory.total, out);
        Ok(())
    },
)
.also(&[
    &metric::GPU_MIG_MEMORY_FREE,
    &metric::GPU_MIG_MEMORY_RESERVED,
    &metric::GPU_MIG_MEMORY_LIMIT,
])];
