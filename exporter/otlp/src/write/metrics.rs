//! Encodes points, grouped by their metric while a batch fills.

mod exemplar;
mod exponential;
mod growing;
mod histogram;
mod series;

use pulsetrain_semconv::{Instrument, Metric};

use self::histogram::Shape;
pub use self::{
    exemplar::ExemplarParts,
    exponential::{ExponentialBuckets, ExponentialParts},
    growing::GrowingHistogram,
    histogram::HistogramParts,
    series::EncodedSeries,
};
use super::{
    buffer::{Buffer, delimited_len},
    envelope::{Encoded, Envelope},
    value::{self, Attribute},
};
use crate::{Signal, UnixNanos, view::NumberValue};

/// Fields of `NumberDataPoint` (proto/metrics/v1/metrics.proto).
mod number_point {
    pub(super) const START: u32 = 2;
    pub(super) const TIME: u32 = 3;
    pub(super) const AS_DOUBLE: u32 = 4;
    pub(super) const AS_INT: u32 = 6;
    pub(super) const ATTRIBUTES: u32 = 7;
    pub(super) const FLAGS: u32 = 8;
}

const DELTA: u8 = 1;
const CUMULATIVE: u8 = 2;

/// The times and the attributes of a point.
#[derive(Clone, Copy, Debug, Default)]
pub struct PointParts<'a> {
    /// The start of the interval of a sum or a histogram; unknown for a gauge.
    pub start_unix_nanos: UnixNanos,
    /// The time of the measurement.
    pub time_unix_nanos: UnixNanos,
    /// The attributes that identify the point's series within the metric.
    pub attributes: &'a [Attribute<'a>],
}

/// Collects points until a batch is full.
///
/// Each point must fit the instrument of its metric: [`number`](Self::number) is for gauges and sums,
/// [`histogram`](Self::histogram) for histograms. The writer does not check this, and receivers would misread the point.
#[derive(Debug, Default)]
pub struct MetricsWriter {
    /// One group for each metric that has points, in the order of their first points.
    groups: Vec<Group>,
    /// Metric ordinal -> index in `groups` + 1; zero if the metric has no points.
    places: Vec<u16>,
    points: u32,
    len: usize,
}

#[derive(Debug)]
struct Group {
    metric: &'static Metric,
    /// Whether the points are histograms with exponential buckets.
    is_exponential: bool,
    points: Buffer,
    /// The offset of the newest point.
    newest: usize,
}

impl MetricsWriter {
    /// Returns the number of points so far.
    pub fn points(&self) -> u32 {
        self.points
    }

    /// Returns the size of the points so far, in bytes.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns whether there are no points.
    pub fn is_empty(&self) -> bool {
        self.points == 0
    }

    /// Adds a point of a gauge that has no attributes.
    #[inline]
    pub fn measured(&mut self, metric: &'static Metric, time_unix_nanos: UnixNanos, value: NumberValue) {
        self.fixed(
            metric,
            [(number_point::TIME, time_unix_nanos.0), field_of(value)],
            0,
        );
    }

    /// Begins a point with fields of a fixed length; the caller appends the remaining `more` bytes.
    #[inline]
    fn fixed<const N: usize>(
        &mut self,
        metric: &'static Metric,
        fields: [(u32, u64); N],
        more: usize,
    ) -> &mut Buffer {
        self.points += 1;
        self.len += delimited_len(1, 9 * N + more);
        let group = self.group(metric);
        group.newest = group.points.len();
        group.points.message_of_fixed64(1, fields, more);
        &mut group.points
    }

    /// Adds a point of a gauge or a sum.
    pub fn number(&mut self, metric: &'static Metric, point: PointParts<'_>, value: NumberValue) {
        let attributes_len = value::attributes_len(number_point::ATTRIBUTES, point.attributes);
        let out = self.number_head(metric, point, value, attributes_len);
        value::attributes(number_point::ATTRIBUTES, point.attributes, out);
    }

    /// Begins a point of a gauge or a sum; the caller appends its `attributes_len` bytes of attributes.
    #[inline]
    fn number_head(
        &mut self,
        metric: &'static Metric,
        point: PointParts<'_>,
        value: NumberValue,
        attributes_len: usize,
    ) -> &mut Buffer {
        use number_point as field;
        let (time, value) = ((field::TIME, point.time_unix_nanos.0), field_of(value));
        match point.start_unix_nanos.0 {
            0 => self.fixed(metric, [time, value], attributes_len),
            start => self.fixed(metric, [(field::START, start), time, value], attributes_len),
        }
    }

    /// Adds a point that marks the end of its series.
    pub fn end_of_series(&mut self, metric: &'static Metric, point: PointParts<'_>) {
        let (attributes, flags) = match metric.instrument {
            Instrument::Histogram => (histogram::field::ATTRIBUTES, histogram::field::FLAGS),
            _ => (number_point::ATTRIBUTES, number_point::FLAGS),
        };
        let len = 11 + value::attributes_len(attributes, point.attributes);
        let out = self.begin(metric, len);
        // The time has the same field number in points of every kind.
        out.fixed64(number_point::TIME, point.time_unix_nanos.0);
        value::attributes(attributes, point.attributes, out);
        out.uint(flags, 1);
    }

