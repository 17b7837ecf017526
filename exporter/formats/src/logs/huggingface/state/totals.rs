//! What `trainer_state.json` says of the whole run, before its history and behind it.

use pulsetrain_mapping::{Field, FieldValue, RecordMeta, record_option};
use std::borrow::Cow;

use pulsetrain_otlp::write::Value as Out;
use pulsetrain_semconv::metric;

use super::history_digest::{HistoryDigest, hash};
use crate::logs::huggingface::SAID_AGAIN;
use crate::logs::huggingface::keys::Dictionaries;
use crate::logs::literal;
use pulsetrain_record::{Recorder, SkipReason};

/// Settings of the run: an option each.
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

/// What the last entry of the history has said too.
const AGAIN: [&str; 3] = ["epoch", "global_step", "num_input_tokens_seen"];
/// What only the Trainer needs, to go on from here.
const BOOKKEEPING: [&str; 4] = [
    "is_hyper_param_search",
    "is_local_process_zero",
    "is_world_process_zero",
    "stateful_callbacks",
];

/// The rule for that.
const OF_TRAINER: &str = "trainer_bookkeeping";

/// Records what is said of the whole run.
#[derive(Debug, Default)]
pub(super) struct Totals {
    /// What stands before the history.
    head: String,
}

impl Totals {
    /// Keeps what stands before the history, without the bracket that begins the object.
    pub(super) fn begin(&mut self, head: &str) {
        let head = head.trim_start().strip_prefix('{').unwrap_or_default();
        head.clone_into(&mut self.head);
    }

    /// What stands before the history.
    pub(super) fn head(&self) -> &str {
        &self.head
    }

    /// Records all of it.
    pub(super) fn record(
        &self,
        written: RecordMeta,
        mut fields: Vec<Field<'_>>,
        told: &mut HistoryDigest,
        dictionaries: &mut Dictionaries,
        recorder: &mut Recorder<'_>,
    ) {
        let time = written.time_unix_nanos;
        if let (Some(step), Some(all)) = (
            literal::number(&fields, "global_step"),
            literal::number(&fields, "max_steps").filter(|steps| *steps > 0.0),
        ) {
            recorder.record(&metric::TRAIN_PROGRESS, time, step / all, &[]);
        }
        fields.retain(|(key, value)| {
            let key = key.as_ref();
            if OPTIONS.contains(&key) {
                option(key, value, time, told, recorder);
            } else if AGAIN.contains(&key) {
                recorder.skip_value(SkipReason::Ignored(SAID_AGAIN));
            } else if BOOKKEEPING.contains(&key) {
                recorder.skip_value(SkipReason::Ignored(OF_TRAINER));
            } else {
                return true;
            }
            false
        });
        dictionaries.record(written, fields, recorder);
    }
}

/// Records a setting, if it is not as it was recorded before.
fn option(
    key: &str,
    value: &FieldValue<'_>,
    time_unix_nanos: u64,
    told: &mut HistoryDigest,
    recorder: &mut Recorder<'_>,
) {
    let text = match value {
        FieldValue::Number(number) => number.to_string().into(),
        FieldValue::Text(text) => Cow::Borrowed(text.as_ref()),
    };
    if told.knows_setting(key, hash(&text)) {
        return;
    }
    let value = match value {
        FieldValue::Number(number) if number.fract() == 0.0 => Out::Int(*number as i64),
        FieldValue::Number(number) => Out::Double(*number),
        FieldValue::Text(text) => Out::Text(text),
    };
    record_option(key, value, time_unix_nanos, recorder);
}
