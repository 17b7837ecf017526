//! Faults of the job: it is slow, stalls, ends, runs out of memory, or sends no telemetry.

use super::super::{
    Action::{Interrupts, SlowsCheckpoint, Steps},
    FaultRow, Interruption, Scope,
};

/// Factor on the compute time of a slow rank.
pub(super) const SLOW: f64 = 1.5;
/// Bytes that a step leaks.
const LEAKED_BYTES: u64 = 64 << 20;

pub(super) static ROWS: &[FaultRow] = &[
    FaultRow::of_rank(
        "straggler",
        "forward and backward of one rank take 1.5 times as long; the others wait in backward",
        Steps(|effects, at| effects.slow[at.rank] *= SLOW),
    )
    .comparing_ranks()
    .verdict("straggler"),
    FaultRow::of_run(
        "data-starvation",
        "every rank waits for its data for about half of the step",
        Steps(|effects, _| effects.data_wait = 0.9),
    )
    .verdict("data_starved"),
    FaultRow::of_run(
        "stalled-run",
        "no step ends for a minute, the GPUs are idle, then the run resumes",
        Interrupts(|_| Interruption::Stall),
    )
    .verdict("stalled")
    .steps(60, 120),
    FaultRow::new(
        Scope::UnknownRank,
        "collective-hang",
        "one rank never ends its forward pass, the others wait in a collective: GPUs are busy at low power until the run is \
         killed and restarted",
        Interrupts(|_| Interruption::Hang),
    )
    .comparing_ranks()
    .verdict("collective_hang")
    .steps(60, 120),
    FaultRow::of_run(
        "killed",
        "the run is killed and not restarted: its telemetry and that of its GPUs ends",
        Interrupts(|_| Interruption::Kill),
    )
    .steps(60, 0),
    FaultRow::of_run(
        "slow-checkpoint",
        "one checkpoint takes 10 times as long as the others",
        SlowsCheckpoint,
    )
    .verdict("checkpoint_slow")
    .steps(160, 1),
    FaultRow::of_run(
        "checkpoints-held-back",
        "the run makes steps and writes no checkpoints",
        Steps(|effects, _| effects.holds_checkpoints = true),
    )
    .steps(60, 600),
    FaultRow::of_rank(
        "memory-leak",
        "the allocated memory of one rank grows by 64 MiB a step",
        Steps(|effects, at| effects.leaked_bytes[at.rank] = at.steps * LEAKED_BYTES),
    )
    .verdict("memory_leak")
    .steps(60, 300),
    FaultRow::of_rank(
        "out-of-memory",
        "the GPU memory of a rank is fragmented: an allocation fails in every tenth step, and is retried",
        Steps(|effects, at| effects.failed_allocations[at.rank] += u32::from(at.steps % 10 == 0)),
    ),
    FaultRow::of_run(
        "host-memory-low",
        "other programs use up the memory of every host: 3 % is available",
        Steps(|effects, _| effects.host_memory_used = 0.97),
    ),
    FaultRow::of_rank(
        "telemetry-loss",
        "one rank sends nothing while the others continue",
        Steps(|effects, at| effects.silent[at.rank] = true),
    )
    .comparing_ranks()
    .verdict("telemetry_lost")
    .steps(60, 120),
    FaultRow::of_rank(
        "rank-missing",
        "one rank reports nothing from the start of the run until the fault ends",
        Steps(|effects, at| effects.silent[at.rank] = true),
    )
    .comparing_ranks()
    .steps(1, 200),
];
