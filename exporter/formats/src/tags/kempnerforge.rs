//! KempnerForge (`kempnerforge/metrics/tracker.py`): the same keys in TensorBoard and wandb. Its GB are GiB, and its MFU is a
//! fraction here, though a percentage on the console.

use pulsetrain_semconv::{attribute, metric};

use super::{
    row::{TagRow, tag, total},
    system::{System, seen},
};

pub(super) const SYSTEM: System = System {
    name: "kempnerforge",
    signs: &[
        "train/tokens_per_sec",
        "train/step_time_sec",
        "smoothed/{}",
        "moe/expert_balance",
    ],
    rows: ROWS,
    texts: &[],
    seen_in_events: seen!(
        "an event file",
        "KempnerForge",
        "train/tokens_per_sec, smoothed/loss ..."
    ),
    seen_in_wandb: seen!(
        "a wandb file",
        "KempnerForge",
        "train/tokens_per_sec, smoothed/loss ..."
    ),
};

const GIB: f64 = (1u64 << 30) as f64;

static ROWS: &[TagRow] = &[
    tag("train/loss", &metric::TRAIN_LOSS),
    tag("train/grad_norm", &metric::TRAIN_GRAD_NORM),
    tag("train/lr", &metric::TRAIN_LEARNING_RATE),
    tag("train/tokens_per_sec", &metric::TRAIN_THROUGHPUT_TOKENS),
    tag("train/mfu", &metric::TRAIN_MFU),
    tag("train/step_time_sec", &metric::TRAIN_STEP_DURATION),
    tag("gpu/allocated_gb", &metric::MEMORY_FRAMEWORK_ALLOCATED).times(GIB),
    tag("gpu/peak_gb", &metric::MEMORY_FRAMEWORK_PEAK).times(GIB),
    tag("gpu/reserved_gb", &metric::MEMORY_FRAMEWORK_RESERVED).times(GIB),
    tag("gpu/mem_utilization", &metric::MEMORY_FRAMEWORK_UTILIZATION),
    tag("smoothed/loss", &metric::TRAIN_SMOOTHED_LOSS),
    tag("smoothed/tokens_per_sec", &metric::TRAIN_SMOOTHED_THROUGHPUT),
    tag("smoothed/mfu", &metric::TRAIN_SMOOTHED_MFU),
    tag("smoothed/step_time", &metric::TRAIN_SMOOTHED_STEP_TIME),
    tag("moe/aux_loss", &metric::MOE_AUX_LOSS),
    tag("moe/router_z_loss", &metric::MOE_Z_LOSS),
    tag("moe/expert_balance", &metric::MOE_EXPERT_BALANCE),
    tag("eval/loss", &metric::EVAL_LOSS),
    tag("eval/perplexity", &metric::EVAL_PERPLEXITY),
    tag("loss/{}", &metric::DATA_LOSS).capturing(&[(0, &attribute::DATA_NAME)]),
    total("data/{}/tokens", &metric::DATA_CONSUMED_TOKENS).capturing(&[(0, &attribute::DATA_NAME)]),
    total("data/text_tokens_trained", &metric::TRAIN_TOKENS),
];
