//! Parses lines with one fact about the run: its parameters, its devices, the operations of a step.

use pulsetrain_mapping::{Field, FieldValue, RecordTable, number_text};

/// The rows of the facts.
pub(super) static ROWS: RecordTable = RecordTable::new("maxtext", "facts");

/// Returns the fields of a line. Lines about the operations of an inference step begin with tabs and are not matched.
pub(super) fn fields(text: &str) -> Option<Vec<Field<'_>>> {
    let field = |key: &'static str, number: f64| vec![(key.into(), FieldValue::Number(number))];
    let first = |rest: &str, end: &[char]| number_text::any(rest.split(end).next()?.trim());
    if let Some(rest) = text.strip_prefix("number parameters: ") {
        return Some(field("number parameters", first(rest, &[' '])?));
    }
    if let Some(rest) = text.strip_prefix(DEVICES) {
        return Some(field("Num_devices", first(rest, &[','])?));
    }
    let text = text.trim_start_matches(' ');
    if let Some(rest) = text.strip_prefix("Total TFLOPs: ") {
        return Some(field("Total TFLOPs", number_text::any(rest.trim())?));
    }
    let (weights, attention) = text
        .strip_prefix("split as ")?
        .split_once("% learnable weight flops and ")?;
    let mut shares = field("learnable weight flops %", number_text::any(weights)?);
    shares.extend(field("attention flops %", first(attention, &['%'])?));
    Some(shares)
}

const DEVICES: &str = "Num_devices: ";

/// Returns the number of devices of the mesh along each axis, and its name: `shape (1, 1, 4)`.
pub(super) fn mesh(text: &str) -> Option<(&str, &str)> {
    let (_, shape) = text.strip_prefix(DEVICES)?.split_once(", ")?;
    shape.split_once(' ')
}
