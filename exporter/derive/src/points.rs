//! Decodes the points of selected metrics in a batch.

use pulsetrain_otlp::{
    WireError,
    view::{
        HistogramPoint, Message, Metric, MetricData, MetricsData, NumberPoint, Repeated, Temporality, Text,
    },
    wire::{Reader, Value},
    write::Buffer,
};

use crate::{origin::Origin, spans::copy};

/// Fields of the messages that enclose metrics (proto/metrics/v1/metrics.proto).
const RESOURCE_METRICS: u32 = 1;
const SCOPE_METRICS: u32 = 2;
const METRICS: u32 = 2;

/// A point as encoded in its batch.
pub(crate) enum Point<'a> {
    /// A point of a gauge or a cumulative sum.
    Number(NumberPoint<'a>),
    /// A point of a cumulative histogram.
    Histogram(HistogramPoint<'a>),
}

/// Calls `each` for every point of the metrics that `wanted` selects by name, with the resource as bytes and
/// as an origin.
///
/// # Errors
/// Bytes that are not metrics. `each` was called for the points before them.
pub(crate) fn for_each<'a, T: Copy>(
    bytes: &'a [u8],
    wanted: impl Fn(Text<'_>) -> Option<T>,
    mut each: impl FnMut(T, &Origin, &'a [u8], &Point<'a>),
) -> Result<(), WireError> {
    let mut resources = MetricsData::decode(bytes)?.resource_metrics.iter();
    while let Some(resource_message) = resources.next_bytes() {
        let resource_message = resource_message?;
        let of_resource = pulsetrain_otlp::view::ResourceMetrics::decode(resource_message)?;
        // Decoded for the first point that needs it, because most batches have none.
        let mut origin = None;
        for scope in of_resource.scope_metrics {
            for metric in scope?.metrics {
                let metric = metric?;
                let Some(wanted) = wanted(metric.name) else {
                    continue;
                };
                let origin = origin.get_or_insert_with(|| {
                    Origin::of(
                        of_resource
                            .resource
                            .map(|resource| resource.attributes)
                            .unwrap_or_default(),
                    )
                });
                for_each_of(&metric, |point| each(wanted, origin, resource_message, point))?;
            }
        }
    }
    Ok(())
}

/// Returns a batch of the metrics that `wanted` selects by name.
///
/// # Errors
/// Bytes that are not metrics.
pub(crate) fn only(bytes: &[u8], wanted: impl Fn(Text<'_>) -> bool) -> Result<Vec<u8>, WireError> {
    let is_wanted = |metric: &[u8]| Metric::decode(metric).map(|metric| wanted(metric.name));
    within(bytes, RESOURCE_METRICS, |resource| {
        within(resource, SCOPE_METRICS, |scope| {
            within(scope, METRICS, |metric| {
                Ok(is_wanted(metric)?.then(|| metric.to_vec()))
            })
            .map(Some)
        })
        .map(Some)
    })
}

/// Returns a message in which `part` replaces the fields of this number. Other fields stay.
fn within(
    bytes: &[u8],
    number: u32,
    mut part: impl FnMut(&[u8]) -> Result<Option<Vec<u8>>, WireError>,
) -> Result<Vec<u8>, WireError> {
    let mut out = Buffer::default();
    for field in Reader::new(bytes) {
        let field = field?;
        match field.value {
            Value::Bytes(resource_message) if field.number == number => {
                if let Some(part) = part(resource_message)? {
                    out.delimited(number, &part);
                }
            }
            _ => copy(&field, &mut out),
        }
    }
    Ok(out.into_vec())
}

fn for_each_of<'a>(metric: &Metric<'a>, mut each: impl FnMut(&Point<'a>)) -> Result<(), WireError> {
    let is_cumulative = |temporality: i32| Temporality::from(temporality) != Temporality::Delta;
    match metric.data() {
        Some(MetricData::Gauge(gauge)) => numbers(gauge.data_points, &mut each),
        Some(MetricData::Sum(sum)) if is_cumulative(sum.aggregation_temporality) => {
            numbers(sum.data_points, &mut each)
        }
        Some(MetricData::Histogram(histogram)) if is_cumulative(histogram.aggregation_temporality) => {
            for point in histogram.data_points {
                each(&Point::Histogram(point?));
            }
            Ok(())
        }
        _ => Ok(()),
    }
}

fn numbers<'a>(
    points: Repeated<'a, NumberPoint<'a>>,
    each: &mut impl FnMut(&Point<'a>),
) -> Result<(), WireError> {
    for point in points {
        each(&Point::Number(point?));
    }
    Ok(())
}
