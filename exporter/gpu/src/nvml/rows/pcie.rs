//! PCI Express: the link and its errors. Its bytes are among the performance counters: `NVML_FI_DEV_PCIE_COUNT_TX_BYTES` and its
//! RX counterpart have 32 bits and wrap 15 times a second on a fast link, and `nvmlDeviceGetPcieThroughput` blocks for 20 ms.

use nvml_wrapper::sys_exports::field_id::{
    NVML_FI_DEV_PCIE_COUNT_BAD_DLLP, NVML_FI_DEV_PCIE_COUNT_BAD_TLP,
    NVML_FI_DEV_PCIE_COUNT_CORRECTABLE_ERRORS, NVML_FI_DEV_PCIE_COUNT_FATAL_ERROR,
    NVML_FI_DEV_PCIE_COUNT_LANE_ERROR, NVML_FI_DEV_PCIE_COUNT_LCRC_ERROR,
    NVML_FI_DEV_PCIE_COUNT_NAKS_RECEIVED, NVML_FI_DEV_PCIE_COUNT_NAKS_SENT,
    NVML_FI_DEV_PCIE_COUNT_NON_FATAL_ERROR, NVML_FI_DEV_PCIE_COUNT_RECEIVER_ERROR,
    NVML_FI_DEV_PCIE_COUNT_UNSUPPORTED_REQ, NVML_FI_DEV_PCIE_L0_TO_RECOVERY_COUNTER,
    NVML_FI_DEV_PCIE_REPLAY_COUNTER,
};
use pulsetrain_semconv::{
    attribute::{ERROR_TYPE, GPU_LINK_READING},
    metric,
};

use super::super::{
    ffi,
    row::{
        Cadence::{Infrequent, Once},
        FieldValue::{Total, Wrapping},
        QueryContext, QueryError, Row,
    },
};
use crate::{
    Reason,
    reading::{Labels, Readings},
};

/// The lanes of the widest link.
const MAX_LANES: usize = 16;
/// The bytes per megatransfer of a lane: one bit per transfer, including the coding overhead.
const MEGATRANSFERS: f64 = 1e6 / 8.0;

const NO_LINK: &str = "the GPU is not on PCI Express";
const NO_COUNTER: &str = "the GPU is older than Hopper, or its driver older than 535";

/// A row of errors that PCI Express counts.
macro_rules! errors {
    ($kind:literal, $field:ident) => {
        Row::field(
            &metric::GPU_PCIE_ERRORS,
            (stringify!($field), $field),
            &[(&ERROR_TYPE, $kind)],
            Total(1.0),
            Infrequent,
            NO_COUNTER,
        )
    };
}

