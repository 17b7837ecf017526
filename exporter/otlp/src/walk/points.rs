//! The points of a metric, as one view of all kinds.

use crate::{
    UnixNanos,
    view::{
        Exemplar, ExponentialHistogramPoint, HistogramPoint, KeyValue, Message, Metric, MetricData,
        NumberPoint, NumberValue, Repeated, SummaryPoint, Temporality,
    },
    wire::WireError,
};

/// The kind of a metric's points.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PointKind {
    /// Instantaneous values.
    Gauge,
    /// Sums over time.
    Sum {
        /// The start of the interval of a point.
        temporality: Temporality,
        /// Whether the sum never falls.
        is_monotonic: bool,
    },
    /// Distributions with explicit bucket bounds.
    Histogram {
        /// The start of the interval of a point.
        temporality: Temporality,
    },
    /// Distributions with exponential buckets.
    ExponentialHistogram {
        /// The start of the interval of a point.
        temporality: Temporality,
    },
    /// Distributions as quantiles, whose count and sum are cumulative.
    Summary,
}

/// A point of any kind. A point that needs its buckets or quantiles has them in [`AnyPoint::data`].
#[derive(Clone, Copy, Debug)]
pub struct AnyPoint<'p, 'a> {
    /// The kind, equal for all points of a metric.
    pub kind: PointKind,
    /// The encoded point.
    pub bytes: &'a [u8],
    /// The decoded point.
    pub data: PointData<'p, 'a>,
}

/// A decoded point.
#[derive(Clone, Copy, Debug)]
pub enum PointData<'p, 'a> {
    /// A point of a gauge or a sum.
    Number(&'p NumberPoint<'a>),
    /// A point of a histogram with explicit bounds.
    Histogram(&'p HistogramPoint<'a>),
    /// A point of a histogram with exponential buckets.
    ExponentialHistogram(&'p ExponentialHistogramPoint<'a>),
    /// A point of a summary.
    Summary(&'p SummaryPoint<'a>),
}

/// The value of a point.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum PointValue {
    /// The number of a gauge or a sum.
    Number(NumberValue),
    /// The distribution of a histogram or a summary.
    Distribution(Distribution),
}

/// A distribution without its buckets or quantiles.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Distribution {
    /// The number of observations.
    pub count: u64,
    /// The sum of the observations.
    pub sum: Option<f64>,
    /// The smallest observation.
    pub min: Option<f64>,
    /// The largest observation.
    pub max: Option<f64>,
}

impl PointKind {
    /// Returns the temporality, or `None` for the kinds that have none: gauges and summaries.
    #[inline]
    pub fn temporality(self) -> Option<Temporality> {
        match self {
            Self::Sum { temporality, .. }
            | Self::Histogram { temporality }
            | Self::ExponentialHistogram { temporality } => Some(temporality),
            Self::Gauge | Self::Summary => None,
        }
    }

    /// Returns whether a point counts only since the point before it. A temporality that is not specified is cumulative.
    #[inline]
    pub fn is_delta(self) -> bool {
        self.temporality() == Some(Temporality::Delta)
    }
}

/// A decoded point of one kind.
trait PointMessage<'a>: Message<'a> {
    fn data(&self) -> PointData<'_, 'a>;
}

macro_rules! point_message {
    ($message:ident, $kind:ident) => {
        impl<'a> PointMessage<'a> for $message<'a> {
            #[inline]
            fn data(&self) -> PointData<'_, 'a> {
                PointData::$kind(self)
            }
        }
    };
}

point_message!(NumberPoint, Number);
point_message!(HistogramPoint, Histogram);
point_message!(ExponentialHistogramPoint, ExponentialHistogram);
point_message!(SummaryPoint, Summary);

/// Returns a field that points of every kind have.
macro_rules! field {
    ($point:expr, $field:ident) => {
        match $point.data {
            PointData::Number(point) => point.$field,
            PointData::Histogram(point) => point.$field,
            PointData::ExponentialHistogram(point) => point.$field,
            PointData::Summary(point) => point.$field,
        }
    };
}

