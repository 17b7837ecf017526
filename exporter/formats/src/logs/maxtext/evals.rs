//! The lines of evaluations, of this release and of older ones: the mean so far after each batch and the mean in the end
//! (`_log_running_eval_metrics` and `_log_eval_metrics` of `metric_logger.py`; before May 2026 the latter only, and before
//! July 2025 `average loss after step=20: eval_step_count=5, eval_loss=5.917, ...`).

use pulsetrain_mapping::RecordTable;

/// What all of them call their numbers.
pub(super) static ROWS: RecordTable = RecordTable::new("maxtext", "eval");

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
