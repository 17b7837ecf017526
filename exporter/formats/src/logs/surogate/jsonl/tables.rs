//! Which key of the JSON lines is which metric.

use pulsetrain_otlp::write::{Attribute, Value as Out};
use pulsetrain_semconv::{attribute, metric};

use crate::logs::row::{Row, row};

const MEAN: &[Attribute<'static>] = &[(&attribute::RL_STATISTIC, Out::Text("mean"))];

const fn custom(name: &'static str) -> Attribute<'static> {
    (&attribute::TRAIN_CUSTOM_NAME, Out::Text(name))
}

/// Of steps and evaluations.
pub(super) static STEP: &[Row] = &[
    row("train/loss", &metric::TRAIN_LOSS).on_span(&attribute::TRAIN_LOSS),
    row("train/norm", &metric::TRAIN_GRAD_NORM).on_span(&attribute::TRAIN_GRAD_NORM),
    row("train/grad_norm", &metric::TRAIN_GRAD_NORM).on_span(&attribute::TRAIN_GRAD_NORM),
    row("train/lr", &metric::TRAIN_LEARNING_RATE).on_span(&attribute::TRAIN_LEARNING_RATE),
    row("train/epoch", &metric::TRAIN_EPOCH).on_span(&attribute::TRAIN_EPOCH),
    row("train/duration_ms", &metric::TRAIN_STEP_DURATION).divided_by(1e3),
    row("train/tokens_per_second", &metric::TRAIN_THROUGHPUT_TOKENS),
    row("train/kd_loss", &metric::TRAIN_LOSS_COMPONENT)
        .with(&[(&attribute::TRAIN_COMPONENT, Out::Text("kd"))]),
    row("train/moe_aux_loss", &metric::MOE_AUX_LOSS),
    row("train/moe_z_loss", &metric::MOE_Z_LOSS),
    row("train/moe_load_imbalance", &metric::MOE_LOAD_IMBALANCE),
    row("train/moe_expert_utilization", &metric::MOE_EXPERT_UTILIZATION),
    row("train/moe_active_experts", &metric::MOE_ACTIVE_EXPERTS),
    row("train/moe_max_expert_fraction", &metric::MOE_MAX_EXPERT_FRACTION),
    row(
        "train/moe_min_active_expert_fraction",
        &metric::MOE_MIN_ACTIVE_EXPERT_FRACTION,
    ),
    row("train/moe_load_cv", &metric::MOE_LOAD_CV),
    row("train/moe_router_entropy", &metric::MOE_ROUTER_ENTROPY),
    row("train/moe_router_confidence", &metric::MOE_ROUTER_CONFIDENCE),
    row("train/policy_loss", &metric::RL_POLICY_LOSS),
    row("train/mismatch_kl", &metric::RL_POLICY_KL).with(MEAN),
    row("train/masked_mismatch_kl", &metric::TRAIN_CUSTOM).with(&[custom("surogate.masked_mismatch_kl")]),
    row("train/unmasked_mismatch_kl", &metric::TRAIN_CUSTOM).with(&[custom("surogate.unmasked_mismatch_kl")]),
    row("train/is_masked", &metric::RL_MASKED_FRACTION),
    row("train/is_masked_low", &metric::TRAIN_CUSTOM).with(&[custom("surogate.is_masked_low")]),
    row("train/is_masked_high", &metric::TRAIN_CUSTOM).with(&[custom("surogate.is_masked_high")]),
    row("train/teacher_kl", &metric::RL_TEACHER_KL).with(MEAN),
    row("train/keep_tokens", &metric::RL_KEPT_TOKENS),
    row("train/total_tokens", &metric::TRAIN_TOKENS),
    row("train/micro_batches", &metric::TRAIN_MICRO_BATCHES),
    row("train/vtc", &metric::TRAIN_REAL_TOKENS),
    row("train/expected_loss_scale", &metric::TRAIN_LOSS_SCALE),
    row("train/orch_step", &metric::TRAIN_CUSTOM).with(&[custom("surogate.orch_step")]),
    row("eval/loss", &metric::EVAL_LOSS).on_span(&attribute::EVAL_LOSS),
    row("eval/epoch", &metric::TRAIN_EPOCH),
    row("eval/duration_ms", &metric::EVAL_DURATION).divided_by(1e3),
    row("eval/tokens_per_second", &metric::EVAL_THROUGHPUT_TOKENS),
];
