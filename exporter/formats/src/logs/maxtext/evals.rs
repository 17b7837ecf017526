//! Parses the lines of evaluations: the running mean after each batch and the final mean (`_log_running_eval_metrics` and
//! `_log_eval_metrics` of `metric_logger.py`). Before May 2026 only the latter exists. Before July 2025 its form is `average
//! loss after step=20: eval_step_count=5, eval_loss=5.917, ...`.

use pulsetrain_mapping::RecordTable;

/// The rows of all these lines.
pub(super) static ROWS: RecordTable = RecordTable::new("maxtext", "eval");

/// The beginnings of a line of a result, up to the step.
const RESULTS: [&str; 2] = ["Completed eval after train step ", "eval metrics after step: "];

/// Returns the training step of an evaluation, and the fields of its line. The line of a batch has no training step.
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
