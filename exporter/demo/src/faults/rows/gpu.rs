//! Faults of a GPU: its cooling, its power, its memory and its links.

use super::{
    super::{
        Action::{Gpu, Interrupts, Steps},
        Effects, FaultRow, Interruption,
        effects::FaultContext,
    },
    job::SLOW,
};

pub(super) static ROWS: &[FaultRow] = &[
    FaultRow::of_gpu(
        "thermal-throttle",
        "a GPU heats up to its slowdown limit, its clocks drop, and its rank is slower",
        Steps(|effects, at| {
            effects.slow[at.rank] *= SLOW;
            effects.gpus[at.rank].is_hot = true;
        }),
    )
    .verdict("gpu_throttled"),
    FaultRow::of_gpu(
        "power-brake",
        "the server asserts the power brake: a hardware slowdown halves the clocks of a GPU, and its rank is slower",
        Steps(|effects, at| {
            effects.slow[at.rank] *= SLOW;
            effects.gpus[at.rank].is_braked = true;
        }),
    )
    .verdict("gpu_throttled"),
    FaultRow::of_gpu(
        "power-cap",
        "the power limit of a GPU is lowered to 450 W, which lowers its clocks slightly",
        Steps(|effects, at| {
            effects.slow[at.rank] *= 1.05;
            effects.gpus[at.rank].power_limit = 450.0;
        }),
    ),
    FaultRow::of_gpu(
        "gpu-memory-full",
        "99 % of the memory of a GPU is in use",
        Gpu(|gpu| gpu.is_full = true),
    ),
    FaultRow::of_gpu(
        "gpu-lost",
        "a GPU no longer answers, the run stops and restarts from its last checkpoint",
        Interrupts(Interruption::GpuLost),
    )
    .verdict("gpu_lost")
    .steps(60, 30),
    FaultRow::of_gpu(
        "xid",
        "the driver reports an XID error of a GPU (74 or 94); the run continues",
        Steps(|effects, at| xid(effects, at, &[74, 94])),
    )
    .verdict("gpu_xid")
    .steps(60, 1),
    FaultRow::of_gpu(
        "xid-fatal",
        "an XID error after which the GPU needs a reset (48, 74, 95 or 119)",
        Steps(|effects, at| xid(effects, at, &[48, 74, 95, 119])),
    )
    .verdict("gpu_xid")
    .steps(60, 1),
    FaultRow::of_gpu(
        "xid-memory",
        "an XID error of memory that the GPU contained or replaced (63, 92 or 94)",
        Steps(|effects, at| xid(effects, at, &[63, 92, 94])),
    )
    .verdict("gpu_xid")
    .steps(60, 1),
    FaultRow::of_gpu(
        "xid-application",
        "an XID error of the program (13 or 31)",
        Steps(|effects, at| xid(effects, at, &[13, 31])),
    )
    .verdict("gpu_xid")
    .steps(60, 1),
    FaultRow::of_gpu(
        "xid-other",
        "an XID error that belongs to no class (56, 78 or 151)",
        Steps(|effects, at| xid(effects, at, &[56, 78, 151])),
    )
    .verdict("gpu_xid")
    .steps(60, 1),
    FaultRow::of_gpu(
        "ecc-corrected",
        "the memory of a GPU has five corrected errors in each step",
        Gpu(|gpu| gpu.corrected_errors = 5.0),
    ),
    FaultRow::of_gpu(
        "ecc-uncorrected",
        "the memory of a GPU has three uncorrected errors",
        Gpu(|gpu| gpu.uncorrected_errors = 0.15),
    )
    .steps(60, 20),
    FaultRow::of_gpu(
        "row-remap-pending",
        "a bad row of GPU memory waits for a reset to be replaced",
        Gpu(|gpu| gpu.faults.push("row_remap_pending")),
    ),
    FaultRow::of_gpu(
        "row-remap-failed",
        "a bad row of GPU memory cannot be replaced",
        Gpu(|gpu| gpu.faults.push("row_remap_failure")),
    ),
    FaultRow::of_gpu(
        "recovery-action",
        "the driver asks for a reset of a GPU",
        Gpu(|gpu| gpu.recovery_action = "gpu_reset"),
    ),
    FaultRow::of_gpu(
        "fabric-degraded",
        "the NVLink fabric of a GPU is degraded",
        Gpu(|gpu| gpu.faults.push("fabric_degraded")),
    ),
    FaultRow::of_gpu(
        "nvlink-down",
        "one of the 18 NVLinks of a GPU is down",
        Gpu(|gpu| gpu.link_down = Some(7)),
    ),
    FaultRow::of_gpu(
        "nvlink-errors",
        "an NVLink of a GPU recovers from errors, once in five steps",
        Gpu(|gpu| gpu.link_recoveries = 0.2),
    ),
    FaultRow::of_gpu(
        "pcie-replays",
        "PCI Express of a GPU replays ten packets in each step",
        Gpu(|gpu| gpu.pcie_replays = 10.0),
    ),
    FaultRow::of_gpu(
        "pcie-downgraded",
        "PCI Express of a GPU has 8 of its 16 lanes and generation 4 instead of 5",
        Gpu(|gpu| (gpu.pcie_width, gpu.pcie_generation) = (8.0, 4.0)),
    ),
];

/// Reports one of these XID codes.
fn xid(effects: &mut Effects, at: FaultContext, codes: &[u64]) {
    effects
        .xids
        .push((at.rank, codes[at.draw as usize % codes.len()]));
}
