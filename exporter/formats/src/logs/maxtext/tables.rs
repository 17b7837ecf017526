//! Which of MaxText's numbers is which metric.

use pulsetrain_otlp::write::{Attribute, Value as Out};
use pulsetrain_semconv::{attribute, metric};

use crate::logs::row::{Row, row};

pub(super) const fn component(name: &'static str) -> Attribute<'static> {
    (&attribute::TRAIN_COMPONENT, Out::Text(name))
}

pub(super) const fn custom(name: &'static str) -> Attribute<'static> {
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
