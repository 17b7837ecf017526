//! Which of TorchSpec's numbers is which metric.

use pulsetrain_otlp::write::{Attribute, Value as Out};
use pulsetrain_semconv::{attribute, event, metric};

use crate::logs::{
    Covered,
    coverage::{self, covered},
    row::{Row, row},
};

const HOST: &[Attribute<'static>] = &[(&attribute::PERF_CLOCK, Out::Text("host"))];
const CUDA: &[Attribute<'static>] = &[(&attribute::PERF_CLOCK, Out::Text("cuda_event"))];

/// Of the progress bar. A capacity that is not known is shown as zero.
pub(super) static BAR: &[Row] = &[
    row("n/total", &metric::TRAIN_PROGRESS),
    row("elapsed", &metric::TRAIN_ELAPSED_TIME),
    row("remaining", &metric::TRAIN_ETA),
    row("step/s", &metric::TRAIN_THROUGHPUT_STEPS),
    row("loss", &metric::TRAIN_LOSS),
    row("acc", &metric::TRAIN_ACCURACY),
    row("acc_len", &metric::TRAIN_ACCEPT_LENGTH),
    row("thru", &metric::PERF_THROUGHPUT),
    row("I", &metric::PERF_INFER_CAPACITY).unless(0.0),
    row("T", &metric::PERF_TRAIN_CAPACITY).unless(0.0),
    row("wait", &metric::PERF_DISPATCH_WAIT),
    row("pool", &metric::PERF_SAMPLE_POOL_SIZE),
    row("epoch", &metric::TRAIN_EPOCH),
];

/// Of a line with "TIMING". A trainer that does not time its passes has zero for them.
pub(super) static TIMING: &[Row] = &[
    row("step", &metric::TRAIN_STEP_DURATION),
    row("data", &metric::PERF_DATA_TIME).with(HOST),
    row("compute", &metric::PERF_COMPUTE_TIME).with(CUDA),
    row("fwd", &metric::PERF_FORWARD_TIME).unless(0.0).with(CUDA),
    row("bwd", &metric::PERF_BACKWARD_TIME).unless(0.0).with(CUDA),
    row("opt", &metric::PERF_OPTIMIZER_TIME).with(CUDA),
    row("dispatch", &metric::PERF_DISPATCH_WAIT),
];

/// Of a line with "COMPUTE_BREAKDOWN".
pub(super) static BREAKDOWN: &[Row] = &[
    row("forward", &metric::PERF_FORWARD_TIME)
        .divided_by(1e3)
        .with(CUDA),
    row("backward", &metric::PERF_BACKWARD_TIME)
        .divided_by(1e3)
        .with(CUDA),
];

/// Of a line with "eval:".
pub(super) static EVAL: &[Row] = &[
    row("loss", &metric::EVAL_LOSS),
    row("acc", &metric::EVAL_ACCURACY),
    row("sim_acc_len", &metric::EVAL_ACCEPT_LENGTH),
];

/// Of the lines that tell of a full sample pool.
pub(super) static BACKPRESSURE: &[Row] = &[
    row("pool_size", &metric::PERF_SAMPLE_POOL_SIZE),
    row("pool_size limit", &metric::PERF_SAMPLE_POOL_LIMIT),
    row("available after", &metric::PERF_BACKPRESSURE_WAIT),
];

/// What becomes of every number and every line, as the coverage table says it.
pub(super) fn coverage() -> Vec<Covered> {
    let rules = [
        covered(
            "n of n/total",
            metric::TRAIN_GLOBAL_STEP.name,
            "as it is; `train.steps` grows by the steps since the bar before",
        ),
        covered(
            "I, T, wait",
            metric::PERF_BOTTLENECK.name,
            "the state set is in the state that TorchSpec's documentation reads from them",
        ),
        covered("Starting", event::RUN_OPTION.name, "one event an option"),
        covered(
            "global_batch_size of Starting",
            metric::TRAIN_BATCH_SIZE.name,
            "as it is, `{sample}`",
        ),
        covered(
            "Training completed, Epoch, Max steps reached, Saving, Saved checkpoint, Removing old checkpoint, New best checkpoint, \
             Resumed best eval score, Resuming, Dataset exhausted, Pool insufficient, Flow control disabled, Eval inference not \
             ready, Step, Engine, Cleaned up temp dir",
            event::RUN_MESSAGE.name,
            "one event a line",
        ),
        covered(
            "Step n: saving draft model to, Cleaned up temp dir",
            metric::PERF_WEIGHT_SYNC_TIME.name,
            "from the one line to the other, `s`; and the span `rl.weight_sync`",
        ),
        covered(
            "fwd, bwd of a step that has a line with COMPUTE_BREAKDOWN, or that line where it comes second",
            "(left out: the other line told it)",
            "",
        ),
        covered(
            "eval: loss, acc, sim_acc_len of a trainer",
            "(left out: the loop tells it with its step)",
            "",
        ),
        covered(
            "Still waiting for pool capacity (waited)",
            "(left out: the line that ends the wait tells how long it was)",
            "",
        ),
        covered(
            "wait of a bar whose step has a line with TIMING",
            "(left out: the line told it to the millisecond)",
            "",
        ),
        covered("a bar that is drawn again", "(left out)", ""),
        covered(
            "a value at the edge of a terminal that is too narrow for the bar",
            "(left out: its end is missing)",
            "",
        ),
    ];
    let mut all = coverage::tables(&[BAR, TIMING, BREAKDOWN, EVAL, BACKPRESSURE]);
    all.extend(rules);
    all
}
