//! Names of the rows and columns of tables: a run, a trial, a split, or the step.
//!
//! Two runs never share a series: values of a run with a name in the table are kept as `train.custom` under the name of the run
//! and the name of the column.

use pulsetrain_mapping::FieldValue;

use super::{
    labelled::{LabelledNumber, labelled},
    printed_number::DecimalMark,
    section::is_evaluation,
};

/// The text between the name of a run and that of a metric in charts that wandb exports: `brisk-river-12 - train/loss`.
const AFTER_RUN: &str = " - ";

/// The ends of the columns with the range of a metric in an export of wandb.
const RANGES: [&str; 2] = ["__MIN", "__MAX"];

/// The first columns of tables whose texts are no names of runs.
const TIMES: [&str; 4] = ["time", "date", "timestamp", "datetime"];

/// The first cell of a row.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum RowName<'a> {
    /// A number, a time, or nothing.
    Empty,
    /// The values are of training or, if true, of an evaluation.
    Split(bool),
    /// The step or the epoch, as in `Epoch 3`.
    Place(&'a str, f64),
    /// Anything else.
    Run(&'a str),
}

impl<'a> RowName<'a> {
    /// Parses the first cell of a row in a column.
    pub(super) fn parse(column: &str, cell: &'a str) -> Self {
        let is_time = TIMES.iter().any(|time| time.eq_ignore_ascii_case(column));
        if is_time || !cell.starts_with(char::is_alphabetic) || FieldValue::parse(cell).number().is_some() {
            return Self::Empty;
        }
        if let Some(is_evaluation) = is_evaluation(cell) {
            return Self::Split(is_evaluation);
        }
        if let [place] = labelled(cell, DecimalMark::default()).as_slice()
            && let LabelledNumber::Value(number, "") | LabelledNumber::Fraction(number, _) = place.number
            && matches!(
                place.label.to_ascii_lowercase().as_str(),
                "step" | "epoch" | "iteration" | "iter"
            )
        {
            return Self::Place(place.label, number);
        }
        Self::Run(cell)
    }
}

/// Names the columns of a chart that wandb exports: the metric without the run if the chart has one run. Returns whether each
/// column is kept as it is, as those of several runs are; `None` for any other table. The first column is the axis of the chart.
pub(super) fn without_run(columns: &mut [String]) -> Option<Vec<bool>> {
    let (axis, others) = columns.split_first()?;
    let runs: Option<Vec<&str>> = others
        .iter()
        .map(|column| Some(column.rsplit_once(AFTER_RUN)?.0))
        .collect();
    let runs = runs
        .filter(|_| !axis.contains(AFTER_RUN) && !columns.iter().any(|column| column.contains(['=', ':'])))?;
    let first = *runs.first()?;
    let is_one = runs.iter().all(|run| *run == first);
    let is_kept = |column: &mut String| {
        let Some((_, metric)) = column.rsplit_once(AFTER_RUN) else {
            return false;
        };
        if !is_one || RANGES.iter().any(|end| metric.ends_with(end)) {
            return true;
        }
        *column = metric.to_owned();
        false
    };
    Some(columns.iter_mut().map(is_kept).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metric_of_the_only_run_of_a_chart_has_no_name_of_the_run() {
        let named = |names: &[&str]| {
            let mut columns: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
            let kept = without_run(&mut columns);
            (columns, kept)
        };
        let (columns, kept) = named(&["Step", "a-1 - loss", "a-1 - loss__MIN", "a-1 - loss__MAX"]);
        assert_eq!(columns[1..3], ["loss", "a-1 - loss__MIN"]);
        assert_eq!(kept, Some(vec![false, false, true, true]));
        let (columns, kept) = named(&["Step", "a-1 - loss", "b-2 - loss"]);
        assert_eq!(columns[1..], ["a-1 - loss", "b-2 - loss"]);
        assert_eq!(kept, Some(vec![false, true, true]));
        assert_eq!(named(&["step", "loss"]).1, None);
        assert_eq!(named(&["logger - epoch: 1", "train - loss: 2"]).1, None);
    }

    #[test]
    fn first_cell_is_a_split_a_place_or_the_name_of_a_run() {
        for (column, cell, expected) in [
            ("Epoch", "3", RowName::Empty),
            ("Time", "now", RowName::Empty),
            ("", "valid", RowName::Split(true)),
            ("", "Train", RowName::Split(false)),
            ("", "Epoch 3", RowName::Place("Epoch", 3.0)),
            ("Trial", "trial_7", RowName::Run("trial_7")),
        ] {
            assert_eq!(RowName::parse(column, cell), expected, "{cell}");
        }
    }
}
