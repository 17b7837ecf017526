//! Records the fields of a record that have no row.

use pulsetrain_otlp::write::AttributeValue as Out;
use pulsetrain_semconv::{attribute, event};

use super::super::record::{Record, RecordValue};
use pulsetrain_record::Recorder;

/// The fields of a record that were not used yet.
#[derive(Debug)]
pub(super) struct UnmappedFields<'r, 'a> {
    record: &'r Record<'a>,
    fields: Vec<&'r (&'a str, RecordValue<'a>)>,
}

impl<'r, 'a> UnmappedFields<'r, 'a> {
    /// Returns all fields of a record.
    pub(super) fn new(record: &'r Record<'a>) -> Self {
        Self {
            record,
            fields: record.fields.iter().collect(),
        }
    }

    /// Takes the field `key` with any value.
    pub(super) fn take(&mut self, key: &str) -> Option<&'r RecordValue<'a>> {
        let position = self.fields.iter().position(|(name, _)| *name == key)?;
        Some(&self.fields.remove(position).1)
    }

    /// Takes the field `key`, if it is text.
    pub(super) fn take_text(&mut self, key: &str) -> Option<&'a str> {
        let position = self
            .fields
            .iter()
            .position(|(name, value)| *name == key && value.text().is_some())?;
        self.fields.remove(position).1.text()
    }

    /// Records the remaining fields: numbers as `train.custom`, all others in one event.
    pub(super) fn record(self, recorder: &mut Recorder<'_>) {
        let Record {
            kind,
            time_unix_nanos,
            ..
        } = self.record;
        let mut others = self.fields;
        others.retain(|(key, value)| match value.as_f64() {
            Some(number) => {
                let name = format!("surogate.{kind}.{key}");
                recorder.record_custom(*time_unix_nanos, &name, number);
                false
            }
            None => true,
        });
        record_others(self.record, &others, recorder);
    }
}

/// Records fields that are not numbers in one event.
pub(super) fn record_others(
    record: &Record<'_>,
    others: &[&(&str, RecordValue<'_>)],
    recorder: &mut Recorder<'_>,
) {
    if others.is_empty() {
        return;
    }
    let nested: Vec<Option<String>> = others.iter().map(|(_, value)| value.nested_text()).collect();
    let entries: Vec<(&str, Out<'_>)> = others
        .iter()
        .zip(&nested)
        .map(|((key, value), nested)| (*key, value.as_out(nested.as_deref())))
        .collect();
    let attributes = [
        (&attribute::TRAIN_RECORD_KIND, Out::Text(record.kind)),
        (&attribute::TRAIN_STEP, Out::Int(record.step)),
    ];
    let (event, time) = (&event::TRAIN_CUSTOM_RECORD, record.time_unix_nanos);
    recorder.record_event(event, time, Some(Out::Map(&entries)), &attributes);
}
