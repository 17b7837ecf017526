//! TorchSpec (`torchspec/controller/loop.py`, `training/trainer.py`): one dictionary a step, to TensorBoard and wandb alike;
//! times in seconds, capacities in samples a second.

mod bottleneck;

use pulsetrain_otlp::write::{Attribute, Value};
use pulsetrain_semconv::{attribute, metric};

pub(crate) use bottleneck::{Reading, StepReading};

use super::{
    row::{Capture, TagRow, step, tag},
    system::{System, seen},
};

/// Its name in the registry's annotations.
pub(super) const NAME: &str = "torchspec";

pub(super) const SYSTEM: System = System {
    name: NAME,
    signs: &[
        "train/avg_loss",
        "train/simulated_acc_len",
        "perf/dispatch_wait",
        "perf/train_capacity",
        "eval/simulated_acc_len",
    ],
    rows: ROWS,
    texts: &[],
    seen_in_events: seen!(
        "an event file",
        "TorchSpec",
        "train/avg_loss, perf/dispatch_wait ..."
    ),
    seen_in_wandb: seen!(
        "a wandb file",
        "TorchSpec",
        "train/avg_loss, perf/dispatch_wait ..."
    ),
};

const DRAFT: Attribute<'static> = (&attribute::TRAIN_COMPONENT, Value::Text("draft"));
const POSITION: &[Capture] = &[(0, &attribute::TRAIN_DRAFT_POSITION)];
const MEAN: Attribute<'static> = statistic("mean");

const fn statistic(name: &'static str) -> Attribute<'static> {
    (&attribute::INFERENCE_STATISTIC, Value::Text(name))
}

static ROWS: &[TagRow] = &[
    step("train/step"),
    step("train/global_step"),
    step("inference/step"),
    step("eval/step"),
    tag("train/avg_loss", &metric::TRAIN_LOSS),
    tag("train/avg_acc", &metric::TRAIN_ACCURACY),
    tag("train/simulated_acc_len", &metric::TRAIN_ACCEPT_LENGTH),
    tag("train/grad_norm", &metric::TRAIN_GRAD_NORM),
    tag("train/lr", &metric::TRAIN_LEARNING_RATE),
    tag("train/ploss_{}", &metric::TRAIN_LOSS_COMPONENT)
        .capturing(POSITION)
        .with(&[DRAFT]),
    tag("train/acc_{}", &metric::TRAIN_ACCURACY).capturing(POSITION),
    tag("perf/step_time", &metric::PERF_STEP_TIME),
    tag("perf/data_time", &metric::PERF_DATA_TIME),
    tag("perf/compute_time", &metric::PERF_COMPUTE_TIME),
    tag("perf/forward_time", &metric::PERF_FORWARD_TIME),
    tag("perf/backward_time", &metric::PERF_BACKWARD_TIME),
    tag("perf/optimizer_time", &metric::PERF_OPTIMIZER_TIME),
    tag("perf/dispatch_wait", &metric::PERF_DISPATCH_WAIT),
    tag("perf/train_capacity", &metric::PERF_TRAIN_CAPACITY),
    tag("perf/infer_capacity", &metric::PERF_INFER_CAPACITY),
    tag("perf/infer_batch_time", &metric::PERF_INFER_BATCH_TIME),
    tag("inference/e2e_latency_avg", &metric::INFERENCE_LATENCY).with(&[MEAN]),
    tag("inference/e2e_latency_min", &metric::INFERENCE_LATENCY).with(&[statistic("min")]),
    tag("inference/e2e_latency_max", &metric::INFERENCE_LATENCY).with(&[statistic("max")]),
    tag("inference/prompt_tokens_avg", &metric::INFERENCE_PROMPT_TOKENS).with(&[MEAN]),
    tag(
        "inference/completion_tokens_avg",
        &metric::INFERENCE_COMPLETION_TOKENS,
    )
    .with(&[MEAN]),
    tag(
        "inference/spec_accept_rate_avg",
        &metric::INFERENCE_SPECULATIVE_ACCEPT_RATIO,
    )
    .with(&[MEAN]),
    tag(
        "inference/spec_accept_length_avg",
        &metric::INFERENCE_SPECULATIVE_ACCEPT_LENGTH,
    )
    .with(&[MEAN]),
    tag("eval/avg_loss", &metric::EVAL_LOSS),
    tag("eval/avg_acc", &metric::EVAL_ACCURACY),
    tag("eval/simulated_acc_len", &metric::EVAL_ACCEPT_LENGTH),
    tag("eval/ploss_{}", &metric::EVAL_LOSS_COMPONENT)
        .capturing(POSITION)
        .with(&[DRAFT]),
    tag("eval/acc_{}", &metric::EVAL_ACCURACY).capturing(POSITION),
];
