//! Tags that mean the same in whatever program writes them.

use pulsetrain_semconv::metric;

use super::row::{TagRow, step, tag};

/// What any trainer's tags mean, where its own table does not say.
pub(super) static ROWS: &[TagRow] = &[
    step("train/global_step"),
    tag("train/loss", &metric::TRAIN_LOSS),
    tag("train_loss", &metric::TRAIN_LOSS),
    tag("train/grad_norm", &metric::TRAIN_GRAD_NORM),
    tag("train/lr", &metric::TRAIN_LEARNING_RATE),
    tag("train/learning_rate", &metric::TRAIN_LEARNING_RATE),
    tag("train/epoch", &metric::TRAIN_EPOCH),
    tag("train/perplexity", &metric::TRAIN_PERPLEXITY),
    tag("eval/loss", &metric::EVAL_LOSS),
    tag("eval_loss", &metric::EVAL_LOSS),
    tag("eval/perplexity", &metric::EVAL_PERPLEXITY),
    tag("val/loss", &metric::EVAL_LOSS),
    tag("val_loss", &metric::EVAL_LOSS),
    tag("loss", &metric::TRAIN_LOSS),
    tag("lr", &metric::TRAIN_LEARNING_RATE),
    tag("learning_rate", &metric::TRAIN_LEARNING_RATE),
    tag("grad_norm", &metric::TRAIN_GRAD_NORM),
    tag("epoch", &metric::TRAIN_EPOCH),
    tag("perplexity", &metric::TRAIN_PERPLEXITY),
];
