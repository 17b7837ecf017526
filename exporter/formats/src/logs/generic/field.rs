//! Makes points of one field of a record.

use std::collections::HashMap;

use pulsetrain_otlp::write::{Attribute, Value as Out};
use pulsetrain_semconv::{AttributeKind, Metric, Number};

use super::{
    known::{self, REMEMBERED},
    rule::{Becomes, Meaning, Rule},
    unit,
};
use crate::{
    attribute_part::Part,
    conversion::Conversion,
    logs::{
        duration,
        fields::{Field, Value, Written},
        number_text,
    },
};
use pulsetrain_record::{
    PreparedSeries, Recorder, SkipReason,
    in_order::{InOrder, MOST_NAMES},
};

/// What the fields of a record are recorded with.
pub(super) struct Recording<'r> {
    pub(super) written: Written,
    /// All fields of the record.
    pub(super) fields: &'r [Field<'r>],
    pub(super) drops_unknown: bool,
    /// Whether rules are for keys that are only alike.
    pub(super) is_loose: bool,
    pub(super) memory: &'r mut Memory,
}

/// What is remembered of the fields of a log.
#[derive(Debug, Default)]
pub(super) struct Memory {
    /// What each total came to.
    totals: HashMap<String, f64>,
    /// The keys of which it was said that nobody knows them.
    told: InOrder<()>,
}

/// A number of a record, before it is converted.
struct Measured<'m> {
    value: f64,
    suffix: &'m str,
}

impl Recording<'_> {
    /// Records a field whose meaning is known, and answers with the metric and the value that it became.
    #[inline]
    pub(super) fn known(
        &mut self,
        (key, value): (&str, &Value<'_>),
        meaning: &Meaning,
        series: Option<&mut PreparedSeries>,
        is_told: &mut bool,
        recorder: &mut Recorder<'_>,
    ) -> Option<(&'static Metric, f64)> {
        let time = self.written.time_unix_nanos;
        let rule = &meaning.rule;
        let Some(attributes) = attributes(meaning, self.fields) else {
            self.unknown((key, value), is_told, recorder);
            return None;
        };
        match &rule.becomes {
            Becomes::Nothing => recorder.skip_value(SkipReason::LeftOut(BY_MAPPING)),
            Becomes::State(metric, attribute) => {
                let state = match value {
                    Value::Text(text) => text.to_string(),
                    Value::Number(number) => number.to_string(),
                };
                recorder.record_state(metric, attribute, time, &state, &attributes);
            }
            Becomes::Custom(name) => {
                let Some(measured) = Measured::of(value) else {
                    self.no_number(key, value, recorder);
                    return None;
                };
                let conversion = rule.conversion.unwrap_or(Conversion::None);
                recorder.record_custom(time, name, conversion.apply(measured.value));
            }
            Becomes::Value(metric) => {
                let Some(converted) = converted(value, metric, rule) else {
                    // A loose rule is a guess: a number in another unit is kept as it is.
                    let needs_suffix = rule.without_suffix.is_none();
                    if Measured::of(value).is_some() && (self.is_loose || needs_suffix) {
                        self.unknown((key, value), is_told, recorder);
                    } else {
                        self.no_number(key, value, recorder);
                    }
                    return None;
                };
                if metric.number == Number::Int && !converted.is_finite() {
                    recorder.skip_value(SkipReason::NotSummable);
                    return None;
                }
                let grown = if rule.is_total {
                    let Some(grown) = self.memory.grown(key, &attributes, converted) else {
                        recorder.skip_value(SkipReason::TooManySeries);
                        return None;
                    };
                    grown
                } else {
                    converted
                };
                match series {
                    Some(series) => recorder.record_prepared(series, time, grown),
                    None => recorder.record(metric, time, grown, &attributes),
                }
                return Some((metric, converted));
            }
        }
        None
    }

    /// Records a field that nobody knows, if it is a number; says whether it is text that is to be kept.
    #[inline]
    pub(super) fn unknown(
        &mut self,
        (key, value): (&str, &Value<'_>),
        is_told: &mut bool,
        recorder: &mut Recorder<'_>,
    ) -> bool {
        if self.drops_unknown {
            recorder.skip_value(SkipReason::LeftOut(BY_MAPPING));
            return false;
        }
        let measured = Measured::of(value);
        if let Some(measured) = &measured {
            recorder.record_custom(self.written.time_unix_nanos, key, measured.value);
            self.tell(key, is_told, recorder);
        }
        measured.is_none()
    }

    /// Says once that nobody knows a key.
    pub(super) fn tell(&mut self, key: &str, is_told: &mut bool, recorder: &mut Recorder<'_>) {
        if std::mem::replace(is_told, true) {
            return;
        }
        let told = &mut self.memory.told;
        if told.place(key).is_none() && told.len() < REMEMBERED {
            told.add(key, ());
            recorder.skip(SkipReason::UnknownName, self.written.place, || {
                format!("{key} is a key that the mapping does not know; its values are kept as train.custom")
            });
        }
    }

    fn no_number(&self, key: &str, value: &Value<'_>, recorder: &mut Recorder<'_>) {
        recorder.skip(SkipReason::MalformedRecord, self.written.place, || match value {
            Value::Text(text) => {
                format!("{key} is to be a number in a unit of its metric, and {text:?} is none")
            }
            Value::Number(number) => format!("{key} cannot be {number}"),
        });
    }
}

impl Memory {
    /// Returns by how much a total has grown, or `None` for a new series beyond the limit. A total that fell has started over.
    fn grown(&mut self, key: &str, attributes: &[Attribute<'_>], total: f64) -> Option<f64> {
        let series = format!("{key} {attributes:?}");
        if self.totals.len() >= MOST_NAMES && !self.totals.contains_key(&series) {
            return None;
        }
        let before = self.totals.insert(series, total).unwrap_or(0.0);
        Some(if total < before { total } else { total - before })
    }
}

/// The rule for what the user left out.
const BY_MAPPING: &str = "mapping";

/// Whether a value is a text without a number.
pub(super) fn is_text(value: &Value<'_>) -> bool {
    Measured::of(value).is_none()
}

fn value_of<'f>(fields: &'f [Field<'_>], key: &str) -> Option<&'f Value<'f>> {
    fields
        .iter()
        .find(|(name, _)| name == key)
        .map(|(_, value)| value)
}

/// The attributes of a point; nothing where a field that is to say one says no value of it.
fn attributes<'a>(meaning: &'a Meaning, fields: &'a [Field<'_>]) -> Option<Vec<Attribute<'a>>> {
    if meaning.is_plain {
        return Some(Vec::new());
    }
    let mut all: Vec<Attribute<'a>> = meaning.fixed().collect();
    for (attribute, key) in &meaning.rule.from {
        // A record without the field has a point without the attribute.
        let Some(value) = value_of(fields, key) else {
            continue;
        };
        all.push((attribute, out(attribute, value)?));
    }
    Some(all)
}

