//! The mapping tables of TorchSpec.

use pulsetrain_mapping::{CoverageRow, RecordTable, coverage_rules};
use pulsetrain_semconv::{event, metric};

/// The rows of the progress bar. An unknown capacity is shown as zero.
pub(super) static BAR: RecordTable = RecordTable::new("torchspec", "bar");

/// The rows of a line with "TIMING". A trainer that does not time its passes prints zero.
pub(super) static TIMING: RecordTable = RecordTable::new("torchspec", "timing");

/// The rows of a line with "COMPUTE_BREAKDOWN".
pub(super) static BREAKDOWN: RecordTable = RecordTable::new("torchspec", "breakdown");

/// The rows of a line with "eval:".
pub(super) static EVAL: RecordTable = RecordTable::new("torchspec", "eval");

/// The rows of the lines about a full sample pool.
pub(super) static BACKPRESSURE: RecordTable = RecordTable::new("torchspec", "backpressure");

/// Returns the coverage rows of all numbers and lines.
pub(super) fn coverage() -> Vec<CoverageRow> {
    let rules = coverage_rules! {
        CoverageRow::step("n of n/total", "bar");
        "I, T, wait" =>
            metric::PERF_BOTTLENECK.name, "the state that TorchSpec's documentation derives from them";
        "Starting" => event::RUN_OPTION.name, "one event an option";
        "global_batch_size of Starting" => metric::TRAIN_BATCH_SIZE.name, "as it is, `{sample}`";
        "Training completed, Epoch, Max steps reached, Saving, Saved checkpoint, Removing old checkpoint, New best checkpoint, \
         Resumed best eval score, Resuming, Dataset exhausted, Pool insufficient, Flow control disabled, Eval inference not \
         ready, Step, Engine, Cleaned up temp dir" =>
            event::RUN_MESSAGE.name, "one event a line";
        "Step n: saving draft model to, Cleaned up temp dir" =>
            metric::PERF_WEIGHT_SYNC_TIME.name, "the time between both lines, `s`; and the span `rl.weight_sync`";
        "fwd, bwd of a step that has a line with COMPUTE_BREAKDOWN, or that line where it comes second" =>
            "(left out: the other line has it)", "";
        "eval: loss, acc, sim_acc_len of a trainer" => "(left out: the loop prints it with its step)", "";
        "Still waiting for pool capacity (waited)" =>
            "(left out: the line at the end of the wait has its duration)", "";
        "wait of a bar whose step has a line with TIMING" =>
            "(left out: the line has it with milliseconds)", "";
        "a bar that is drawn again" => "(left out)", "";
        "a value at the edge of a terminal that is too narrow for the bar" =>
            "(left out: its end is missing)", "";
    };
    RecordTable::coverage_of(&[&BAR, &TIMING, &BREAKDOWN, &EVAL, &BACKPRESSURE], rules)
}
