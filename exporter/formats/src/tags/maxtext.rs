//! MaxText (`src/maxtext/common/metric_logger.py`): TensorBoard by tensorboardX, wandb with the same keys, and so have its
//! `metrics_file` and the windows of its `gcs_metrics`; the configuration is one text a setting.
//!
//! Goodput is written beside it, to a file of its own (`ml_goodput_measurement/src/monitoring.py`), in percent.

use pulsetrain_otlp::write::{Attribute, Value};
use pulsetrain_semconv::{attribute, metric};

use super::{
    row::{Capture, TagRow, keep, tag},
    system::{System, TextRow, seen},
};

pub(crate) const SYSTEM: System = System {
    name: "maxtext",
    signs: &[
        "num_model_parameters/text_summary",
        "libtpu_init_args/text_summary",
        "learning/{}",
        "perf/per_device_{}",
        "goodput/goodput",
        "badput/{}",
    ],
    rows: ROWS,
    texts: &[TextRow::Option("{}/text_summary")],
    seen_in_events: seen!(
        "an event file",
        "MaxText",
        "learning/loss, perf/per_device_tflops ..."
    ),
    seen_in_wandb: seen!(
        "a wandb file",
        "MaxText",
        "learning/loss, perf/per_device_tflops ..."
    ),
};

