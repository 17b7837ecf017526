//! Extracts steps from a batch: the points of one run with the same time are a step.

use std::collections::BTreeMap;

use pulsetrain_otlp::{
    UnixNanos,
    view::{AnyValue, KeyValue, Metric, MetricData, MetricsData, Repeated},
};
use pulsetrain_semconv::attribute;

use super::columns::{COLUMNS, place};

/// The values that one run reported at one time.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Step {
    /// The id of the run.
    pub(super) run: String,
    /// The display name of the run.
    pub(super) name: String,
    /// The rank, or `None` for values of the complete run.
    pub(super) rank: Option<i64>,
    /// The time.
    pub(super) unix_nanos: UnixNanos,
    /// The values of the columns that it reported.
    pub(super) values: [Option<f64>; COLUMNS.len()],
    /// Whether the sums count only this step.
    pub(super) is_first: bool,
}

/// Returns the steps of a batch, in order of time within each run. Points that cannot be decoded are skipped.
pub(super) fn steps(data: &MetricsData<'_>) -> Vec<Step> {
    let mut steps: BTreeMap<(String, Option<i64>, UnixNanos), Step> = BTreeMap::new();
    for resource in data.resource_metrics.into_iter().flatten() {
        let attributes = resource.resource.map(|resource| resource.attributes);
        let run = run_id(attributes);
        let rank = integer(attributes, attribute::TRAIN_RANK.name);
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
                    .entry((run.clone(), rank, point.unix_nanos))
                    .or_insert_with(|| Step {
                        run: run.clone(),
                        name: name.clone(),
                        rank,
                        unix_nanos: point.unix_nanos,
                        ..Step::default()
                    });
                step.values[column] = Some(point.value);
                step.is_first |= point.count == Some(1);
            });
        }
    }
    let mut steps: Vec<Step> = steps.into_values().collect();
    steps.sort_by_key(|step| step.unix_nanos);
    steps
}

/// Returns the run of a resource: its run id, or its instance id.
pub(super) fn run_id(attributes: Option<Repeated<'_, KeyValue<'_>>>) -> String {
    let run = text(attributes, attribute::TRAIN_RUN_ID.name);
    if run.is_empty() {
        text(attributes, attribute::SERVICE_INSTANCE_ID.name)
    } else {
        run
    }
}

/// A point of a metric that has a column.
struct Point {
    unix_nanos: UnixNanos,
    /// The value, or the sum of a distribution.
    value: f64,
    /// The count of a distribution.
    count: Option<u64>,
}

/// Calls `take` for each point of a metric that has a column.
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
                    unix_nanos: UnixNanos(point.time_unix_nano),
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
                unix_nanos: UnixNanos(point.time_unix_nano),
                value: value.as_f64(),
                count: None,
            };
            take(column, point);
        }
    }
}

/// Returns the text of an attribute, or an empty string.
pub(super) fn text(attributes: Option<Repeated<'_, KeyValue<'_>>>, key: &str) -> String {
    match value(attributes, key) {
        Some(AnyValue::String(text)) => text.to_str().unwrap_or_default().to_owned(),
        _ => String::new(),
    }
}

fn integer(attributes: Option<Repeated<'_, KeyValue<'_>>>, key: &str) -> Option<i64> {
    match value(attributes, key) {
        Some(AnyValue::Int(value)) => Some(value),
        _ => None,
    }
}

fn value<'a>(attributes: Option<Repeated<'a, KeyValue<'a>>>, key: &str) -> Option<AnyValue<'a>> {
    let mut attributes = attributes.into_iter().flatten().flatten();
    attributes
        .find(|attribute| attribute.key.to_str() == Ok(key))?
        .value
}