pub(super) static ROWS: &[Row] = &[
    Row::value(
        &metric::GPU_PCIE_GENERATION,
        &[(&GPU_LINK_READING, "current")],
        "nvmlDeviceGetCurrPcieLinkGeneration",
        Infrequent,
        NO_LINK,
        |gpu| Ok(gpu.device.current_pcie_link_gen()?.into()),
    ),
    Row::value(
        &metric::GPU_PCIE_GENERATION,
        &[(&GPU_LINK_READING, "max")],
        "nvmlDeviceGetMaxPcieLinkGeneration",
        Once,
        NO_LINK,
        |gpu| Ok(gpu.device.max_pcie_link_gen()?.into()),
    ),
    Row::value(
        &metric::GPU_PCIE_GENERATION,
        &[(&GPU_LINK_READING, "device_max")],
        "nvmlDeviceGetGpuMaxPcieLinkGeneration",
        Once,
        NO_LINK,
        |gpu| Ok(ffi::gpu_max_pcie_generation(gpu.device)?.into()),
    ),
    Row::value(
        &metric::GPU_PCIE_WIDTH,
        &[(&GPU_LINK_READING, "current")],
        "nvmlDeviceGetCurrPcieLinkWidth",
        Infrequent,
        NO_LINK,
        |gpu| Ok(gpu.device.current_pcie_link_width()?.into()),
    ),
    Row::value(
        &metric::GPU_PCIE_WIDTH,
        &[(&GPU_LINK_READING, "max")],
        "nvmlDeviceGetMaxPcieLinkWidth",
        Once,
        NO_LINK,
        |gpu| Ok(gpu.device.max_pcie_link_width()?.into()),
    ),
    Row::value(
        &metric::GPU_PCIE_SPEED,
        &[(&GPU_LINK_READING, "current")],
        "nvmlDeviceGetPcieSpeed",
        Infrequent,
        NO_LINK,
        |gpu| Ok(f64::from(gpu.device.pcie_link_speed()?) * MEGATRANSFERS),
    ),
    Row::value(
        &metric::GPU_PCIE_SPEED,
        &[(&GPU_LINK_READING, "max")],
        "nvmlDeviceGetPcieLinkMaxSpeed",
        Once,
        NO_LINK,
        |gpu| {
            let fastest = gpu.device.max_pcie_link_speed()?.as_integer();
            let fastest = fastest.ok_or(QueryError::Because(Reason::NoData))?;
            Ok(f64::from(fastest) * MEGATRANSFERS)
        },
    ),
    Row::field(
        &metric::GPU_PCIE_REPLAYS,
        ("NVML_FI_DEV_PCIE_REPLAY_COUNTER", NVML_FI_DEV_PCIE_REPLAY_COUNTER),
        &[],
        Wrapping(1.0),
        Infrequent,
        NO_LINK,
    ),
    Row::call(
        &metric::GPU_PCIE_REPLAYS,
        "nvmlDeviceGetPcieReplayCounter",
        Infrequent,
        NO_LINK,
        |gpu, out| {
            let replays = u64::from(gpu.device.pcie_replay_counter()?);
            out.total(&metric::GPU_PCIE_REPLAYS, Labels::default(), replays, 1.0);
            Ok(())
        },
    )
    .instead_of("NVML_FI_DEV_PCIE_REPLAY_COUNTER"),
    Row::field(
        &metric::GPU_PCIE_RECOVERIES,
        (
            "NVML_FI_DEV_PCIE_L0_TO_RECOVERY_COUNTER",
            NVML_FI_DEV_PCIE_L0_TO_RECOVERY_COUNTER,
        ),
        &[],
        Wrapping(1.0),
        Infrequent,
        "the GPU or its driver does not count it",
    ),
    errors!("correctable", NVML_FI_DEV_PCIE_COUNT_CORRECTABLE_ERRORS),
    errors!("non_fatal", NVML_FI_DEV_PCIE_COUNT_NON_FATAL_ERROR),
    errors!("fatal", NVML_FI_DEV_PCIE_COUNT_FATAL_ERROR),
    errors!("unsupported_request", NVML_FI_DEV_PCIE_COUNT_UNSUPPORTED_REQ),
    errors!("naks_received", NVML_FI_DEV_PCIE_COUNT_NAKS_RECEIVED),
    errors!("naks_sent", NVML_FI_DEV_PCIE_COUNT_NAKS_SENT),
    errors!("receiver", NVML_FI_DEV_PCIE_COUNT_RECEIVER_ERROR),
    errors!("bad_tlp", NVML_FI_DEV_PCIE_COUNT_BAD_TLP),
    errors!("bad_dllp", NVML_FI_DEV_PCIE_COUNT_BAD_DLLP),
    errors!("lcrc", NVML_FI_DEV_PCIE_COUNT_LCRC_ERROR),
    Row::call(
        &metric::GPU_PCIE_ERRORS,
        "NVML_FI_DEV_PCIE_COUNT_LANE_ERROR",
        Infrequent,
        NO_COUNTER,
        lane_errors,
    ),
];

/// Reads the errors of all lanes. The scope of the field is the lane, and a link with fewer lanes refuses the others.
fn lane_errors(gpu: &QueryContext<'_, '_>, out: &mut Readings) -> Result<(), QueryError> {
    let mut lanes = [0; MAX_LANES].map(|_| ffi::field(NVML_FI_DEV_PCIE_COUNT_LANE_ERROR, 0));
    for (lane, cell) in (0..).zip(&mut lanes) {
        cell.scopeId = lane;
    }
    ffi::field_values(gpu.device, &mut lanes)?;
    let first = ffi::field_count(&lanes[0])?;
    let others = lanes[1..].iter().filter_map(|cell| ffi::field_count(cell).ok());
    let labels = Labels::fixed(&[(&ERROR_TYPE, "lane")]);
    out.total(&metric::GPU_PCIE_ERRORS, labels, first + others.sum::<u64>(), 1.0);
    Ok(())
}
