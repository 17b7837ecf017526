//! Series with attributes that are encoded once: most writers repeat the same few series at every step.

use std::hash::{Hash, Hasher};

use pulsetrain_semconv::{Instrument, Metric};

use super::{MetricsWriter, PointParts, histogram, number_point};
use crate::{
    UnixNanos,
    view::NumberValue,
    write::{
        buffer::Buffer,
        value::{self, Attribute},
    },
};

/// A metric and the encoded attributes of one of its series.
#[derive(Clone, Debug)]
pub struct EncodedSeries {
    pub(super) metric: &'static Metric,
    pub(super) attributes: Vec<u8>,
}

impl PartialEq for EncodedSeries {
    fn eq(&self, other: &Self) -> bool {
        self.metric.ordinal == other.metric.ordinal && self.attributes == other.attributes
    }
}

impl Eq for EncodedSeries {}

impl Hash for EncodedSeries {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.metric.ordinal.hash(state);
        self.attributes.hash(state);
    }
}

impl EncodedSeries {
    /// Returns the series of a metric with these attributes.
    pub fn new(metric: &'static Metric, attributes: &[Attribute<'_>]) -> Self {
        let mut series = Self {
            metric,
            attributes: Vec::new(),
        };
        series.replace(metric, attributes);
        series
    }

    /// Replaces the metric and the attributes, in the memory of the former ones.
    pub fn replace(&mut self, metric: &'static Metric, attributes: &[Attribute<'_>]) {
        let number = match metric.instrument {
            Instrument::Histogram => histogram::field::ATTRIBUTES,
            _ => number_point::ATTRIBUTES,
        };
        let mut encoded = Buffer::reusing(std::mem::take(&mut self.attributes));
        value::attributes(number, attributes, &mut encoded);
        (self.metric, self.attributes) = (metric, encoded.into_vec());
    }

    /// Returns the metric.
    pub fn metric(&self) -> &'static Metric {
        self.metric
    }
}

impl MetricsWriter {
    /// Adds a point of a gauge or a sum, as [`number`](Self::number) does with the attributes of the series.
    #[inline]
    pub fn number_of(
        &mut self,
        series: &EncodedSeries,
        start_unix_nanos: UnixNanos,
        time_unix_nanos: UnixNanos,
        value: NumberValue,
    ) {
        let point = point(start_unix_nanos, time_unix_nanos);
        self.number_head(series.metric, point, value, series.attributes.len())
            .append(&series.attributes);
    }

    /// Adds a point that marks the end of the series, as [`end_of_series`](Self::end_of_series).
    pub fn end_of_encoded_series(&mut self, series: &EncodedSeries, time_unix_nanos: UnixNanos) {
        let EncodedSeries { metric, attributes } = series;
        let flags = match metric.instrument {
            Instrument::Histogram => histogram::field::FLAGS,
            _ => number_point::FLAGS,
        };
        let out = self.begin(metric, 11 + attributes.len());
        out.fixed64(number_point::TIME, time_unix_nanos.0);
        out.append(attributes);
        out.uint(flags, 1);
    }
}

fn point(start_unix_nanos: UnixNanos, time_unix_nanos: UnixNanos) -> PointParts<'static> {
    PointParts {
        start_unix_nanos,
        time_unix_nanos,
        attributes: &[],
    }
}

#[cfg(test)]
mod tests {
    use pulsetrain_semconv::{attribute, metric};

    use super::*;
    use crate::write::{AttributeValue, Envelope};

    #[test]
    fn points_of_an_encoded_series_equal_points_with_its_attributes() {
        let attributes = [(
            &attribute::TRAIN_CUSTOM_NAME,
            AttributeValue::Text("x".repeat(200).leak()),
        )];
        let (mut one_by_one, mut of_series) = (MetricsWriter::default(), MetricsWriter::default());
        for start in [0, 7].map(UnixNanos) {
            let whole = PointParts {
                attributes: &attributes,
                ..point(start, UnixNanos(9))
            };
            for metric in [&metric::TRAIN_CUSTOM, &metric::TRAIN_LOSS] {
                let series = EncodedSeries::new(metric, &attributes);
                one_by_one.number(metric, whole, NumberValue::Double(0.5));
                of_series.number_of(&series, start, UnixNanos(9), NumberValue::Double(0.5));
                one_by_one.end_of_series(metric, whole);
                of_series.end_of_encoded_series(&series, UnixNanos(9));
            }
            let metric = &metric::TRAIN_STEP_DURATION;
            let series = EncodedSeries::new(metric, &attributes);
            one_by_one.end_of_series(metric, whole);
            of_series.end_of_encoded_series(&series, UnixNanos(9));
        }
        let envelope = Envelope::new(&[], "", "", "");
        assert_eq!(of_series.len(), one_by_one.len());
        assert_eq!(of_series.finish(&envelope), one_by_one.finish(&envelope));
    }
}