const fn component(name: &'static str) -> Attribute<'static> {
    (&attribute::TRAIN_COMPONENT, Value::Text(name))
}

const fn statistic(name: &'static str) -> Attribute<'static> {
    (&attribute::RL_STATISTIC, Value::Text(name))
}

const CAUSE: &[Capture] = &[(0, &attribute::TRAIN_BADPUT_CAUSE)];
const EVENT: &[Capture] = &[(0, &attribute::TRAIN_BADPUT_EVENT)];
const OF_THE_TRAINER: Attribute<'static> = (
    &attribute::TRAIN_BADPUT_CAUSE,
    Value::Text("custom_badput_events"),
);

/// `perf/per_device_tokens` keeps its own name: the tokens of one device are none of `train.tokens`, and a file does not say
/// for certain how many devices there are. Sums over an evaluation are told beside the means of them. Goodput had no folder
/// before April 2025; a reward's accuracy had the name of its method.
static ROWS: &[TagRow] = &[
    keep("perf/per_device_tokens"),
    tag("learning/loss", &metric::TRAIN_LOSS),
    tag("learning/lm_loss", &metric::TRAIN_LOSS_COMPONENT).with(&[component("lm")]),
    tag("learning/z_loss", &metric::TRAIN_LOSS_COMPONENT).with(&[component("z")]),
    tag("learning/moe_lb_loss", &metric::TRAIN_LOSS_COMPONENT).with(&[component("moe_lb")]),
    tag("learning/indexer_loss", &metric::TRAIN_LOSS_COMPONENT).with(&[component("indexer")]),
    tag("learning/mtp_loss", &metric::TRAIN_LOSS_COMPONENT).with(&[component("mtp")]),
    tag("learning/dpo_loss", &metric::TRAIN_LOSS_COMPONENT).with(&[component("dpo")]),
    tag("learning/perplexity", &metric::TRAIN_PERPLEXITY),
    tag("learning/reward_accuracy", &metric::TRAIN_ACCURACY).with(&[component("dpo")]),
    tag("learning/dpo_reward_accuracy", &metric::TRAIN_ACCURACY).with(&[component("dpo")]),
    tag("learning/total_weights", &metric::TRAIN_TOTAL_WEIGHTS),
    tag("learning/grad_norm", &metric::TRAIN_GRAD_NORM),
    tag("learning/raw_grad_norm", &metric::TRAIN_RAW_GRAD_NORM),
    tag("learning/param_norm", &metric::TRAIN_PARAM_NORM),
    tag("learning/current_learning_rate", &metric::TRAIN_LEARNING_RATE),
    tag("learning/avg_reward", &metric::RL_REWARD).with(&[statistic("mean")]),
    tag("learning/avg_reward_std", &metric::RL_REWARD).with(&[statistic("std")]),
    tag("learning/avg_advantage", &metric::RL_ADVANTAGE).with(&[statistic("mean")]),
    tag("learning/avg_kl", &metric::RL_KL).with(&[statistic("mean")]),
    tag("learning/completion_length", &metric::RL_COMPLETION_LENGTH).with(&[statistic("mean")]),
    tag("perf/step_time_seconds", &metric::TRAIN_STEP_DURATION),
    tag("perf/per_device_tflops", &metric::TRAIN_FLOPS_PER_STEP_PER_DEVICE).times(1e12),
    tag(
        "perf/per_device_tflops_per_sec",
        &metric::TRAIN_THROUGHPUT_FLOPS_PER_DEVICE,
    )
    .times(1e12),
    tag(
        "perf/per_device_tokens_per_sec",
        &metric::TRAIN_THROUGHPUT_TOKENS_PER_DEVICE,
    ),
    keep("learning/reward_margin"),
    keep("learning/max_logits"),
    keep("learning/moe_bias_before_norm_{}"),
    keep("learning/moe_bias_update_norm_{}"),
    keep("learning/loss_island_{}"),
    keep("activ_fraction_zero/{}"),
    keep("activ_mean/{}"),
    keep("activ_stdev/{}"),
    keep("perf/per_device_tflops_student"),
    keep("perf/per_device_tflops_teacher"),
    keep("perf/per_device_tflops_per_sec_student"),
    keep("perf/per_device_tflops_per_sec_teacher"),
    keep("distill/{}"),
    tag("eval/step_time_seconds", &metric::EVAL_DURATION),
    tag("eval/avg_loss", &metric::EVAL_LOSS),
    tag("eval/avg_perplexity", &metric::EVAL_PERPLEXITY),
    tag("eval/avg_z_loss", &metric::EVAL_LOSS_COMPONENT).with(&[component("z")]),
    tag("eval/avg_moe_lb_loss", &metric::EVAL_LOSS_COMPONENT).with(&[component("moe_lb")]),
    tag("eval/avg_mtp_loss", &metric::EVAL_LOSS_COMPONENT).with(&[component("mtp")]),
    tag("eval/avg_indexer_loss", &metric::EVAL_LOSS_COMPONENT).with(&[component("indexer")]),
    tag("eval/avg_mtp_acceptance_rate_percent", &metric::EVAL_ACCEPT_RATIO).divided_by(100.0),
    tag("eval/dpo_reward_accuracy", &metric::EVAL_ACCURACY).with(&[component("dpo")]),
    tag("eval/avg_dpo_reward_accuracy", &metric::EVAL_ACCURACY).with(&[component("dpo")]),
    tag("eval/total_weights", &metric::EVAL_TOTAL_WEIGHTS),
    keep("eval/avg_dpo_reward_margin"),
    keep("eval/avg_sft_loss"),
    keep("eval/avg_or_loss"),
    keep("eval/hard_loss"),
    keep("eval/student_perplexity"),
    keep("eval/total_loss"),
    keep("eval/z_loss"),
    keep("eval/moe_lb_loss"),
    keep("eval/mtp_loss"),
    keep("eval/mtp_acceptance_rate_percent"),
    keep("eval/indexer_loss"),
    tag("goodput/goodput", &metric::TRAIN_GOODPUT).divided_by(100.0),
    tag("goodput", &metric::TRAIN_GOODPUT).divided_by(100.0),
    tag("badput/custom_badput_events/{}", &metric::TRAIN_BADPUT)
        .divided_by(100.0)
        .capturing(EVENT)
        .with(&[OF_THE_TRAINER]),
    tag("badput/{}", &metric::TRAIN_BADPUT)
        .divided_by(100.0)
        .capturing(CAUSE),
    tag("step_deviation", &metric::TRAIN_STEP_DEVIATION),
];