impl<'a> AnyPoint<'_, 'a> {
    /// Returns the attributes.
    #[inline]
    pub fn attributes(&self) -> Repeated<'a, KeyValue<'a>> {
        field!(self, attributes)
    }

    /// Returns the exemplars. A summary has none.
    #[inline]
    pub fn exemplars(&self) -> Repeated<'a, Exemplar<'a>> {
        match self.data {
            PointData::Number(point) => point.exemplars,
            PointData::Histogram(point) => point.exemplars,
            PointData::ExponentialHistogram(point) => point.exemplars,
            PointData::Summary(_) => Repeated::default(),
        }
    }

    /// Returns the start of the interval of a sum or a distribution, or [`UnixNanos::UNKNOWN`].
    #[inline]
    pub fn start(&self) -> UnixNanos {
        UnixNanos(field!(self, start_time_unix_nano))
    }

    /// Returns the time, or [`UnixNanos::UNKNOWN`].
    #[inline]
    pub fn time(&self) -> UnixNanos {
        UnixNanos(field!(self, time_unix_nano))
    }

    /// Returns whether the point has no value because its series has ended (`NO_RECORDED_VALUE`).
    #[inline]
    pub fn is_end(&self) -> bool {
        field!(self, flags) & NumberPoint::NO_RECORDED_VALUE != 0
    }

    /// Returns the value, or `None` at the end of a series and for a number without a value.
    #[inline]
    pub fn value(&self) -> Option<PointValue> {
        if self.is_end() {
            return None;
        }
        Some(match self.data {
            PointData::Number(point) => PointValue::Number(point.value()?),
            PointData::Histogram(point) => PointValue::Distribution(Distribution {
                count: point.count,
                sum: point.sum,
                min: point.min,
                max: point.max,
            }),
            PointData::ExponentialHistogram(point) => PointValue::Distribution(Distribution {
                count: point.count,
                sum: point.sum,
                min: point.min,
                max: point.max,
            }),
            PointData::Summary(point) => PointValue::Distribution(Distribution {
                count: point.count,
                sum: Some(point.sum),
                min: None,
                max: None,
            }),
        })
    }

    /// Returns the number of a gauge or a sum.
    #[inline]
    pub fn number(&self) -> Option<NumberValue> {
        match self.value()? {
            PointValue::Number(number) => Some(number),
            PointValue::Distribution(_) => None,
        }
    }

    /// Returns the distribution of a histogram or a summary.
    #[inline]
    pub fn distribution(&self) -> Option<Distribution> {
        match self.value()? {
            PointValue::Number(_) => None,
            PointValue::Distribution(distribution) => Some(distribution),
        }
    }
}

impl MetricData<'_> {
    /// Returns the kind of the points.
    #[inline]
    pub fn kind(&self) -> PointKind {
        match self {
            Self::Gauge(_) => PointKind::Gauge,
            Self::Sum(sum) => PointKind::Sum {
                temporality: sum.aggregation_temporality.into(),
                is_monotonic: sum.is_monotonic,
            },
            Self::Histogram(histogram) => PointKind::Histogram {
                temporality: histogram.aggregation_temporality.into(),
            },
            Self::ExponentialHistogram(histogram) => PointKind::ExponentialHistogram {
                temporality: histogram.aggregation_temporality.into(),
            },
            Self::Summary(_) => PointKind::Summary,
        }
    }

    /// Returns the number of points.
    #[inline]
    pub fn point_count(&self) -> usize {
        match self {
            Self::Gauge(gauge) => gauge.data_points.len(),
            Self::Sum(sum) => sum.data_points.len(),
            Self::Histogram(histogram) => histogram.data_points.len(),
            Self::ExponentialHistogram(histogram) => histogram.data_points.len(),
            Self::Summary(summary) => summary.data_points.len(),
        }
    }
}

impl<'a> MetricData<'a> {
    /// Visits the points in their order.
    ///
    /// # Errors
    /// A point that is not valid protobuf. The points before it were visited.
    #[inline]
    pub fn each_point(&self, mut visit: impl FnMut(AnyPoint<'_, 'a>)) -> Result<(), WireError> {
        self.try_each_point(|point| {
            visit(point);
            Ok(())
        })
    }

    /// Visits the points in their order until `visit` returns an error.
    ///
    /// # Errors
    /// The error of `visit`, or a point that is not valid protobuf.
    #[inline]
    pub fn try_each_point<E: From<WireError>>(
        &self,
        visit: impl FnMut(AnyPoint<'_, 'a>) -> Result<(), E>,
    ) -> Result<(), E> {
        let kind = self.kind();
        match self {
            Self::Gauge(gauge) => each(kind, &gauge.data_points, visit),
            Self::Sum(sum) => each(kind, &sum.data_points, visit),
            Self::Histogram(histogram) => each(kind, &histogram.data_points, visit),
            Self::ExponentialHistogram(histogram) => each(kind, &histogram.data_points, visit),
            Self::Summary(summary) => each(kind, &summary.data_points, visit),
        }
    }
}

impl<'a> Metric<'a> {
    /// Visits the points in their order. A metric without data has no points.
    ///
    /// # Errors
    /// A point that is not valid protobuf. The points before it were visited.
    #[inline]
    pub fn each_point(&self, visit: impl FnMut(AnyPoint<'_, 'a>)) -> Result<(), WireError> {
        match self.data() {
            Some(data) => data.each_point(visit),
            None => Ok(()),
        }
    }

    /// Visits the points in their order until `visit` returns an error. A metric without data has no points.
    ///
    /// # Errors
    /// The error of `visit`, or a point that is not valid protobuf.
    #[inline]
    pub fn try_each_point<E: From<WireError>>(
        &self,
        visit: impl FnMut(AnyPoint<'_, 'a>) -> Result<(), E>,
    ) -> Result<(), E> {
        match self.data() {
            Some(data) => data.try_each_point(visit),
            None => Ok(()),
        }
    }
}

/// Visits points of one kind: `visit` is compiled for each kind.
#[inline]
fn each<'a, M: PointMessage<'a>, E: From<WireError>>(
    kind: PointKind,
    points: &Repeated<'a, M>,
    mut visit: impl FnMut(AnyPoint<'_, 'a>) -> Result<(), E>,
) -> Result<(), E> {
    let mut points = points.iter();
    while let Some(bytes) = points.next_bytes() {
        let bytes = bytes?;
        let point = M::decode(bytes)?;
        let data = point.data();
        visit(AnyPoint { kind, bytes, data })?;
    }
    Ok(())
}
