//! Records the totals of `trainer_state.json`: the fields before and after its history.

use pulsetrain_mapping::{Field, FieldValue, RecordMeta, record_option};
use std::borrow::Cow;

use pulsetrain_otlp::{UnixNanos, write::AttributeValue as Out};
use pulsetrain_semconv::metric;

use super::history_digest::{HistoryDigest, hash};
use crate::logs::huggingface::DUPLICATE;
use crate::logs::huggingface::keys::Dictionaries;
use crate::logs::literal;
use pulsetrain_record::{Recorder, SkipReason};

/// Settings of the run, each recorded as an option.
const OPTIONS: [&str; 8] = [
    "max_steps",
    "num_train_epochs",
    "train_batch_size",
    "logging_steps",
    "eval_steps",
    "save_steps",
    "trial_name",
    "trial_params",
];

/// Fields that the last entry of the history has too.
const DUPLICATES: [&str; 3] = ["epoch", "global_step", "num_input_tokens_seen"];
/// State that only the Trainer needs when it resumes.
const BOOKKEEPING: [&str; 4] = [
    "is_hyper_param_search",
    "is_local_process_zero",
    "is_world_process_zero",
    "stateful_callbacks",
];

/// The reason of skipped Trainer state.
const TRAINER_STATE: &str = "trainer_bookkeeping";

/// Records the totals of a run.
#[derive(Debug, Default)]
pub(super) struct Totals {
    /// The text before the history.
    head: String,
}

impl Totals {
    /// Keeps the text before the history, without the opening bracket of the object.
    pub(super) fn begin(&mut self, head: &str) {
        let head = head.trim_start().strip_prefix('{').unwrap_or_default();
        head.clone_into(&mut self.head);
    }

    /// The text before the history.
    pub(super) fn head(&self) -> &str {
        &self.head
    }

    /// Records all totals.
    pub(super) fn record(
        &self,
        meta: RecordMeta,
        mut fields: Vec<Field<'_>>,
        digest: &mut HistoryDigest,
        dictionaries: &mut Dictionaries,
        recorder: &mut Recorder<'_>,
    ) {
        let time = meta.time_unix_nanos;
        if let (Some(step), Some(all)) = (
            literal::number(&fields, "global_step"),
            literal::number(&fields, "max_steps").filter(|steps| *steps > 0.0),
        ) {
            recorder.record(&metric::TRAIN_PROGRESS, time, step / all, &[]);
        }
        fields.retain(|(key, value)| {
            let key = key.as_ref();
            if OPTIONS.contains(&key) {
                option(key, value, time, digest, recorder);
            } else if DUPLICATES.contains(&key) {
                recorder.skip_value(SkipReason::Ignored(DUPLICATE));
            } else if BOOKKEEPING.contains(&key) {
                recorder.skip_value(SkipReason::Ignored(TRAINER_STATE));
            } else {
                return true;
            }
            false
        });
        dictionaries.record(meta, fields, recorder);
    }
}

/// Records a setting if its value is new.
fn option(
    key: &str,
    value: &FieldValue<'_>,
    time_unix_nanos: UnixNanos,
    digest: &mut HistoryDigest,
    recorder: &mut Recorder<'_>,
) {
    let text = match value {
        FieldValue::Number(number) => number.to_string().into(),
        FieldValue::Text(text) => Cow::Borrowed(text.as_ref()),
    };
    if digest.has_setting(key, hash(&text)) {
        return;
    }
    let value = match value {
        FieldValue::Number(number) if number.fract() == 0.0 => Out::Int(*number as i64),
        FieldValue::Number(number) => Out::Double(*number),
        FieldValue::Text(text) => Out::Text(text),
    };
    record_option(key, value, time_unix_nanos, recorder);
}
