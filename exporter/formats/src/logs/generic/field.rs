//! Records one field of a record by its row, with units in the values themselves and attributes from other fields.

use pulsetrain_mapping::{
    Conversion, Field, FieldMapping, FieldValue, Mapping, MappingTarget, OwnedAttributeValue, RecordMeta,
    Recorded, duration, number_text, unit,
};
use pulsetrain_otlp::write::{Attribute, AttributeValue};
use pulsetrain_record::{Recorder, SkipReason};
use pulsetrain_semconv::{self as semconv, AttributeKind, Metric};

use super::record_keys::KeyInfo;

/// The context of the fields of a record.
pub(super) struct RecordContext<'r> {
    pub(super) meta: RecordMeta,
    /// All fields of the record.
    pub(super) fields: &'r [Field<'r>],
    pub(super) mapping: &'r Mapping,
}

/// The result of recording a field.
pub(super) enum RecordedField {
    /// A point of the metric with this value.
    Point(&'static Metric, f64),
    /// Another point, an option, or nothing.
    Done,
    /// Nothing yet: the text belongs in the event of the record.
    Text,
}

/// A number of a record, before it is converted.
struct Measured<'m> {
    value: f64,
    suffix: &'m str,
}

impl RecordContext<'_> {
    /// Records a field whose key has a row.
    pub(super) fn known(
        &self,
        (key, value): (&str, &FieldValue<'_>),
        info: &mut KeyInfo,
        recorder: &mut Recorder<'_>,
    ) -> RecordedField {
        let time = self.meta.time_unix_nanos;
        let Some(resolved) = &info.state.resolved else {
            return RecordedField::Done;
        };
        let row = &resolved.mapping;
        let Some(attributes) = attributes(row, self.fields) else {
            return self.unmapped((key, value), info, recorder);
        };
        let number = match &row.target {
            MappingTarget::State(..) => {
                let state = match value {
                    FieldValue::Text(text) => text.to_string(),
                    FieldValue::Number(number) => number.to_string(),
                };
                info.outcome.is_mapped |= info.state.record_state((time, &state), &attributes, recorder);
                return RecordedField::Done;
            }
            MappingTarget::Option(_) => match value {
                FieldValue::Number(number) => *number,
                FieldValue::Text(text) => {
                    info.outcome.is_mapped |= info.state.record_option((time, text), recorder);
                    return RecordedField::Done;
                }
            },
            MappingTarget::Step | MappingTarget::Dropped(_) => 0.0,
            MappingTarget::Custom(_) => match Measured::from_value(value) {
                Some(measured) => {
                    let conversion = row.conversion.unwrap_or(Conversion::None);
                    measured.converted(conversion, &mut info.is_percent)
                }
                None => {
                    self.not_a_number(key, value, recorder);
                    return RecordedField::Done;
                }
            },
            MappingTarget::Metric(metric) => match converted(value, metric, row, &mut info.is_percent) {
                Some(converted) => converted,
                // A loose row is a guess: a number in another unit is kept as it is.
                None if Measured::from_value(value).is_some() && self.mapping.is_loose() => {
                    info.fit.misfits += 1;
                    return self.unknown((key, value), info, recorder);
                }
                None if Measured::from_value(value).is_some() && row.without_suffix.is_none() => {
                    return self.unmapped((key, value), info, recorder);
                }
                None => {
                    self.not_a_number(key, value, recorder);
                    return RecordedField::Done;
                }
            },
        };
        if row.sentinel.is_some()
            && row.sentinel == Measured::from_value(value).map(|measured| measured.value)
        {
            recorder.skip_value(SkipReason::NotMeasured);
            info.outcome.is_used = true;
            return RecordedField::Done;
        }
        info.fit.fits += 1;
        if !info.fit.is_usual() {
            return self.unknown((key, value), info, recorder);
        }
        let is_fixed = row.attributes_from.is_empty();
        let is_recorded = !matches!(row.target, MappingTarget::Step | MappingTarget::Dropped(_));
        match info
            .state
            .record((time, number), (&attributes, is_fixed), key, recorder)
        {
            Recorded::Point(metric, value) => {
                info.outcome.is_mapped = true;
                RecordedField::Point(metric, value)
            }
            Recorded::Done => {
                info.outcome.is_mapped |= is_recorded;
                RecordedField::Done
            }
            Recorded::Unfit => {
                recorder.skip_value(SkipReason::NotSummable);
                RecordedField::Done
            }
        }
    }

    /// Keeps a number whose row does not fit it, and all later numbers of the key unless nearly all numbers before it fit.
    pub(super) fn unmapped(
        &self,
        field: (&str, &FieldValue<'_>),
        info: &mut KeyInfo,
        recorder: &mut Recorder<'_>,
    ) -> RecordedField {
        info.is_unmapped |= self.mapping.is_loose() && !info.fit.is_exception();
        self.unknown(field, info, recorder)
    }

    /// Keeps a field without a row.
    pub(super) fn unknown(
        &self,
        (key, value): (&str, &FieldValue<'_>),
        info: &mut KeyInfo,
        recorder: &mut Recorder<'_>,
    ) -> RecordedField {
        if self.mapping.drops_unknown() {
            recorder.skip_value(SkipReason::Ignored(BY_MAPPING));
            return RecordedField::Done;
        }
        let Some(measured) = Measured::from_value(value) else {
            info.outcome.is_text = true;
            return RecordedField::Text;
        };
        let RecordMeta {
            time_unix_nanos,
            position,
            ..
        } = self.meta;
        info.outcome.is_custom |= info.state.keep(
            (time_unix_nanos, measured.unscaled()),
            || key.into(),
            position,
            recorder,
        );
        RecordedField::Done
    }

    fn not_a_number(&self, key: &str, value: &FieldValue<'_>, recorder: &mut Recorder<'_>) {
        recorder.report(SkipReason::MalformedRecord, self.meta.position, || match value {
            FieldValue::Text(text) => {
                format!("{key}: expected a number in a unit of its metric, found {text:?}")
            }
            FieldValue::Number(number) => format!("{key}: the metric cannot be {number}"),
        });
    }
}

/// The reason of fields that the user's mapping drops.
const BY_MAPPING: &str = "mapping";

/// Returns the attributes with values from other fields of the record. `None` if a value does not fit its attribute. If the
/// field is missing, the point lacks the attribute.
fn attributes<'a>(row: &FieldMapping, fields: &'a [Field<'_>]) -> Option<Vec<Attribute<'a>>> {
    let from = row.attributes_from.iter().filter_map(|(attribute, key)| {
        let (_, value) = fields.iter().find(|(name, _)| name == key)?;
        Some(attribute_value(attribute, value).map(|value| (*attribute, value)))
    });
    from.collect()
}

/// Returns the value of an attribute, or `None` if the value of the field is not allowed.
pub(super) fn attribute_value<'a>(
    attribute: &semconv::Attribute,
    value: &'a FieldValue<'a>,
) -> Option<AttributeValue<'a>> {
    match (attribute.kind, value) {
        (AttributeKind::Int, value) => value.integer().map(AttributeValue::Int),
        (AttributeKind::Double, value) => value.number().map(AttributeValue::Double),
        (_, FieldValue::Text(text)) => {
            OwnedAttributeValue::parse(attribute, text).map(|_| AttributeValue::Text(text))
        }
        (_, FieldValue::Number(_)) => None,
    }
}

/// Returns the value in the unit of the metric; for a metric in seconds a text can be a duration.
fn converted(
    value: &FieldValue<'_>,
    metric: &Metric,
    row: &FieldMapping,
    is_percent: &mut bool,
) -> Option<f64> {
    let measured = Measured::from_value(value).and_then(|measured| {
        let conversion = measured.conversion(metric, row)?;
        Some(measured.converted(conversion, is_percent))
    });
    measured.or_else(|| match value {
        FieldValue::Text(text) if metric.unit == "s" => duration::seconds(text),
        _ => None,
    })
}

/// Returns the text of the number in an array without dimensions: `np.float64(0.5)`, `tensor(0.5, device='cuda:0')`,
/// `Array(0.5, dtype=float32)`. Any other text is returned as it is.
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

/// Returns the single value in brackets, as in `[0.0003]` or `(0.9,)`; a text without brackets as it is.
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
    fn from_value(value: &'m FieldValue<'_>) -> Option<Self> {
        let (value, suffix) = match value {
            FieldValue::Number(number) => (*number, ""),
            FieldValue::Text(text) => number_text::with_suffix(unwrapped(unbracketed(text)))?,
        };
        Some(Self { value, suffix })
    }

    /// Returns the value without the multiplier of a count: 1200 for `1.2k`. Other suffixes are dropped: `K` and `M` can be of
    /// bytes.
    fn unscaled(&self) -> f64 {
        match self.suffix {
            "k" => self.value * 1e3,
            _ => self.value,
        }
    }

    /// Returns the conversion to the unit of the metric, by the row or else by the suffix.
    fn conversion(&self, metric: &Metric, row: &FieldMapping) -> Option<Conversion> {
        let by_suffix = || match self.suffix {
            "" => row.without_suffix,
            suffix => unit::conversion(suffix, metric.unit),
        };
        row.conversion.or_else(by_suffix)
    }

    /// Returns the converted value.
    fn converted(&self, conversion: Conversion, is_percent: &mut bool) -> f64 {
        conversion.in_series(self.value, is_percent).apply(self.value)
    }
}
