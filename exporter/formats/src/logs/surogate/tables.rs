//! The mapping tables of `training.json`.

use pulsetrain_mapping::{CoverageRow, RecordTable, coverage_rules};
use pulsetrain_semconv::{event, metric};

/// Fields of a `step` record; those of a mixture of experts follow the others.
pub(super) static STEP: RecordTable = RecordTable::new("surogate", "step");

/// Fields of a `moe` record.
pub(super) static MOE: RecordTable = RecordTable::new("surogate", "moe");

/// Fields of an `eval` record.
pub(super) static EVAL: RecordTable = RecordTable::new("surogate", "eval");

/// Fields of a `dataset` record.
pub(super) static DATASET: RecordTable = RecordTable::new("surogate", "dataset");

/// Fields of a `sol` (speed of light) record; -1 is an unknown figure.
pub(super) static SOL: RecordTable = RecordTable::new("surogate", "sol");

/// The empty table of records of unknown kinds.
pub(super) static UNKNOWN: RecordTable = RecordTable::new("surogate", "unknown");

/// Numeric fields of a `gpu` record; -1 is a value that the driver does not report.
pub(super) static GPU: RecordTable = RecordTable::new("surogate", "gpu");

/// Returns the coverage rows of all fields.
pub(super) fn coverage() -> Vec<CoverageRow> {
    let rules = coverage_rules! {
        "step.step" => metric::TRAIN_GLOBAL_STEP.name, "as it is; `train.steps` increases by one per record";
        "option.max_steps" => metric::TRAIN_PROGRESS.name, "the completed share, at every step";
        "option.num_epochs" =>
            metric::TRAIN_PROGRESS.name, "without `max_steps`: an epoch has `dataset.tokens` / `step.step_tokens` steps, rounded down";
        "step.phase" => metric::TRAIN_PHASE.name, "the state set is in this state";
        "gpu.throttle" => metric::GPU_THROTTLE_ACTIVE.name, "the state set is in this state";
        "gpu-model" => event::RUN_GPU_MODEL.name, "one event a GPU";
        "allocator.stats" => metric::MEMORY_SEGMENT_SIZE.name, "one series a segment and kind of memory";
        "abs-maxes" => event::TRAIN_TENSOR_ABS_MAX.name, "one event with all tensors";
        "cmd" => event::RUN_COMMAND.name, "one event";
        "option" => event::RUN_OPTION.name, "one event an option";
        "info" => event::RUN_MESSAGE.name, "one event a message";
    };
    RecordTable::coverage_of(&[&STEP, &MOE, &EVAL, &DATASET, &SOL, &GPU], rules)
}
