//! Views of `opentelemetry/proto/metrics/v1/metrics.proto`.

use super::{InstrumentationScope, KeyValue, Resource, message::messages};

messages! {
    /// The outermost message of metrics; also the body of an export request.
    Part MetricsData {
        1 resource_metrics: many ResourceMetrics,
    }

    /// The metrics of one resource.
    Part ResourceMetrics {
        1 resource: one Resource,
        2 scope_metrics: many ScopeMetrics,
        3 schema_url: string,
    }

    /// The metrics of one instrumentation scope.
    Part ScopeMetrics {
        1 scope: one InstrumentationScope,
        2 metrics: many Metric,
        3 schema_url: string,
    }

    /// A metric with its points; see [`Metric::data`].
    Part Metric {
        1 name: string,
        2 description: string,
        3 unit: string,
        5 gauge: one Gauge,
        7 sum: one Sum,
        9 histogram: one Histogram,
        10 exponential_histogram: one ExponentialHistogram,
        11 summary: one Summary,
        12 metadata: many KeyValue,
    }

    /// Instantaneous values.
    Part Gauge {
        1 data_points: many NumberPoint,
    }

    /// Sums over time.
    Part Sum {
        1 data_points: many NumberPoint,
        2 aggregation_temporality: int32,
        3 is_monotonic: bool,
    }

    /// Distributions with explicit bucket bounds.
    Part Histogram {
        1 data_points: many HistogramPoint,
        2 aggregation_temporality: int32,
    }

    /// Distributions with exponential buckets.
    Part ExponentialHistogram {
        1 data_points: many ExponentialHistogramPoint,
        2 aggregation_temporality: int32,
    }

    /// Distributions as quantiles.
    Part Summary {
        1 data_points: many SummaryPoint,
    }

    /// A number at a time (`NumberDataPoint`); see [`NumberPoint::value`].
    Item NumberPoint {
        7 attributes: many KeyValue,
        2 start_time_unix_nano: fixed64,
        3 time_unix_nano: fixed64,
        4 as_double: some_double,
        6 as_int: some_sfixed64,
        5 exemplars: many Exemplar,
        8 flags: uint32,
    }

    /// A distribution with explicit bucket bounds at a time (`HistogramDataPoint`).
    Item HistogramPoint {
        9 attributes: many KeyValue,
        2 start_time_unix_nano: fixed64,
        3 time_unix_nano: fixed64,
        4 count: fixed64,
        5 sum: some_double,
        6 bucket_counts: packed_fixed64,
        7 explicit_bounds: packed_double,
        8 exemplars: many Exemplar,
        10 flags: uint32,
        11 min: some_double,
        12 max: some_double,
    }

    /// A distribution with exponential buckets at a time (`ExponentialHistogramDataPoint`).
    Item ExponentialHistogramPoint {
        1 attributes: many KeyValue,
        2 start_time_unix_nano: fixed64,
        3 time_unix_nano: fixed64,
        4 count: fixed64,
        5 sum: some_double,
        6 scale: sint32,
        7 zero_count: fixed64,
        8 positive: one Buckets,
        9 negative: one Buckets,
        10 flags: uint32,
        11 exemplars: many Exemplar,
        12 min: some_double,
        13 max: some_double,
        14 zero_threshold: double,
    }

    /// The buckets of one sign of an exponential histogram.
    Part Buckets {
        1 offset: sint32,
        2 bucket_counts: packed_uint64,
    }

    /// A distribution as quantiles at a time (`SummaryDataPoint`).
    Item SummaryPoint {
        7 attributes: many KeyValue,
        2 start_time_unix_nano: fixed64,
        3 time_unix_nano: fixed64,
        4 count: fixed64,
        5 sum: double,
        6 quantile_values: many ValueAtQuantile,
        8 flags: uint32,
    }

    /// One quantile of a summary.
    Part ValueAtQuantile {
        1 quantile: double,
        2 value: double,
    }

    /// An example measurement of a point, with the span that it was made in; see [`Exemplar::value`].
    Part Exemplar {
        7 filtered_attributes: many KeyValue,
        2 time_unix_nano: fixed64,
        3 as_double: some_double,
        6 as_int: some_sfixed64,
        4 span_id: id,
        5 trace_id: id,
    }
}

/// The points of a metric.
#[derive(Clone, Copy, Debug)]
pub enum MetricData<'a> {
    /// A gauge.
    Gauge(Gauge<'a>),
    /// A sum.
    Sum(Sum<'a>),
    /// A histogram with explicit bounds.
    Histogram(Histogram<'a>),
    /// A histogram with exponential buckets.
    ExponentialHistogram(ExponentialHistogram<'a>),
    /// A summary.
    Summary(Summary<'a>),
}

/// The value of a number point or an exemplar.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum NumberValue {
    /// A floating point number; NaN and infinities are values.
    Double(f64),
    /// An integer.
    Int(i64),
}

/// The start of the interval of a sum or a histogram (`AggregationTemporality`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Temporality {
    /// Not specified.
    Unspecified,
    /// The end of the previous point's interval.
    Delta,
    /// A fixed start.
    Cumulative,
}

impl From<i32> for Temporality {
    fn from(number: i32) -> Self {
        match number {
            1 => Self::Delta,
            2 => Self::Cumulative,
            _ => Self::Unspecified,
        }
    }
}

impl NumberValue {
    /// Returns the value as a floating point number.
    pub fn as_f64(self) -> f64 {
        match self {
            Self::Double(value) => value,
            Self::Int(value) => value as f64,
        }
    }
}

impl<'a> Metric<'a> {
    /// Returns the points, or `None` if the metric has no data.
    pub fn data(&self) -> Option<MetricData<'a>> {
        None.or(self.gauge.map(MetricData::Gauge))
            .or(self.sum.map(MetricData::Sum))
            .or(self.histogram.map(MetricData::Histogram))
            .or(self.exponential_histogram.map(MetricData::ExponentialHistogram))
            .or(self.summary.map(MetricData::Summary))
    }
}

impl NumberPoint<'_> {
    /// The flag of a point that marks the end of its series (`DATA_POINT_FLAGS_NO_RECORDED_VALUE_MASK`).
    pub const NO_RECORDED_VALUE: u32 = 1;

    /// Returns the value, if any.
    pub fn value(&self) -> Option<NumberValue> {
        self.as_double
            .map(NumberValue::Double)
            .or(self.as_int.map(NumberValue::Int))
    }
}

impl Exemplar<'_> {
    /// Returns the value, if any.
    pub fn value(&self) -> Option<NumberValue> {
        self.as_double
            .map(NumberValue::Double)
            .or(self.as_int.map(NumberValue::Int))
    }
}
