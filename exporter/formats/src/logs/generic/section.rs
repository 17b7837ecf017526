//! The parts of a line and of a log that are of training or of an evaluation.

pub(in crate::logs) use pulsetrain_mapping::split::is_evaluation;
pub(super) use pulsetrain_mapping::split::{EVAL_PREFIX, is_one_of, names_evaluation, names_training};

use super::labelled::Labelled;

/// A word that makes `cv` one of cross-validation, whose folds are trained.
const FOLD: &str = "fold";

/// Labels of the counters of an epoch.
pub(super) const BATCHES: [&str; 4] = ["batch", "minibatch", "mini-batch", "mini_batch"];

/// The names of the counters of mmengine: `Epoch(val) [1][50/250]`.
const COUNTERS: [&str; 2] = ["epoch", "iter"];

/// The most words of a heading. A longer line is a sentence.
const MAX_WORDS_OF_HEADING: usize = 3;

/// The ends of a heading that announces an evaluation: `Validating...`, `***** Running evaluation *****`.
const ANNOUNCEMENT_ENDS: [&str; 4] = ["...", "***", "===", "---"];

/// The other words of an announcement.
const BEGINNINGS: [&str; 4] = ["running", "starting", "start", "begin"];

/// The part of a line that a number belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Section {
    /// Values of training.
    Training,
    /// Values of an evaluation, as after `val` in `train loss 2.4, val loss 2.5`.
    Evaluation,
    /// A line about the batches of an evaluation: `Test: [10/97] Time 0.1 Loss 2.5`. None of its values is of training.
    EvaluationBatches,
}

impl Section {
    /// Returns the section of a number, given that of the number before it. A label of one word, as `val_loss`, begins one
    /// only if it counts: `Test: [10/97]`, `Epoch(val) [1][50/250]`.
    pub(super) fn after(self, number: &Labelled<'_>) -> Self {
        let counts = number.is_progress || counts_evaluation(number.label).is_some();
        let label = match number.label.split_once(char::is_whitespace) {
            _ if counts => number.label,
            Some((first, _)) => first,
            None => "",
        };
        let is_delimiter = |letter: char| !letter.is_alphanumeric() && letter != '_';
        let words = [number.context, label]
            .into_iter()
            .flat_map(|text| text.split(is_delimiter))
            .filter(|word| !word.is_empty());
        if words.clone().any(|word| word.eq_ignore_ascii_case(FOLD)) {
            return self;
        }
        // A counter follows its name: `Test: [10/97]`, `CV Batch 10/97`, and not `Test accuracy: 9843/10000`.
        let is_name = |word: &str| is_evaluation(word) == Some(true) || is_one_of(&BATCHES, word);
        let is_counter = counts && words.clone().next_back().is_some_and(is_name);
        match words.filter_map(is_evaluation).next_back() {
            Some(true) if is_counter => Self::EvaluationBatches,
            Some(true) => Self::Evaluation,
            Some(false) => Self::Training,
            // `CV | loss 2.5 | Batch 10/97`.
            None if is_counter && self == Self::Evaluation => Self::EvaluationBatches,
            None => self,
        }
    }

    /// Returns the section of the indented lines after a line, which may be their heading: `Test Error:`.
    pub(super) fn of_heading(line: &str) -> Self {
        let line = line.trim_end();
        let is_announcement = ANNOUNCEMENT_ENDS.iter().any(|end| line.ends_with(end));
        let is_heading =
            (line.ends_with(':') || is_announcement) && !line.bytes().any(|byte| byte.is_ascii_digit());
        if !is_heading {
            return Self::Training;
        }
        let words = line.split(|letter: char| !letter.is_alphanumeric());
        let words: Vec<&str> = words.filter(|word| !word.is_empty()).collect();
        let kinds: Vec<bool> = words.iter().filter_map(|word| is_evaluation(word)).collect();
        // `Loading test data...` does not announce one.
        let can_announce = |word: &&str| is_evaluation(word).is_some() || is_one_of(&BEGINNINGS, word);
        let is_plausible = !is_announcement || words.iter().all(can_announce);
        let is_short = words.len() <= MAX_WORDS_OF_HEADING && is_plausible;
        match is_short && !kinds.is_empty() && !kinds.contains(&false) {
            true => Self::Evaluation,
            false => Self::Training,
        }
    }
}

/// The text that TensorFlow's estimators print before the results of an evaluation.
const SAVED_RESULTS: &str = "Saving dict for global step";

/// Returns whether the words after the last number of a line name an evaluation: `Loss 2.5 (validation)`, `loss: 2.5 on the test
/// set`. Also what an estimator saves is of one.
pub(super) fn ends_with_evaluation(line: &str) -> bool {
    let end = line
        .rfind(|last: char| last.is_ascii_digit())
        .map_or(line.len(), |at| at + 1);
    let after = &line[end..];
    let is_remark =
        after.trim_start().starts_with(['(', '[', '<', '@']) || after.trim_start().starts_with("on ");
    let words = after
        .split(|letter: char| !letter.is_alphanumeric())
        .filter(|word| !word.is_empty());
    let words: Vec<&str> = words.collect();
    let is_short = words.len() <= MAX_WORDS_OF_HEADING + 1;
    is_remark && is_short && words.iter().any(|word| is_evaluation(word) == Some(true))
        || line.contains(SAVED_RESULTS)
}

/// Returns whether a counter with its split in brackets is of an evaluation, as `Epoch(val)`; `None` for any other label.
pub(super) fn counts_evaluation(label: &str) -> Option<bool> {
    let (name, split) = label.strip_suffix(')')?.rsplit_once('(')?;
    let name = name.rsplit(char::is_whitespace).next().unwrap_or(name);
    is_evaluation(split).filter(|_| is_one_of(&COUNTERS, name))
}
