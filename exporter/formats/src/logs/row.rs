//! A row of a table of fields: the upstream name, our metric, and the conversion at the ingress.

use std::fmt;

use pulsetrain_otlp::write::{Attribute, Value as Out};
use pulsetrain_semconv::{self as semconv, AttributeKind, Instrument, Metric};

use super::Covered;
use crate::conversion::Conversion;
use pulsetrain_record::{PreparedSeries, Recorder, SkipReason};

/// A field that is a number.
pub(super) struct Row {
    key: &'static str,
    metric: &'static Metric,
    conversion: Conversion,
    attributes: &'static [Attribute<'static>],
    on_span: Option<&'static semconv::Attribute>,
    pub(super) is_total: bool,
    /// The number by which the trainer says that it has not measured.
    pub(super) unknown: Option<f64>,
}

impl fmt::Debug for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Row").field(&self.key).finish()
    }
}

/// The field `key` is `metric`, in the same unit.
pub(super) const fn row(key: &'static str, metric: &'static Metric) -> Row {
    Row {
        key,
        metric,
        conversion: Conversion::None,
        attributes: &[],
        on_span: None,
        is_total: false,
        unknown: None,
    }
}

impl Row {
    pub(super) const fn times(self, factor: f64) -> Self {
        Self {
            conversion: Conversion::Times(factor),
            ..self
        }
    }

    pub(super) const fn divided_by(self, divisor: f64) -> Self {
        Self {
            conversion: Conversion::DividedBy(divisor),
            ..self
        }
    }

    /// The number `unknown` stands for "not measured".
    pub(super) const fn unless(self, unknown: f64) -> Self {
        Self {
            unknown: Some(unknown),
            ..self
        }
    }

    /// The log tells what a counter has come to, not what it grew by.
    pub(super) const fn running_total(self) -> Self {
        Self {
            is_total: true,
            ..self
        }
    }

    /// The name that the log gives the value.
    pub(super) const fn key(&self) -> &'static str {
        self.key
    }

    /// Whether points of the row's metric may carry an attribute.
    pub(super) fn may_carry(&self, attribute: &semconv::Attribute) -> bool {
        let mut used = self.metric.attributes.iter();
        used.any(|used| used.attribute == attribute)
    }

    /// The row as a line of the coverage table.
    pub(super) fn covered(&self) -> Covered {
        let attributes = self.attributes.iter().map(|(attribute, value)| match value {
            Out::Text(text) => format!("{}={text}", attribute.name),
            other => format!("{}={other:?}", attribute.name),
        });
        Covered {
            key: self.key,
            name: self.metric.name,
            attributes: attributes.collect::<Vec<_>>().join(", "),
            conversion: self.conversion_text(),
        }
    }

    fn conversion_text(&self) -> String {
        let unit = self.metric.unit;
        let conversion = match self.conversion {
            Conversion::None => format!("as it is, `{unit}`"),
            Conversion::Times(factor) => format!("times {factor:e}, `{unit}`"),
            Conversion::DividedBy(divisor) => format!("divided by {divisor:e}, `{unit}`"),
            Conversion::PercentAboveOne => format!("a number above 1 is in percent, `{unit}`"),
        };
        match self.unknown {
            _ if self.is_total => format!("growth since the value before, `{unit}`"),
            Some(unknown) => format!("{conversion}; {unknown} stands for nothing measured"),
            None => conversion,
        }
    }

    /// The points carry these attributes.
    pub(super) const fn with(self, attributes: &'static [Attribute<'static>]) -> Self {
        Self { attributes, ..self }
    }

    /// The span of the record carries the value too.
    pub(super) const fn on_span(self, attribute: &'static semconv::Attribute) -> Self {
        Self {
            on_span: Some(attribute),
            ..self
        }
    }

    /// A number of the log in our unit; nothing where it stands for nothing measured, which is counted.
    #[inline]
    pub(super) fn measured(&self, number: f64, recorder: &mut Recorder<'_>) -> Option<f64> {
        if self.unknown == Some(number) {
            recorder.skip_value(SkipReason::NotMeasured);
            return None;
        }
        Some(self.convert(number))
    }

    /// A number of the log in our unit.
    pub(super) fn convert(&self, value: f64) -> f64 {
        self.conversion.apply(value)
    }

    /// Whether its points need nothing but a time and a value, or say more.
    pub(super) fn is_plain(&self) -> bool {
        matches!(self.metric.instrument, Instrument::Gauge) && self.attributes.is_empty()
    }

    /// The series of its points, with the row's attributes behind those of the record.
    pub(super) fn series(&self, attributes: &[Attribute<'_>]) -> PreparedSeries {
        PreparedSeries::new(self.metric, &[attributes, self.attributes].concat())
    }

    /// Records a converted value with the row's attributes behind those of the record.
    #[inline]
    pub(super) fn record(
        &self,
        time_unix_nanos: u64,
        value: f64,
        attributes: &[Attribute<'_>],
        recorder: &mut Recorder<'_>,
    ) {
        if attributes.is_empty() || self.attributes.is_empty() {
            let all = if attributes.is_empty() {
                self.attributes
            } else {
                attributes
            };
            recorder.record(self.metric, time_unix_nanos, value, all);
        } else {
            let all: Vec<Attribute<'_>> = attributes.iter().chain(self.attributes).copied().collect();
            recorder.record(self.metric, time_unix_nanos, value, &all);
        }
    }

    /// The converted value as an attribute of the record's span, if it is to be one.
    #[inline]
    pub(super) fn span_attribute(&self, value: f64) -> Option<Attribute<'static>> {
        self.on_span.map(|attribute| match attribute.kind {
            AttributeKind::Int => (attribute, Out::Int(value as i64)),
            _ => (attribute, Out::Double(value)),
        })
    }
}

/// The place of a field's row. Fields come in the order of the table, so the search begins behind the row that was found last.
#[inline]
pub(super) fn find(rows: &[Row], key: &str, expected: &mut usize) -> Option<usize> {
    let behind = (*expected).min(rows.len());
    let mut places = (behind..rows.len()).chain(0..behind);
    let place = places.find(|place| rows[*place].key == key)?;
    *expected = place + 1;
    Some(place)
}

/// Where in a table the rows of a record's fields were: those of the next record are mostly the same.
#[derive(Debug, Default)]
pub(super) struct Order(Vec<usize>);

impl Order {
    /// The place of the row of a record's field.
    #[inline]
    pub(super) fn find(&mut self, rows: &[Row], field: usize, key: &str) -> Option<usize> {
        match self.0.get(field) {
            Some(place) if rows.get(*place).is_some_and(|row| row.key == key) => Some(*place),
            _ => self.find_elsewhere(rows, field, key),
        }
    }

    fn find_elsewhere(&mut self, rows: &[Row], field: usize, key: &str) -> Option<usize> {
        let before = field.checked_sub(1).and_then(|before| self.0.get(before));
        let mut expected = before.map_or(0, |place| place.saturating_add(1));
        let place = find(rows, key, &mut expected);
        if self.0.len() <= field {
            self.0.resize(field + 1, usize::MAX);
        }
        self.0[field] = place.unwrap_or(usize::MAX);
        place
    }
}