fn out<'a>(attribute: &pulsetrain_semconv::Attribute, value: &'a Value<'a>) -> Option<Out<'a>> {
    match (attribute.kind, value) {
        (AttributeKind::Int, value) => known::whole(value).map(Out::Int),
        (AttributeKind::Double, value) => value.number().map(Out::Double),
        (_, Value::Text(text)) => Part::of(attribute, text).map(|_| Out::Text(text)),
        (_, Value::Number(_)) => None,
    }
}

/// The value in the unit of the metric; of a metric in seconds a text can be a duration.
fn converted(value: &Value<'_>, metric: &Metric, rule: &Rule) -> Option<f64> {
    let measured = Measured::of(value).and_then(|measured| measured.convert(metric, rule));
    measured.or_else(|| match value {
        Value::Text(text) if metric.unit == "s" => duration::seconds(text),
        _ => None,
    })
}

/// The number in the text of an array without dimensions: `np.float64(0.5)`, `tensor(0.5, device='cuda:0')`, `Array(0.5, dtype=float32)`.
/// Any other text as it is.
fn unwrapped(text: &str) -> &str {
    let inner = || {
        let (name, rest) = text.strip_suffix(')')?.split_once('(')?;
        let is_name = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '.' | '_');
        let is_type =
            name.starts_with(|first: char| first.is_ascii_alphabetic()) && name.chars().all(is_name);
        is_type.then(|| rest.split(',').next().unwrap_or(rest).trim())
    };
    inner().unwrap_or(text)
}

/// The single value in brackets, as in `[0.0003]` or `(0.9,)`; a text without brackets as it is.
fn unbracketed(mut text: &str) -> &str {
    while let Some(inner) = in_brackets(text) {
        text = inner.trim().trim_end_matches(',');
    }
    text
}

fn in_brackets(text: &str) -> Option<&str> {
    let between = |open, close| text.strip_prefix(open)?.strip_suffix(close);
    between('[', ']').or_else(|| between('(', ')'))
}

impl<'m> Measured<'m> {
    fn of(value: &'m Value<'_>) -> Option<Self> {
        let (value, suffix) = match value {
            Value::Number(number) => (*number, ""),
            Value::Text(text) => number_text::with_suffix(unwrapped(unbracketed(text)))?,
        };
        Some(Self { value, suffix })
    }

    /// The value in the unit of the metric, by what the mapping says or else by its suffix.
    fn convert(&self, metric: &Metric, rule: &Rule) -> Option<f64> {
        let by_suffix = || match self.suffix {
            "" => rule.without_suffix,
            suffix => unit::conversion(suffix, metric.unit),
        };
        let conversion = rule.conversion.or_else(by_suffix)?;
        Some(conversion.apply(self.value))
    }
}
