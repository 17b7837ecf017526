//! Tracks the open verdicts, which are shown at the end of a run's line.

use std::{borrow::Cow, collections::BTreeMap};

use pulsetrain_otlp::{WireError, view::LogRecord, walk};
use pulsetrain_pipeline::printable;
use pulsetrain_run::{RunOrigin, text};
use pulsetrain_semconv::{attribute, event};

use super::steps::run_id;

/// The maximum number of open verdicts of one run.
const MOST: usize = 64;

/// The maximum number of runs with open verdicts.
const MAX_RUNS: usize = 64;

/// The open verdicts of each run, the newest last.
#[derive(Debug, Default)]
pub(super) struct Verdicts(BTreeMap<String, Vec<Verdict>>);

#[derive(Debug, PartialEq)]
struct Verdict {
    kind: String,
    subject: String,
}

impl Verdicts {
    /// Adds the verdicts in a batch of log records.
    pub(super) fn add(&mut self, bytes: &[u8]) -> Result<(), WireError> {
        for resource in walk::records(bytes) {
            let resource = resource?;
            let run = run_id(&RunOrigin::from_attributes(resource.attributes()));
            for record in resource.items().flatten() {
                self.record(&run, &record);
            }
        }
        Ok(())
    }

    fn record(&mut self, run: &str, record: &LogRecord<'_>) {
        let is_verdict = record.event_name == *event::TRAIN_VERDICT.name;
        if !is_verdict || (self.0.len() >= MAX_RUNS && !self.0.contains_key(run)) {
            return;
        }
        let of = |name: &str| {
            let mut attributes = record.attributes.into_iter().flatten();
            let attribute = attributes.find(|attribute| attribute.key == *name);
            let value = attribute.and_then(|attribute| text(attribute.value?).map(Cow::into_owned));
            value.unwrap_or_default()
        };
        let verdict = Verdict {
            kind: of(attribute::TRAIN_VERDICT_KIND.name),
            subject: of(attribute::TRAIN_VERDICT_SUBJECT.name),
        };
        let open = self.0.entry(run.to_owned()).or_default();
        open.retain(|other| *other != verdict);
        if of(attribute::TRAIN_VERDICT_STATE.name) != "resolved" && open.len() < MOST {
            open.push(verdict);
        }
    }

    /// Returns the suffix of a run's line: its newest open verdict, or an empty string.
    pub(super) fn text(&self, run: &str) -> String {
        let Some(Verdict { kind, subject }) = self.0.get(run).and_then(|open| open.last()) else {
            return String::new();
        };
        let text = format!(" | ! {} {subject}", kind.replace('_', " "));
        printable(text.trim_end()).into_owned()
    }
}

#[cfg(test)]
mod tests {
    use opentelemetry_proto::tonic::{
        common::v1::{AnyValue, KeyValue, any_value::Value},
        logs::v1 as logs,
    };
    use prost::Message as _;

    use super::*;

    fn pair(key: &str, value: &str) -> KeyValue {
        KeyValue {
            key: key.to_owned(),
            value: Some(AnyValue {
                value: Some(Value::StringValue(value.to_owned())),
            }),
            ..KeyValue::default()
        }
    }

    #[test]
    fn newest_open_verdict_is_shown_until_it_is_resolved() {
        let mut verdicts = Verdicts::default();
        let record = |state: &str| {
            logs::LogsData {
                resource_logs: vec![logs::ResourceLogs {
                    scope_logs: vec![logs::ScopeLogs {
                        log_records: vec![logs::LogRecord {
                            event_name: event::TRAIN_VERDICT.name.to_owned(),
                            attributes: vec![
                                pair(attribute::TRAIN_VERDICT_KIND.name, "gpu_lost"),
                                pair(attribute::TRAIN_VERDICT_SUBJECT.name, "GPU-\x1b7"),
                                pair(attribute::TRAIN_VERDICT_STATE.name, state),
                            ],
                            ..logs::LogRecord::default()
                        }],
                        ..logs::ScopeLogs::default()
                    }],
                    ..logs::ResourceLogs::default()
                }],
            }
            .encode_to_vec()
        };
        verdicts.add(&record("open")).unwrap();
        assert_eq!(verdicts.text(""), " | ! gpu lost GPU- 7");
        verdicts.add(&record("resolved")).unwrap();
        assert_eq!(verdicts.text(""), "");
    }
}
