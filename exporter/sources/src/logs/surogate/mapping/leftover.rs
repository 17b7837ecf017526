//! The fields of a record that no table knows.

use pulsetrain_otlp::write::Value as Out;
use pulsetrain_semconv::{attribute, event};

use super::super::record::{Record, Value};
use crate::Recorder;

/// Fields that nobody has taken yet.
#[derive(Debug, Default)]
pub(super) struct Leftovers<'r, 'a> {
    fields: Vec<&'r (&'a str, Value<'a>)>,
}

impl<'r, 'a> Leftovers<'r, 'a> {
    /// All fields of a record.
    pub(super) fn of(record: &'r Record<'a>) -> Self {
        Self {
            fields: record.fields.iter().collect(),
        }
    }

    pub(super) fn push(&mut self, field: &'r (&'a str, Value<'a>)) {
        self.fields.push(field);
    }

    /// Takes the field `key`, whatever it holds.
    pub(super) fn take(&mut self, key: &str) -> Option<&'r Value<'a>> {
        let place = self.fields.iter().position(|(name, _)| *name == key)?;
        Some(&self.fields.remove(place).1)
    }

    /// Takes the field `key`, if it is text.
    pub(super) fn take_text(&mut self, key: &str) -> Option<&'a str> {
        let place = self
            .fields
            .iter()
            .position(|(name, value)| *name == key && matches!(value, Value::Text(_)))?;
        match &self.fields.remove(place).1 {
            Value::Text(text) => Some(text),
            _ => None,
        }
    }

    /// Keeps the rest: numbers as `train.custom`, everything else in one event.
    pub(super) fn record(self, record: &Record<'_>, recorder: &mut Recorder<'_>) {
        if self.fields.is_empty() {
            return;
        }
        let mut others = Vec::new();
        for (key, value) in self.fields {
            match value.as_f64() {
                Some(number) => {
                    let name = format!("surogate.{}.{key}", record.kind);
                    recorder.record_custom(record.time_unix_nanos, &name, number);
                }
                None => others.push((*key, value)),
            }
        }
        if !others.is_empty() {
            record_others(record, &others, recorder);
        }
    }
}

fn record_others(record: &Record<'_>, others: &[(&str, &Value<'_>)], recorder: &mut Recorder<'_>) {
    let owned: Vec<(&str, Owned<'_>)> = others
        .iter()
        .map(|(key, value)| (*key, Owned::of(value)))
        .collect();
    let entries: Vec<(&str, Out<'_>)> = owned.iter().map(|(key, value)| (*key, value.as_out())).collect();
    let attributes = [
        (&attribute::TRAIN_RECORD_KIND, Out::Text(record.kind)),
        (&attribute::TRAIN_STEP, Out::Int(record.step)),
    ];
    let body = Some(Out::Map(&entries));
    recorder.record_event(
        &event::TRAIN_CUSTOM_RECORD,
        record.time_unix_nanos,
        body,
        &attributes,
    );
}

/// A value with lists and maps as their text, which is all that can be said of what nobody knows.
enum Owned<'a> {
    One(Out<'a>),
    Text(String),
}

impl<'a> Owned<'a> {
    fn of(value: &Value<'a>) -> Self {
        match value {
            Value::List(_) | Value::Map(_) => Self::Text(format!("{value:?}")),
            scalar => Self::One(super::scalar(scalar)),
        }
    }

    fn as_out(&self) -> Out<'_> {
        match self {
            Self::One(value) => *value,
            Self::Text(text) => Out::Text(text),
        }
    }
}
