//! The Trainer of Hugging Face transformers (`integrations/integration_utils.py`, `rewrite_logs`): `eval_x` becomes `eval/x`,
//! everything else `train/x`.

use pulsetrain_semconv::metric;

use super::{
    row::{TagRow, step, tag, total},
    system::{System, TextRow, seen},
};

pub(super) const SYSTEM: System = System {
    name: "hf_trainer",
    signs: &[
        "args/text_summary",
        "train/num_input_tokens_seen",
        "train/train_runtime",
        "train/total_flos",
        "eval/samples_per_second",
    ],
    rows: ROWS,
    texts: &[
        TextRow::Configuration("args/text_summary"),
        TextRow::Option("{}/text_summary"),
    ],
    seen_in_events: seen!(
        "an event file",
        "the Trainer of Hugging Face",
        "args/text_summary, train/train_runtime ..."
    ),
    seen_in_wandb: seen!(
        "a wandb file",
        "the Trainer of Hugging Face",
        "train/train_runtime, train/total_flos ..."
    ),
};

static ROWS: &[TagRow] = &[
    step("train/global_step"),
    tag("train/loss", &metric::TRAIN_LOSS),
    tag("train/grad_norm", &metric::TRAIN_GRAD_NORM),
    tag("train/learning_rate", &metric::TRAIN_LEARNING_RATE),
    tag("train/epoch", &metric::TRAIN_EPOCH),
    total("train/num_input_tokens_seen", &metric::TRAIN_TOKENS),
    tag("train/train_tokens_per_second", &metric::TRAIN_THROUGHPUT_TOKENS),
    tag(
        "train/train_samples_per_second",
        &metric::TRAIN_THROUGHPUT_SAMPLES,
    ),
    tag("train/train_steps_per_second", &metric::TRAIN_THROUGHPUT_STEPS),
    tag("train/train_runtime", &metric::TRAIN_ELAPSED_TIME),
    tag("train/train_loss", &metric::TRAIN_MEAN_LOSS),
    total("train/total_flos", &metric::TRAIN_COMPLETED_FLOPS),
    tag("eval/loss", &metric::EVAL_LOSS),
    tag("eval/runtime", &metric::EVAL_DURATION),
    tag("eval/samples_per_second", &metric::EVAL_THROUGHPUT_SAMPLES),
    tag("eval/steps_per_second", &metric::EVAL_THROUGHPUT_STEPS),
];
