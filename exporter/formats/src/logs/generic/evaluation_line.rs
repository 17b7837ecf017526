//! The lines of an evaluation.

use super::{
    labelled::{Labelled, LabelledNumber},
    section::{Section, counts_evaluation},
};

/// Returns whether all numbers of a line that begins in a section are of an evaluation: `[valid] step 100: loss 2.5, 3600 tok/s`.
pub(super) fn are_of_evaluation(numbers: &[Labelled<'_>], mut section: Section) -> bool {
    let is_of_evaluation = |number| {
        section = section.after(number);
        section != Section::Training
    };
    !numbers.is_empty() && numbers.iter().all(is_of_evaluation)
}

/// Returns whether a line has the results of mmengine's evaluation, of any name: `Epoch(val) [1][250/250]  mIoU: 77.4`.
pub(super) fn is_result_of_evaluation(numbers: &[Labelled<'_>]) -> bool {
    let is_counter = |number: &Labelled<'_>| counts_evaluation(number.label) == Some(true);
    let is_finished = |number: &Labelled<'_>| match number.number {
        LabelledNumber::Fraction(done, total) => done >= total,
        LabelledNumber::Value(..) | LabelledNumber::Clock(_) => false,
    };
    numbers.iter().any(is_counter) && numbers.iter().any(is_finished)
}

/// Returns whether the next number is the average of a number over the batches of an evaluation so far: `Loss 4.6 (5.0)`. The
/// average of the last line is the result of the evaluation.
pub(super) fn is_averaged(number: &Labelled<'_>, next: &Labelled<'_>, section: Section) -> bool {
    let is_value = |number: &Labelled<'_>| matches!(number.number, LabelledNumber::Value(..));
    next.is_remark
        && !number.label.is_empty()
        && is_value(number)
        && is_value(next)
        && section.after(number) == Section::EvaluationBatches
}
