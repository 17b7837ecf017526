//! Aggregation: a sum or a mean over all attributes of a metric is meaningful, or the metric is annotated with `none`.

use super::{Finding, metrics_with};
use crate::grammar::{Aggregation, AttributeType, Instrument, Member, MetricDef};
use crate::registry::Registry;

/// Values that include the other values of their attribute.
const TOTALS: [&str; 3] = ["all", "sum", "total"];
/// Values that are statistics or readings of one quantity. A single one may be a plain word, as `max` is of a level.
const STATISTICS: [&str; 11] = [
    "average", "current", "instant", "max", "mean", "median", "min", "p50", "p95", "p99", "std",
];

/// Every metric has an aggregation that fits its instrument and its unit.
pub(super) fn fits(registry: &Registry) -> Vec<Finding<'_>> {
    metrics_with(registry, |metric| {
        let Some(aggregation) = metric.annotations.pulsetrain.aggregation else {
            return Some("has no `annotations.pulsetrain.aggregation`: `sum`, `average` or `none`");
        };
        match (metric.instrument, aggregation) {
            (Instrument::Counter | Instrument::UpDownCounter, Aggregation::Average | Aggregation::None) => {
                Some("is a counter whose values do not add up; make what overlaps a metric of its own")
            }
            (Instrument::Histogram, Aggregation::Average) => {
                Some("is a histogram, which has no average; write `sum` or `none`")
            }
            (Instrument::Gauge, Aggregation::Sum) if metric.unit == "1" => {
                Some("is a ratio, which does not add up; write `average` or `none`")
            }
            _ => None,
        }
    })
}

/// No attribute of a metric that is aggregated has a total next to its parts, or several statistics of one quantity.
pub(super) fn additive_attributes(registry: &Registry) -> Vec<Finding<'_>> {
    metrics_with(registry, |metric| {
        let is_aggregated = metric.annotations.pulsetrain.aggregation != Some(Aggregation::None);
        is_aggregated.then(|| overlap(registry, metric)).flatten()
    })
}

/// Returns a message about the first attribute of a metric whose values overlap.
fn overlap(registry: &Registry, metric: &MetricDef) -> Option<String> {
    let references = registry.resolve(&metric.attributes);
    references.iter().find_map(|reference| {
        let attribute = registry.attribute(&reference.key)?;
        let AttributeType::Enum { members } = &attribute.kind else {
            return None;
        };
        let problem = overlapping(members).filter(|_| !attribute.annotations.pulsetrain.descriptive)?;
        Some(format!(
            "is aggregated over `{}`, which has {problem}; make a metric of each or write `none`",
            reference.key
        ))
    })
}

fn overlapping(members: &[Member]) -> Option<String> {
    let values = || members.iter().map(Member::value);
    if let Some(total) = values().find(|value| TOTALS.contains(value) && members.len() > 1) {
        return Some(format!("`{total}` next to its parts"));
    }
    let statistics: Vec<_> = values().filter(|value| STATISTICS.contains(value)).collect();
    (statistics.len() > 1).then(|| format!("several readings of one quantity: `{}`", statistics.join("`, `")))
}
