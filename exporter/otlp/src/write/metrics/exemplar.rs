//! Encodes the exemplar of a point: an example measurement with its span.
//!
//! The span of a step is known only after its values are recorded, so an exemplar is added to a point that is already encoded.

use pulsetrain_semconv::Metric;

use super::MetricsWriter;
use crate::{
    UnixNanos,
    write::{SpanLink, buffer::Buffer},
};

/// Fields of `Exemplar` (proto/metrics/v1/metrics.proto).
mod field {
    pub(super) const TIME: u32 = 2;
    pub(super) const AS_DOUBLE: u32 = 3;
    pub(super) const SPAN_ID: u32 = 4;
    pub(super) const TRACE_ID: u32 = 5;
    /// The field of `HistogramDataPoint`.
    pub(super) const EXEMPLARS: u32 = 8;
}

/// The size of an exemplar in bytes: two numbers and two ids, each with a tag, and the ids with a length.
const LEN: usize = 9 + 9 + 10 + 18;

/// An example measurement of a point.
#[derive(Clone, Copy, Debug)]
pub struct ExemplarParts {
    /// The time of the measurement.
    pub time_unix_nanos: UnixNanos,
    /// The measured value.
    pub value: f64,
    /// The span of the measurement.
    pub span: SpanLink,
}

impl MetricsWriter {
    /// Adds an exemplar to the newest point of a histogram with bounds, or does nothing if the metric has no points.
    pub fn exemplar(&mut self, metric: &'static Metric, parts: &ExemplarParts) {
        let place = self.places.get(usize::from(metric.ordinal)).copied();
        let Some(place) = place.and_then(|place| usize::from(place).checked_sub(1)) else {
            return;
        };
        let group = &mut self.groups[place];
        if group.points.is_empty() {
            return;
        }
        let before = group.points.len();
        group.points.extend_last(group.newest, LEN + 2);
        write(parts, &mut group.points);
        self.len += group.points.len() - before;
    }
}

fn write(parts: &ExemplarParts, out: &mut Buffer) {
    out.delimited_head(field::EXEMPLARS, LEN);
    out.two_fixed64([
        (field::TIME, parts.time_unix_nanos.0),
        (field::AS_DOUBLE, parts.value.to_bits()),
    ]);
    out.delimited(field::SPAN_ID, &parts.span.span_id);
    out.delimited(field::TRACE_ID, &parts.span.trace_id);
}
