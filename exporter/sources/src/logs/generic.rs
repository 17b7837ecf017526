//! Logs of no known system: JSON lines, and lines of `key=value`, by a [`Mapping`] of the user.
//!
//! `mapping` is what the configuration says, `rule` what that is for one key, and `known` remembers it. `record` and `field`
//! make points of a record. `unit` and `clock` know the spellings of units and times, `pairs` takes lines apart.

mod clock;
mod field;
mod known;
mod likeness;
mod mapping;
mod pairs;
mod record;
mod rule;
mod unit;

use std::{borrow::Cow, sync::Arc};

use pulsetrain_semconv::{event, metric};

pub(super) use clock::date;
pub(super) use likeness::instead;
pub use mapping::{Mapping, MappingPart, ValueBecomes, ValueRule};

use self::{pairs::PairReader, record::Records};
use super::{
    Begin, Covered, LogFormat, LogParser,
    coverage::covered,
    fields::{Field, Value},
    lines::{Line, LineFormat, LineParser, identify_by},
    literal::Objects,
};
use crate::{Recorder, SkipReason, emptied::emptied};

/// JSON lines in the table of formats.
pub(super) const JSON: LogFormat = LogFormat {
    name: "json",
    brief: "JSON lines of any system, by a mapping",
    framework: "custom",
    shrinks: true,
    splits: false,
    recognise: |_| None,
    identify: |head| identify_by(json(&Arc::default()), head),
    parser: Begin::Mapped(json),
    coverage,
};

/// Lines of `key=value` in the table of formats.
pub(super) const KEY_VALUE: LogFormat = LogFormat {
    name: "keyvalue",
    brief: "lines of key=value of any system, by a mapping",
    framework: "custom",
    shrinks: true,
    splits: false,
    recognise: |_| None,
    identify: |head| identify_by(key_value(&Arc::default()), head),
    parser: Begin::Mapped(key_value),
    coverage,
};

fn json(mapping: &Arc<Mapping>) -> Box<dyn LogParser> {
    Box::new(LineParser::of(JsonLines::of(mapping)))
}

fn key_value(mapping: &Arc<Mapping>) -> Box<dyn LogParser> {
    Box::new(LineParser::of(KeyValueLines::of(mapping)))
}

/// Reads JSON lines.
#[derive(Debug)]
struct JsonLines {
    objects: Objects,
    records: Records,
}

impl JsonLines {
    fn of(mapping: &Arc<Mapping>) -> Self {
        Self {
            objects: Objects::flat(),
            records: Records::of(mapping),
        }
    }
}

impl LineFormat for JsonLines {
    fn sign(_: &str) -> Option<&'static str> {
        None
    }

    fn is_whole(text: &str) -> bool {
        text.trim_end().ends_with('}')
    }

    fn is_begun(text: &str) -> bool {
        text.contains('{')
    }

    fn line(&mut self, line: &Line<'_>, recorder: &mut Recorder<'_>) -> bool {
        let Some((mut fields, body)) = self.records.lined(line.text) else {
            return false;
        };
        // Nearly always at once.
        let start = if body.starts_with('{') {
            Some(0)
        } else {
            body.find('{')
        };
        let Some(start) = start else {
            return false;
        };
        let Some(object) = self.objects.read(&body[start..], &mut fields) else {
            recorder.skip(SkipReason::MalformedRecord, line.place(), || {
                "the line is no whole JSON object".to_owned()
            });
            return false;
        };
        recorder.skip_values(SkipReason::NotMeasured, object.nulls);
        self.records.look_up(&fields, object.alike);
        self.records.record(&fields, line, recorder);
        self.records.room = emptied(fields);
        true
    }
}

/// Reads lines of `key=value`.
#[derive(Debug)]
struct KeyValueLines {
    pairs: PairReader,
    records: Records,
}

impl KeyValueLines {
    fn of(mapping: &Arc<Mapping>) -> Self {
        Self {
            pairs: PairReader::default(),
            records: Records::of(mapping),
        }
    }
}

impl LineFormat for KeyValueLines {
    fn sign(_: &str) -> Option<&'static str> {
        None
    }

    fn is_begun(text: &str) -> bool {
        text.contains(['=', ':'])
    }

    fn line(&mut self, line: &Line<'_>, recorder: &mut Recorder<'_>) -> bool {
        let Self { pairs, records } = self;
        let Some((mut fields, body)) = records.lined(line.text) else {
            return false;
        };
        let alike = pairs.read(body, &records.mapping.pairs, &mut fields);
        records.look_up(&fields, alike);
        let is_record = records.keys.are_of_record();
        if is_record {
            records.record(&fields, line, recorder);
        }
        records.room = emptied(fields);
        is_record
    }
}

/// The fields of a line and the text that holds its record.
type Lined<'a> = (Vec<Field<'a>>, &'a str);

impl Records {
    /// What the pattern of lines finds; nothing where the line is none of its.
    fn lined<'a>(&mut self, text: &'a str) -> Option<Lined<'a>> {
        let Some(pattern) = &self.mapping.line else {
            return Some((emptied(std::mem::take(&mut self.room)), text));
        };
        let captures = pattern.captures(text)?;
        let named = pattern.capture_names().flatten();
        let groups = named.filter_map(|name| Some((name, captures.name(name)?.as_str())));
        let mut fields = Vec::with_capacity(16);
        let mut body = text;
        for (name, group) in groups {
            if name == RECORD {
                body = group;
            } else {
                fields.push((Cow::Owned(name.to_owned()), Value::of(group)));
            }
        }
        Some((fields, body))
    }

    /// Looks up the keys of fields, of which those of the record are the same wherever `alike` is.
    fn look_up(&mut self, fields: &[Field<'_>], alike: Option<u64>) {
        // A pattern of lines may find other fields in each.
        let alike = alike.filter(|_| self.mapping.line.is_none());
        self.keys.look_up(fields, alike, &self.mapping);
    }
}

/// The group of the pattern of lines that holds the record.
const RECORD: &str = "record";

fn coverage() -> Vec<Covered> {
    vec![
        covered(
            "the step's key",
            metric::TRAIN_GLOBAL_STEP.name,
            "as it is; `train.steps` grows by the steps since the record before",
        ),
        covered(
            "keys of the mapping",
            "the metric of the mapping",
            "by the unit, the factor or the suffix that the value has",
        ),
        covered(
            "the name of a metric",
            "that metric",
            "as it is, or by its suffix",
        ),
        covered("other numbers", metric::TRAIN_CUSTOM.name, "as it is"),
        covered(
            "other text",
            event::TRAIN_CUSTOM_RECORD.name,
            "one event a record, its body the keys and texts",
        ),
    ]
}

#[cfg(test)]
mod tests;
