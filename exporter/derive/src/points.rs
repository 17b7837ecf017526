//! The points of a batch of metrics, of those metrics that somebody asks for.

use pulsetrain_otlp::{
    WireError,
    view::{
        HistogramPoint, Message, Metric, MetricData, MetricsData, NumberPoint, Repeated, Temporality, Text,
    },
};

use crate::origin::Origin;

/// A point as it stands in its batch.
pub(crate) enum Point<'a> {
    /// Of a gauge or a cumulative sum.
    Number(NumberPoint<'a>),
    /// Of a cumulative histogram.
    Histogram(HistogramPoint<'a>),
}

/// Calls `each` for every point of the metrics that `wanted` knows by name, with the resource as bytes and as who speaks.
///
/// # Errors
/// Bytes that are no metrics; what came before them was seen.
pub(crate) fn for_each<'a, T: Copy>(
    bytes: &'a [u8],
    wanted: impl Fn(Text<'_>) -> Option<T>,
    mut each: impl FnMut(T, &Origin, &'a [u8], &Point<'a>),
) -> Result<(), WireError> {
    let mut resources = MetricsData::decode(bytes)?.resource_metrics.iter();
    while let Some(whole) = resources.next_bytes() {
        let whole = whole?;
        let of_resource = pulsetrain_otlp::view::ResourceMetrics::decode(whole)?;
        // Made when the first point needs it: most batches have none that does.
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
                for_each_of(&metric, |point| each(wanted, origin, whole, point))?;
            }
        }
    }
    Ok(())
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
