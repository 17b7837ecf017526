//! Takes the points of a batch apart: what one run reported at one moment is a step.

use std::collections::BTreeMap;

use pulsetrain_otlp::view::{AnyValue, KeyValue, Metric, MetricData, MetricsData, Repeated};
use pulsetrain_semconv::attribute;

use super::columns::{COLUMNS, place};

/// What one run reported at one moment.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Step {
    /// The run, as it is distinguished from others.
    pub(super) run: String,
    /// The run, as people call it.
    pub(super) name: String,
    /// The rank; `None` for what is known of all ranks.
    pub(super) rank: Option<i64>,
    /// When.
    pub(super) unix_nanos: u64,
    /// The values of the columns that it reported.
    pub(super) values: [Option<f64>; COLUMNS.len()],
    /// Whether sums count nothing but this moment.
    pub(super) is_first: bool,
}

/// The steps of a batch, those of each run in the order of time. What cannot be read is left out.
pub(super) fn steps(data: &MetricsData<'_>) -> Vec<Step> {
    let mut steps: BTreeMap<(String, Option<i64>, u64), Step> = BTreeMap::new();
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

/// The run that a resource is of: the id of the run, or of the instance where it has none.
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

/// The text of an attribute; empty without one.
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
