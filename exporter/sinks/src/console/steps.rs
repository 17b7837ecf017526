//! Takes the points of a batch apart: what one run said at one moment is a step.

use std::collections::BTreeMap;

use pulsetrain_otlp::view::{AnyValue, KeyValue, Metric, MetricData, MetricsData, Repeated};
use pulsetrain_semconv::attribute;

use super::columns::{COLUMNS, place};

/// What one run said at one moment.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Step {
    /// The run, as it is told from others.
    pub(super) run: String,
    /// The run, as people call it.
    pub(super) name: String,
    /// When.
    pub(super) unix_nanos: u64,
    /// The values of the columns that it said something about.
    pub(super) values: [Option<f64>; COLUMNS.len()],
    /// Whether sums count nothing but this moment.
    pub(super) is_first: bool,
}

/// The steps of a batch, those of each run in the order of time. What cannot be read is left out.
pub(super) fn steps(data: &MetricsData<'_>) -> Vec<Step> {
    let mut steps: BTreeMap<(String, u64), Step> = BTreeMap::new();
    for resource in data.resource_metrics.into_iter().flatten() {
        let attributes = resource.resource.map(|resource| resource.attributes);
        let run = text(attributes, attribute::SERVICE_INSTANCE_ID.name);
        let name = text(attributes, attribute::TRAIN_RUN_NAME.name);
        for metric in resource
            .scope_metrics
            .into_iter()
            .flatten()
            .flat_map(|scope| scope.metrics)
            .flatten()
        {
            each_value(&metric, |column, point| {
                let step = steps
                    .entry((run.clone(), point.unix_nanos))
                    .or_insert_with(|| Step {
                        run: run.clone(),
                        name: name.clone(),
                        unix_nanos: point.unix_nanos,
                        ..Step::default()
                    });
                step.values[column] = Some(point.value);
                step.is_first |= point.count == Some(1);
            });
        }
    }
    steps.into_values().collect()
}

/// A point of a metric that has a column.
struct Point {
    unix_nanos: u64,
    /// The value; of a distribution its sum.
    value: f64,
    /// How much a distribution counts.
    count: Option<u64>,
}

/// Every point of a metric that has a column.
fn each_value(metric: &Metric<'_>, mut take: impl FnMut(usize, Point)) {
    let Some(column) = metric.name.to_str().ok().and_then(place) else {
        return;
    };
    let numbers = match metric.data() {
        Some(MetricData::Gauge(gauge)) => gauge.data_points,
        Some(MetricData::Sum(sum)) => sum.data_points,
        Some(MetricData::Histogram(histogram)) => {
            for point in histogram.data_points.into_iter().flatten() {
                let point = Point {
                    unix_nanos: point.time_unix_nano,
                    value: point.sum.unwrap_or_default(),
                    count: Some(point.count),
                };
                take(column, point);
            }
            return;
        }
        _ => return,
    };
    for point in numbers.into_iter().flatten() {
        if let Some(value) = point.value() {
            let point = Point {
                unix_nanos: point.time_unix_nano,
                value: value.as_f64(),
                count: None,
            };
            take(column, point);
        }
    }
}

/// The text of an attribute; empty where there is none.
fn text(attributes: Option<Repeated<'_, KeyValue<'_>>>, key: &str) -> String {
    let found = attributes
        .into_iter()
        .flatten()
        .flatten()
        .find(|attribute| attribute.key.to_str() == Ok(key));
    match found.and_then(|attribute| attribute.value) {
        Some(AnyValue::String(text)) => text.to_str().unwrap_or_default().to_owned(),
        _ => String::new(),
    }
}
