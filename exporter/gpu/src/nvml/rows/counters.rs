//! The GPU's own performance counters (GPM): what happened between two passes, of a GPU or of an instance.

use nvml_wrapper::enums::gpm::GpmMetricId as Id;
use pulsetrain_semconv::{
    attribute::{GPU_ENGINE_NAME, GPU_IO_DIRECTION, GPU_PIPE},
    metric,
};

use super::super::row::Row;

/// Percent as a share.
const PERCENT: f64 = 0.01;
/// Throughput is in MiB.
const MIB: f64 = 1_048_576.0;

const NO_PCIE: &str = "the GPU is older than Hopper or is split, or a profiler holds its counters; the counters of bytes that other \
                       GPUs have wrap several times a second";

/// A row of a share of the time.
macro_rules! share {
    ($metric:ident, $call:literal, $id:ident, $labels:expr) => {
        Row::counter(&metric::$metric, $call, Id::$id, $labels, PERCENT)
    };
}

/// A row of one engine of several.
macro_rules! engine {
    ($name:literal, $number:literal, $call:literal, $id:ident) => {
        share!(GPU_ENGINE_UTILIZATION, $call, $id, &[(&GPU_ENGINE_NAME, $name)]).engine($number)
    };
}

pub(super) static ROWS: &[Row] = &[
    share!(
        GPU_GRAPHICS_ACTIVE,
        "NVML_GPM_METRIC_GRAPHICS_UTIL",
        GraphicsUtil,
        &[]
    ),
    share!(GPU_SM_ACTIVE, "NVML_GPM_METRIC_SM_UTIL", SmUtil, &[]),
    share!(GPU_SM_OCCUPANCY, "NVML_GPM_METRIC_SM_OCCUPANCY", SmOccupancy, &[]),
    share!(
        GPU_PIPE_UTILIZATION,
        "NVML_GPM_METRIC_ANY_TENSOR_UTIL",
        AnyTensorUtil,
        &[(&GPU_PIPE, "tensor")]
    ),
    share!(
        GPU_PIPE_UTILIZATION,
        "NVML_GPM_METRIC_HMMA_TENSOR_UTIL",
        HmmaTensorUtil,
        &[(&GPU_PIPE, "tensor_half")]
    ),
    share!(
        GPU_PIPE_UTILIZATION,
        "NVML_GPM_METRIC_IMMA_TENSOR_UTIL",
        ImmaTensorUtil,
        &[(&GPU_PIPE, "tensor_int")]
    ),
    share!(
        GPU_PIPE_UTILIZATION,
        "NVML_GPM_METRIC_DFMA_TENSOR_UTIL",
        DfmaTensorUtil,
        &[(&GPU_PIPE, "tensor_double")]
    ),
    share!(
        GPU_PIPE_UTILIZATION,
        "NVML_GPM_METRIC_FP16_UTIL",
        Fp16Util,
        &[(&GPU_PIPE, "fp16")]
    ),
    share!(
        GPU_PIPE_UTILIZATION,
        "NVML_GPM_METRIC_FP32_UTIL",
        Fp32Util,
        &[(&GPU_PIPE, "fp32")]
    ),
    share!(
        GPU_PIPE_UTILIZATION,
        "NVML_GPM_METRIC_FP64_UTIL",
        Fp64Util,
        &[(&GPU_PIPE, "fp64")]
    ),
    share!(
        GPU_PIPE_UTILIZATION,
        "NVML_GPM_METRIC_INTEGER_UTIL",
        IntegerUtil,
        &[(&GPU_PIPE, "int")]
    ),
    share!(
        GPU_MEMORY_BANDWIDTH_UTILIZATION,
        "NVML_GPM_METRIC_DRAM_BW_UTIL",
        DramBwUtil,
        &[]
    ),
    engine!("nvdec", 0, "NVML_GPM_METRIC_NVDEC_0_UTIL", Nvdec0Util),
    engine!("nvdec", 1, "NVML_GPM_METRIC_NVDEC_1_UTIL", Nvdec1Util),
    engine!("nvdec", 2, "NVML_GPM_METRIC_NVDEC_2_UTIL", Nvdec2Util),
    engine!("nvdec", 3, "NVML_GPM_METRIC_NVDEC_3_UTIL", Nvdec3Util),
    engine!("nvdec", 4, "NVML_GPM_METRIC_NVDEC_4_UTIL", Nvdec4Util),
    engine!("nvdec", 5, "NVML_GPM_METRIC_NVDEC_5_UTIL", Nvdec5Util),
    engine!("nvdec", 6, "NVML_GPM_METRIC_NVDEC_6_UTIL", Nvdec6Util),
    engine!("nvdec", 7, "NVML_GPM_METRIC_NVDEC_7_UTIL", Nvdec7Util),
    engine!("nvjpg", 0, "NVML_GPM_METRIC_NVJPG_0_UTIL", Nvjpg0Util),
    engine!("nvjpg", 1, "NVML_GPM_METRIC_NVJPG_1_UTIL", Nvjpg1Util),
    engine!("nvjpg", 2, "NVML_GPM_METRIC_NVJPG_2_UTIL", Nvjpg2Util),
    engine!("nvjpg", 3, "NVML_GPM_METRIC_NVJPG_3_UTIL", Nvjpg3Util),
    engine!("nvjpg", 4, "NVML_GPM_METRIC_NVJPG_4_UTIL", Nvjpg4Util),
    engine!("nvjpg", 5, "NVML_GPM_METRIC_NVJPG_5_UTIL", Nvjpg5Util),
    engine!("nvjpg", 6, "NVML_GPM_METRIC_NVJPG_6_UTIL", Nvjpg6Util),
    engine!("nvjpg", 7, "NVML_GPM_METRIC_NVJPG_7_UTIL", Nvjpg7Util),
    engine!("nvofa", 0, "NVML_GPM_METRIC_NVOFA_0_UTIL", Nvofa0Util),
    engine!("nvofa", 1, "NVML_GPM_METRIC_NVOFA_1_UTIL", Nvofa1Util),
];

/// Traffic of the links, which are the GPU's: an instance has none of its own.
pub(super) static LINKS: &[Row] = &[
    Row::counter(
        &metric::GPU_PCIE_THROUGHPUT,
        "NVML_GPM_METRIC_PCIE_TX_PER_SEC",
        Id::PcieTxPerSec,
        &[(&GPU_IO_DIRECTION, "transmit")],
        MIB,
    )
    .also(&[&metric::GPU_PCIE_IO])
    .absent(NO_PCIE),
    Row::counter(
        &metric::GPU_PCIE_THROUGHPUT,
        "NVML_GPM_METRIC_PCIE_RX_PER_SEC",
        Id::PcieRxPerSec,
        &[(&GPU_IO_DIRECTION, "receive")],
        MIB,
    )
    .also(&[&metric::GPU_PCIE_IO])
    .absent(NO_PCIE),
    Row::counter(
        &metric::GPU_NVLINK_THROUGHPUT,
        "NVML_GPM_METRIC_NVLINK_TOTAL_TX_PER_SEC",
        Id::NvlinkTotalTxPerSec,
        &[(&GPU_IO_DIRECTION, "transmit")],
        MIB,
    ),
    Row::counter(
        &metric::GPU_NVLINK_THROUGHPUT,
        "NVML_GPM_METRIC_NVLINK_TOTAL_RX_PER_SEC",
        Id::NvlinkTotalRxPerSec,
        &[(&GPU_IO_DIRECTION, "receive")],
        MIB,
    ),
];
