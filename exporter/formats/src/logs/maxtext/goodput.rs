//! Parses the lines about goodput: the last line of the library's uploads (`ml_goodput_measurement/src/monitoring.py`), and
//! those of the examples in its documentation. All values are in percent.

use pulsetrain_mapping::{Field, FieldValue, RecordTable, number_text};

/// The rows of the percentages.
pub(super) static ROWS: RecordTable = RecordTable::new("maxtext", "goodput");

const FINAL: &str = "Final goodput query and upload for job: ";
const COMPLETED: &str = " completed with total goodput: ";

/// Returns the fields of a line and its step.
pub(super) fn fields(text: &str) -> Option<(Option<i64>, Vec<Field<'_>>)> {
    if let Some(rest) = text.strip_prefix(FINAL) {
        let (_, rest) = rest.rsplit_once(COMPLETED)?;
        let (goodput, step) = rest.split_once("%, last step: ")?;
        let field = ("total goodput".into(), FieldValue::parse(goodput));
        return Some((step.trim().parse().ok(), vec![field]));
    }
    let (key, value) = text.split_once(": ")?;
    let percent = number_text::any(value.strip_suffix('%')?)?;
    let key = match key {
        "Goodput" | "Total job goodput" => "total goodput",
        _ if ROWS.row(key).is_some() => key,
        _ => return None,
    };
    Some((None, vec![(key.into(), FieldValue::Number(percent))]))
}
