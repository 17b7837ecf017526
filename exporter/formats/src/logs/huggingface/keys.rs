//! Maps the keys of the dictionaries of the Trainer and of TRL.
//!
//! The keys of an evaluation begin with `eval_`. With several data sets the name of the set follows (`eval_squad_loss`), and
//! `evaluate(metric_key_prefix="test")` has `test_`. The attribute `data.name` distinguishes them.

use pulsetrain_mapping::{Field, MetricMapper, RecordMeta, RecordTable};
use std::borrow::Cow;

use pulsetrain_otlp::{UnixNanos, write::AttributeValue as Out};
use pulsetrain_semconv::attribute;

use pulsetrain_record::Recorder;

/// The keys of ms-swift whose values are durations.
pub(super) const ELAPSED: &str = "elapsed_time";
pub(super) const REMAINING: &str = "remaining_time";

/// The rows of the keys; `{}` in a key matches a part that varies.
pub(super) static ROWS: RecordTable = RecordTable::new("hf-trainer", "log");

/// Records dictionaries.
#[derive(Debug, Default)]
pub(super) struct Dictionaries {
    fields: MetricMapper,
}

impl Dictionaries {
    /// Returns a mapper for a history that is read repeatedly: its steps start over in one attempt.
    pub(super) fn of_one_attempt(self) -> Self {
        Self {
            fields: self.fields.of_one_attempt(),
        }
    }

    /// Records that a step is done.
    pub(super) fn step(&mut self, time_unix_nanos: UnixNanos, step: i64, recorder: &mut Recorder<'_>) {
        self.fields.step(time_unix_nanos, step, recorder);
    }

    /// Records the fields of a dictionary.
    pub(super) fn record(
        &mut self,
        meta: RecordMeta,
        mut fields: Vec<Field<'_>>,
        recorder: &mut Recorder<'_>,
    ) {
        if let Some(prefix) = data_set(&fields).map(str::to_owned) {
            fields.retain_mut(|(key, value)| {
                let Some((known, name)) = of_data_set(key, &prefix) else {
                    return true;
                };
                let field = [(Cow::Owned(known), value.clone())];
                let attributes = [(&attribute::DATA_NAME, Out::Text(name))];
                self.fields.record(&ROWS, meta, &field, &attributes, recorder);
                false
            });
        }
        self.fields.record(&ROWS, meta, &fields, &[], recorder);
    }
}

/// Returns the key prefix of an evaluation of one of several data sets: `eval_squad` of `eval_squad_runtime`.
fn data_set<'f>(fields: &'f [Field<'_>]) -> Option<&'f str> {
    let prefixes = fields.iter().filter_map(|(key, _)| key.strip_suffix("_runtime"));
    prefixes
        .into_iter()
        .find(|prefix| !matches!(*prefix, "train" | "eval"))
}

/// Returns the key of an evaluation of one data set as the table has it, and the name of the data set.
fn of_data_set<'k>(key: &str, prefix: &'k str) -> Option<(String, &'k str)> {
    let rest = key.strip_prefix(prefix)?.strip_prefix('_')?;
    let known = format!("eval_{rest}");
    let row = ROWS.row(&known)?;
    let name = prefix.strip_prefix("eval_").unwrap_or(prefix);
    row.allows(&attribute::DATA_NAME).then_some((known, name))
}
