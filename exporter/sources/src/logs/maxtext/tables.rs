//! Which of MaxText's numbers is which metric.

use pulsetrain_otlp::write::{Attribute, Value as Out};
use pulsetrain_semconv::{attribute, metric};

use crate::logs::row::{Row, row};

const fn component(name: &'static str) -> Attribute<'static> {
    (&attribute::TRAIN_COMPONENT, Out::Text(name))
}

const fn custom(name: &'static str) -> Attribute<'static> {
    (&attribute::TRAIN_CUSTOM_NAME, Out::Text(name))
}

/// Of a line with "completed step:".
pub(super) static STEP: &[Row] = &[
    row("seconds", &metric::TRAIN_STEP_DURATION),
    row("TFLOP/s/device", &metric::TRAIN_THROUGHPUT_FLOPS_PER_DEVICE).times(1e12),
    row("Tokens/s/device", &metric::TRAIN_THROUGHPUT_TOKENS_PER_DEVICE),
    row("total_weights", &metric::TRAIN_TOTAL_WEIGHTS),
    row("loss", &metric::TRAIN_LOSS).on_span(&attribute::TRAIN_LOSS),
    row("lm_loss", &metric::TRAIN_LOSS_COMPONENT).with(&[component("lm")]),
    row("perplexity", &metric::TRAIN_PERPLEXITY),
    row("moe_lb_loss", &metric::TRAIN_LOSS_COMPONENT).with(&[component("moe_lb")]),
    row("main_model_loss", &metric::TRAIN_LOSS_COMPONENT).with(&[component("main_model")]),
    row("mtp_loss", &metric::TRAIN_LOSS_COMPONENT).with(&[component("mtp")]),
    row("indexer_loss", &metric::TRAIN_LOSS_COMPONENT).with(&[component("indexer")]),
    row("dpo_loss", &metric::TRAIN_LOSS_COMPONENT).with(&[component("dpo")]),
    row("reward_accuracy", &metric::TRAIN_ACCURACY).with(&[component("dpo")]),
    row("live slice count", &metric::TRAIN_CUSTOM).with(&[custom("maxtext.live_slices")]),
];

/// Of lines with "Completed eval".
pub(super) static EVAL: &[Row] = &[
    row("seconds", &metric::EVAL_DURATION),
    row("running loss", &metric::EVAL_LOSS),
    row("running perplexity", &metric::EVAL_PERPLEXITY),
    row("running total_weights", &metric::EVAL_TOTAL_WEIGHTS),
    row("running mtp_loss", &metric::EVAL_LOSS_COMPONENT).with(&[component("mtp")]),
    row("running mtp_acceptance_rate", &metric::EVAL_ACCEPT_RATIO).divided_by(100.0),
    row("loss", &metric::EVAL_LOSS),
    row("perplexity", &metric::EVAL_PERPLEXITY),
    row("total_weights", &metric::EVAL_TOTAL_WEIGHTS),
    row("avg_z_loss", &metric::EVAL_LOSS_COMPONENT).with(&[component("z")]),
    row("avg_moe_lb_loss", &metric::EVAL_LOSS_COMPONENT).with(&[component("moe_lb")]),
    row("avg_mtp_loss", &metric::EVAL_LOSS_COMPONENT).with(&[component("mtp")]),
    row("avg_mtp_acceptance_rate", &metric::EVAL_ACCEPT_RATIO).divided_by(100.0),
    row("avg_indexer_loss", &metric::EVAL_LOSS_COMPONENT).with(&[component("indexer")]),
    row("dpo_reward_accuracy", &metric::EVAL_ACCURACY).with(&[component("dpo")]),
];

/// Of lines of one fact each.
pub(super) static RUN: &[Row] = &[
    row("number parameters", &metric::RUN_PARAMETERS).times(1e9),
    row("Num_devices", &metric::RUN_DEVICES),
    row("Total TFLOPs", &metric::TRAIN_FLOPS_PER_STEP_PER_DEVICE).times(1e12),
    row("learnable weight flops %", &metric::TRAIN_FLOPS_SHARE)
        .divided_by(100.0)
        .with(&[(&attribute::TRAIN_FLOPS_PART, Out::Text("weights"))]),
    row("attention flops %", &metric::TRAIN_FLOPS_SHARE)
        .divided_by(100.0)
        .with(&[(&attribute::TRAIN_FLOPS_PART, Out::Text("attention"))]),
];
