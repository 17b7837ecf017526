//! Which field of a record is which metric, in which unit.

use pulsetrain_mapping::{CoverageRow, RecordTable};
use pulsetrain_semconv::{event, metric};

/// Fields of a `step` record; those of a mixture of experts follow the others.
pub(super) static STEP: RecordTable = RecordTable::new("surogate", "step");

/// Fields of a `moe` record.
pub(super) static MOE: RecordTable = RecordTable::new("surogate", "moe");

/// Fields of an `eval` record.
pub(super) static EVAL: RecordTable = RecordTable::new("surogate", "eval");

/// Fields of a `dataset` record.
pub(super) static DATASET: RecordTable = RecordTable::new("surogate", "dataset");

/// Fields of a `sol` (speed of light) record; -1 where a figure is not known.
pub(super) static SOL: RecordTable = RecordTable::new("surogate", "sol");

/// Of records of other kinds: no field has a row.
pub(super) static UNKNOWN: RecordTable = RecordTable::new("surogate", "unknown");

/// Numeric fields of a `gpu` record; -1 where the driver does not say.
pub(super) static GPU: RecordTable = RecordTable::new("surogate", "gpu");

/// What becomes of every field, as the coverage table says it.
pub(super) fn coverage() -> Vec<CoverageRow> {
    let rules = [
        CoverageRow::rule(
            "step.step",
            metric::TRAIN_GLOBAL_STEP.name,
            "as it is; `train.steps` grows by one a record",
        ),
        CoverageRow::rule(
            "option.max_steps",
            metric::TRAIN_PROGRESS.name,
            "the share of them that is done, at every step",
        ),
        CoverageRow::rule(
            "option.num_epochs",
            metric::TRAIN_PROGRESS.name,
            "without `max_steps`: each has as many steps as `step.step_tokens` go into `dataset.tokens`",
        ),
        CoverageRow::rule(
            "step.phase",
            metric::TRAIN_PHASE.name,
            "the state set is in this state",
        ),
        CoverageRow::rule(
            "gpu.throttle",
            metric::GPU_THROTTLE_ACTIVE.name,
            "the state set is in this state",
        ),
        CoverageRow::rule("gpu-model", event::RUN_GPU_MODEL.name, "one event a GPU"),
        CoverageRow::rule(
            "allocator.stats",
            metric::MEMORY_SEGMENT_SIZE.name,
            "one series a segment and kind of memory",
        ),
        CoverageRow::rule(
            "abs-maxes",
            event::TRAIN_TENSOR_ABS_MAX.name,
            "one event with all tensors",
        ),
        CoverageRow::rule("cmd", event::RUN_COMMAND.name, "one event"),
        CoverageRow::rule("option", event::RUN_OPTION.name, "one event an option"),
        CoverageRow::rule("info", event::RUN_MESSAGE.name, "one event a message"),
    ];
    let mut all = RecordTable::coverage_of(&[&STEP, &MOE, &EVAL, &DATASET, &SOL, &GPU]);
    all.extend(rules);
    all
}
