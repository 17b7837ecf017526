//! Points of gauges whose attributes are encoded once for all points of the series.

use pulsetrain_semconv::Metric;

use super::{MetricsWriter, number_point as field};
use crate::write::{
    Attribute,
    buffer::Buffer,
    value::{attributes, attributes_len},
};

/// The attributes of the points of one series of a gauge, as they are in each of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PointAttributes(Vec<u8>);

impl PointAttributes {
    /// Encodes attributes.
    pub fn of(all: &[Attribute<'_>]) -> Self {
        let mut out = Buffer::with_capacity(attributes_len(field::ATTRIBUTES, all));
        attributes(field::ATTRIBUTES, all, &mut out);
        Self(out.into_vec())
    }
}

impl MetricsWriter {
    /// Adds a point of a gauge of doubles.
    #[inline]
    pub fn double_of_series(
        &mut self,
        metric: &'static Metric,
        time_unix_nanos: u64,
        value: f64,
        series: &PointAttributes,
    ) {
        let out = self.begin(metric, 18 + series.0.len());
        out.two_fixed64([
            (field::TIME, time_unix_nanos),
            (field::AS_DOUBLE, value.to_bits()),
        ]);
        out.append(&series.0);
    }
}
