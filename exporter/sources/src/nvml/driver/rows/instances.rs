//! What an instance of a split GPU tells of itself; its performance counters are those of the GPU.

use pulsetrain_semconv::metric;

use super::{
    super::row::{Cadence::Tick, Row},
    memory::put_memory,
};

pub(super) static ROWS: &[Row] = &[Row::call(
    &metric::GPU_MEMORY_USED,
    "nvmlDeviceGetMemoryInfo_v2",
    Tick,
    "the instance does not say",
    |instance, out| {
        put_memory(&instance.device.memory_info()?, out);
        Ok(())
    },
)];
