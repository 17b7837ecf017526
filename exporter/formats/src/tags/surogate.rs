//! Surogate (`surogate/train/reporter.py`): every field of a step as `train/field`, to wandb.
//!
//! Its `gpu/field` keys have no row: they do not say of which GPU, and several GPUs overwrite each other.

use pulsetrain_otlp::write::Value;
use pulsetrain_semconv::{attribute, metric};

use super::{
    row::{TagRow, state, tag},
    system::{System, seen},
};

pub(super) const SYSTEM: System = System {
    name: "surogate",
    signs: &[
        "train/norm",
        "train/duration_ms",
        "train/tokens_per_second",
        "train/moe_{}",
    ],
    rows: ROWS,
    texts: &[],
    seen_in_events: seen!("an event file", "Surogate", "train/norm, train/duration_ms ..."),
    seen_in_wandb: seen!("a wandb file", "Surogate", "train/norm, train/duration_ms ..."),
};

static ROWS: &[TagRow] = &[
    tag("train/epoch", &metric::TRAIN_EPOCH),
    tag("train/duration_ms", &metric::TRAIN_STEP_DURATION).divided_by(1e3),
    tag("train/norm", &metric::TRAIN_GRAD_NORM),
    tag("train/loss", &metric::TRAIN_LOSS),
    tag("train/lr", &metric::TRAIN_LEARNING_RATE),
    tag("train/kd_loss", &metric::TRAIN_LOSS_COMPONENT)
        .with(&[(&attribute::TRAIN_COMPONENT, Value::Text("kd"))]),
    tag("train/tokens_per_second", &metric::TRAIN_THROUGHPUT_TOKENS),
    state("train/phase", &metric::TRAIN_PHASE, &attribute::TRAIN_PHASE),
    tag("train/moe_aux_loss", &metric::MOE_AUX_LOSS),
    tag("train/moe_z_loss", &metric::MOE_Z_LOSS),
    tag("train/moe_load_imbalance", &metric::MOE_LOAD_IMBALANCE),
    tag("train/moe_expert_utilization", &metric::MOE_EXPERT_UTILIZATION),
    tag("train/moe_active_experts", &metric::MOE_ACTIVE_EXPERTS),
    tag("train/moe_max_expert_fraction", &metric::MOE_MAX_EXPERT_FRACTION),
    tag(
        "train/moe_min_active_expert_fraction",
        &metric::MOE_MIN_ACTIVE_EXPERT_FRACTION,
    ),
    tag("train/moe_load_cv", &metric::MOE_LOAD_CV),
    tag("train/moe_router_entropy", &metric::MOE_ROUTER_ENTROPY),
    tag("train/moe_router_confidence", &metric::MOE_ROUTER_CONFIDENCE),
    tag("eval/epoch", &metric::TRAIN_EPOCH),
    tag("eval/duration_ms", &metric::EVAL_DURATION).divided_by(1e3),
    tag("eval/loss", &metric::EVAL_LOSS),
    tag("eval/tokens_per_second", &metric::EVAL_THROUGHPUT_TOKENS),
];
