//! The lines of evaluations, of this release and of older ones: the mean so far after each batch and the mean in the end
//! (`_log_running_eval_metrics` and `_log_eval_metrics` of `metric_logger.py`; before May 2026 the latter only, and before
//! July 2025 `average loss after step=20: eval_step_count=5, eval_loss=5.917, ...`).

use pulsetrain_semconv::metric;

use super::tables::{component, custom};
use crate::logs::row::{Row, row};

/// What all of them call their numbers.
pub(super) static ROWS: &[Row] = &[
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
    row("step_time_seconds", &metric::EVAL_DURATION),
    row("eval_loss", &metric::EVAL_LOSS),
    row("eval_step_count", &metric::TRAIN_CUSTOM).with(&[custom("maxtext.eval_steps")]),
];

/// What the line of a result begins with, up to the step.
const RESULTS: [&str; 2] = ["Completed eval after train step ", "eval metrics after step: "];

/// The step after which a line tells of an evaluation, and its numbers; that of a batch has none of training.
pub(super) fn parts(text: &str) -> Option<(Option<i64>, &str)> {
    if let Some(rest) = text.strip_prefix("Completed eval step: ") {
        let (_, values) = rest.split_once(", ")?;
        return Some((None, values));
    }
    let mut results = RESULTS.iter();
    let result = results.find_map(|begin| text.strip_prefix(begin)?.split_once(", "));
    let before_2025 = || text.strip_prefix("average loss after step=")?.split_once(": ");
    let (step, values) = result.or_else(before_2025)?;
    Some((Some(step.trim_ascii().parse().ok()?), values))
}
