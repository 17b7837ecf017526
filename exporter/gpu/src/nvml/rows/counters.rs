//! The GPU's own performance counters (GPM), as means between two passes, of a GPU or of an instance.
//!
//! Each counter has an id in `nvml.h` (`nvmlGpmMetricId_t`).

use pulsetrain_semconv::{
    attribute::{GPU_ENGINE_NAME, GPU_IO_DIRECTION, GPU_PIPE},
    metric,
};

use super::super::row::Row;

/// The factor from percent to a share.
const PERCENT: f64 = 0.01;
/// Throughput is in MiB.
const MIB: f64 = 1_048_576.0;

const NO_PCIE: &str = "the GPU is older than Hopper or is split, or a profiler holds its counters; the counters of bytes that other \
                       GPUs have wrap several times a second";

const NO_DMMA: &str =
    "the GPU is older than Hopper, the driver older than 595, or a profiler holds its counters";
const NO_C2C: &str = "the GPU is not linked to a CPU, or a profiler holds its counters";

/// A row of a share of the time.
macro_rules! share {
    ($metric:ident, $call:literal, $id:literal, $labels:expr) => {
        Row::counter(&metric::$metric, $call, $id, $labels, PERCENT)
    };
}

/// A row of one kind of pipe.
macro_rules! pipe {
    ($pipe:literal, $call:literal, $id:literal) => {
        share!(GPU_PIPE_UTILIZATION, $call, $id, &[(&GPU_PIPE, $pipe)])
    };
}

/// A row of one engine of several.
macro_rules! engine {
    ($name:literal, $number:literal, $call:literal, $id:literal) => {
        share!(GPU_ENGINE_UTILIZATION, $call, $id, &[(&GPU_ENGINE_NAME, $name)]).engine($number)
    };
}

pub(super) static ROWS: &[Row] = &[
    share!(GPU_GRAPHICS_ACTIVE, "NVML_GPM_METRIC_GRAPHICS_UTIL", 1, &[]),
    share!(GPU_SM_ACTIVE, "NVML_GPM_METRIC_SM_UTIL", 2, &[]),
    share!(GPU_SM_OCCUPANCY, "NVML_GPM_METRIC_SM_OCCUPANCY", 3, &[]),
    pipe!("tensor", "NVML_GPM_METRIC_ANY_TENSOR_UTIL", 5),
    pipe!("tensor_half", "NVML_GPM_METRIC_HMMA_TENSOR_UTIL", 7),
    pipe!("tensor_int", "NVML_GPM_METRIC_IMMA_TENSOR_UTIL", 9),
    pipe!("tensor_double", "NVML_GPM_METRIC_DFMA_TENSOR_UTIL", 6),
    pipe!("tensor_double_matrix", "NVML_GPM_METRIC_DMMA_TENSOR_UTIL", 8).absent(NO_DMMA),
    pipe!("fp16", "NVML_GPM_METRIC_FP16_UTIL", 13),
    pipe!("fp32", "NVML_GPM_METRIC_FP32_UTIL", 12),
    pipe!("fp64", "NVML_GPM_METRIC_FP64_UTIL", 11),
    pipe!("int", "NVML_GPM_METRIC_INTEGER_UTIL", 4),
    share!(
        GPU_MEMORY_BANDWIDTH_UTILIZATION,
        "NVML_GPM_METRIC_DRAM_BW_UTIL",
        10,
        &[]
    ),
    engine!("nvdec", 0, "NVML_GPM_METRIC_NVDEC_0_UTIL", 30),
    engine!("nvdec", 1, "NVML_GPM_METRIC_NVDEC_1_UTIL", 31),
    engine!("nvdec", 2, "NVML_GPM_METRIC_NVDEC_2_UTIL", 32),
    engine!("nvdec", 3, "NVML_GPM_METRIC_NVDEC_3_UTIL", 33),
    engine!("nvdec", 4, "NVML_GPM_METRIC_NVDEC_4_UTIL", 34),
    engine!("nvdec", 5, "NVML_GPM_METRIC_NVDEC_5_UTIL", 35),
    engine!("nvdec", 6, "NVML_GPM_METRIC_NVDEC_6_UTIL", 36),
    engine!("nvdec", 7, "NVML_GPM_METRIC_NVDEC_7_UTIL", 37),
    engine!("nvjpg", 0, "NVML_GPM_METRIC_NVJPG_0_UTIL", 40),
    engine!("nvjpg", 1, "NVML_GPM_METRIC_NVJPG_1_UTIL", 41),
    engine!("nvjpg", 2, "NVML_GPM_METRIC_NVJPG_2_UTIL", 42),
    engine!("nvjpg", 3, "NVML_GPM_METRIC_NVJPG_3_UTIL", 43),
    engine!("nvjpg", 4, "NVML_GPM_METRIC_NVJPG_4_UTIL", 44),
    engine!("nvjpg", 5, "NVML_GPM_METRIC_NVJPG_5_UTIL", 45),
    engine!("nvjpg", 6, "NVML_GPM_METRIC_NVJPG_6_UTIL", 46),
    engine!("nvjpg", 7, "NVML_GPM_METRIC_NVJPG_7_UTIL", 47),
    engine!("nvofa", 0, "NVML_GPM_METRIC_NVOFA_0_UTIL", 50),
    engine!("nvofa", 1, "NVML_GPM_METRIC_NVOFA_1_UTIL", 51),
];

/// Traffic of the links, which belong to the GPU: an instance has no links.
pub(super) static LINKS: &[Row] = &[
    Row::counter(
        &metric::GPU_PCIE_THROUGHPUT,
        "NVML_GPM_METRIC_PCIE_TX_PER_SEC",
        20,
        &[(&GPU_IO_DIRECTION, "transmit")],
        MIB,
    )
    .also(&[&metric::GPU_PCIE_IO])
    .absent(NO_PCIE),
    Row::counter(
        &metric::GPU_PCIE_THROUGHPUT,
        "NVML_GPM_METRIC_PCIE_RX_PER_SEC",
        21,
        &[(&GPU_IO_DIRECTION, "receive")],
        MIB,
    )
    .also(&[&metric::GPU_PCIE_IO])
    .absent(NO_PCIE),
    Row::counter(
        &metric::GPU_NVLINK_THROUGHPUT,
        "NVML_GPM_METRIC_NVLINK_TOTAL_TX_PER_SEC",
        61,
        &[(&GPU_IO_DIRECTION, "transmit")],
        MIB,
    ),
    Row::counter(
        &metric::GPU_NVLINK_THROUGHPUT,
        "NVML_GPM_METRIC_NVLINK_TOTAL_RX_PER_SEC",
        60,
        &[(&GPU_IO_DIRECTION, "receive")],
        MIB,
    ),
    Row::counter(
        &metric::GPU_C2C_THROUGHPUT,
        "NVML_GPM_METRIC_C2C_TOTAL_TX_PER_SEC",
        100,
        &[(&GPU_IO_DIRECTION, "transmit")],
        MIB,
    )
    .absent(NO_C2C),
    Row::counter(
        &metric::GPU_C2C_THROUGHPUT,
        "NVML_GPM_METRIC_C2C_TOTAL_RX_PER_SEC",
        101,
        &[(&GPU_IO_DIRECTION, "receive")],
        MIB,
    )
    .absent(NO_C2C),
];