    /// Adds a point of a histogram with the bounds of the metric.
    pub fn histogram(&mut self, metric: &'static Metric, point: PointParts<'_>, parts: HistogramParts<'_>) {
        self.distribution(metric, point, parts, metric.bounds);
    }

    /// Adds a point of a histogram with bounds of its own.
    pub fn distribution(
        &mut self,
        metric: &'static Metric,
        point: PointParts<'_>,
        parts: HistogramParts<'_>,
        bounds: &[f64],
    ) {
        let attributes = histogram::field::ATTRIBUTES;
        let attributes_len = value::attributes_len(attributes, point.attributes);
        let shape = Shape::new(&parts, bounds, attributes_len);
        self.points += 1;
        self.len += shape.len;
        let Group { points, newest, .. } = self.group(metric);
        *newest = points.len();
        shape.write(point, parts, bounds, points, |out| {
            value::attributes(attributes, point.attributes, out);
        });
    }

    /// Returns the batch so far, if it has points, and resets the writer.
    pub fn finish(&mut self, envelope: &Envelope) -> Option<Encoded> {
        if self.is_empty() {
            return None;
        }
        let filled = || self.groups.iter().filter(|group| !group.points.is_empty());
        let len = filled().map(|group| delimited_len(2, group.encoded_len())).sum();
        let bytes = envelope.wrap(len, |out| filled().for_each(|group| group.encode(out)));
        let encoded = Encoded {
            signal: Signal::Metrics,
            items: self.points,
            bytes,
        };
        self.groups.iter_mut().for_each(|group| group.points.clear());
        (self.points, self.len) = (0, 0);
        Some(encoded)
    }

    /// Begins a point of `len` bytes: field 1 of `Gauge`, `Sum` and `Histogram` alike.
    #[inline]
    fn begin(&mut self, metric: &'static Metric, len: usize) -> &mut Buffer {
        self.points += 1;
        self.len += delimited_len(1, len);
        self.group(metric).begin(len)
    }

    #[inline]
    fn group(&mut self, metric: &'static Metric) -> &mut Group {
        let ordinal = usize::from(metric.ordinal);
        let place = self.places.get(ordinal).copied().unwrap_or_default();
        let place = if place == 0 { self.add_group(metric) } else { place };
        &mut self.groups[usize::from(place) - 1]
    }

    #[cold]
    fn add_group(&mut self, metric: &'static Metric) -> u16 {
        let ordinal = usize::from(metric.ordinal);
        if ordinal >= self.places.len() {
            self.places.resize(ordinal + 1, 0);
        }
        self.groups.push(Group::new(metric, false));
        self.places[ordinal] = self.groups.len() as u16;
        self.places[ordinal]
    }
}

/// Returns the field number of a value, and its bits.
#[inline]
fn field_of(value: NumberValue) -> (u32, u64) {
    match value {
        NumberValue::Double(value) => (number_point::AS_DOUBLE, value.to_bits()),
        NumberValue::Int(value) => (number_point::AS_INT, value as u64),
    }
}

impl Group {
    fn new(metric: &'static Metric, is_exponential: bool) -> Self {
        Self {
            metric,
            is_exponential,
            points: Buffer::default(),
            newest: 0,
        }
    }

    #[inline]
    fn begin(&mut self, len: usize) -> &mut Buffer {
        self.newest = self.points.len();
        self.points.delimited_head(1, len);
        &mut self.points
    }

    /// Returns the field of `Metric` for the points, and the bytes that follow them.
    fn data(&self) -> (u32, &'static [u8]) {
        const TEMPORALITY: u8 = 2 << 3;
        const MONOTONIC: u8 = 3 << 3;
        match self.metric.instrument {
            _ if self.is_exponential => (10, &[TEMPORALITY, CUMULATIVE]),
            Instrument::Gauge => (5, &[]),
            Instrument::Counter => (7, &[TEMPORALITY, CUMULATIVE, MONOTONIC, 1]),
            Instrument::UpDownCounter => (7, &[TEMPORALITY, CUMULATIVE]),
            // Points with bounds of their own cannot be added up, so they are deltas.
            Instrument::Histogram if self.metric.bounds.is_empty() => (9, &[TEMPORALITY, DELTA]),
            Instrument::Histogram => (9, &[TEMPORALITY, CUMULATIVE]),
        }
    }

    fn encoded_len(&self) -> usize {
        let Metric {
            name, brief, unit, ..
        } = self.metric;
        let (number, tail) = self.data();
        delimited_len(1, name.len())
            + delimited_len(2, brief.len())
            + delimited_len(3, unit.len())
            + delimited_len(number, self.points.len() + tail.len())
    }

    fn encode(&self, out: &mut Buffer) {
        let Metric {
            name, brief, unit, ..
        } = self.metric;
        let (number, tail) = self.data();
        out.delimited_head(2, self.encoded_len());
        out.delimited(1, name.as_bytes());
        out.delimited(2, brief.as_bytes());
        out.delimited(3, unit.as_bytes());
        out.delimited_head(number, self.points.len() + tail.len());
        out.append(self.points.as_slice());
        out.append(tail);
    }
}
