//! Parses the two lines of a distillation step (`trainers/post_train/distillation/train_distill.py`), which do not come from
//! the metric logger: `step 5 | step_time=1.23s | TFLOPs/s/device: 100.00 (student=60.00, teacher=40.00)` and `Distillation
//! metrics | total_loss=2.31 hard_loss=2.5`.

use pulsetrain_mapping::{Field, FieldValue, RecordTable, number_text};

use crate::logs::delimited::Delimiters;

/// The rows of the values. Losses that are weighted into the total keep their own names.
pub(super) static ROWS: RecordTable = RecordTable::new("maxtext", "distillation");

const METRICS: &str = "Distillation metrics | ";
const METRIC_DELIMITERS: Delimiters = Delimiters { pair: " ", key: b"=" };

/// Returns the fields of a line, and its step if it has one.
pub(super) fn fields(text: &str) -> Option<(Option<i64>, Vec<Field<'_>>)> {
    if let Some(metrics) = text.strip_prefix(METRICS) {
        let fields = METRIC_DELIMITERS.fields(metrics);
        return Some((
            None,
            fields.map(|field| (field.key.into(), field.value(&[]))).collect(),
        ));
    }
    let (step, rest) = text.strip_prefix("step ")?.split_once(" | step_time=")?;
    let (secs, rest) = rest.split_once("s | TFLOPs/s/device: ")?;
    let (both, each) = rest.split_once(" (")?;
    let of = |key: &'static str, text: &str| Some((key.into(), FieldValue::Number(number_text::any(text)?)));
    let mut fields = vec![of("step_time", secs)?, of("TFLOPs/s/device", both)?];
    let each = each.strip_suffix(')')?.split(", ");
    fields.extend(each.filter_map(|part| {
        let (key, number) = part.split_once('=')?;
        Some((key.into(), FieldValue::parse(number)))
    }));
    Some((Some(step.parse().ok()?), fields))
}
