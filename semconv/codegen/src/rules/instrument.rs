//! Instruments: requirements of counters, histograms and state sets.

use super::{Finding, metrics_with};
use crate::buckets;
use crate::grammar::{AttributeType, Instrument, MetricDef, Number, RequirementLevel};
use crate::registry::Registry;

/// The unit of a state set: 1 for the present state, 0 for the others.
const STATE: &str = "{state}";

/// The type of a metric's values is given; ratios and distributions are fractions.
pub(super) fn value_type(registry: &Registry) -> Vec<Finding<'_>> {
    metrics_with(registry, |metric| {
        match metric.annotations.code_generation.metric_value_type {
            None => Some("has no `annotations.code_generation.metric_value_type`: `int` or `double`"),
            Some(Number::Int) if metric.annotations.pulsetrain.ratio.is_some() => {
                Some("is a ratio of integers; use `double`")
            }
            Some(Number::Int) if metric.instrument == Instrument::Histogram => {
                Some("is a distribution of integers; use `double`")
            }
            Some(_) => None,
        }
    })
}

/// A counter's name is a plural if it counts things, and never contains `total`: Prometheus adds that.
pub(super) fn counter_name(registry: &Registry) -> Vec<Finding<'_>> {
    metrics_with(registry, |metric| {
        let name = &metric.name.value;
        let counts_things = metric.unit.starts_with('{');
        if metric.instrument != Instrument::Counter {
            None
        } else if name.split(['.', '_']).any(|word| word == "total") {
            Some("is a counter with `total` in its name; take it out, Prometheus adds it")
        } else if counts_things && !name.ends_with('s') {
            Some("counts things but is no plural")
        } else {
            None
        }
    })
}

/// A metric whose name ends in `.duration` is a histogram in seconds.
pub(super) fn duration_histogram(registry: &Registry) -> Vec<Finding<'_>> {
    metrics_with(registry, |metric| {
        let is_duration = metric.name.value.ends_with(".duration");
        let fits = metric.instrument == Instrument::Histogram && metric.unit == "s";
        (is_duration && !fits).then_some("is a duration but no histogram in `s`")
    })
}

/// A histogram names a known set of bounds; no other instrument names one.
pub(super) fn buckets(registry: &Registry) -> Vec<Finding<'_>> {
    metrics_with(registry, |metric| {
        match (metric.instrument, &metric.annotations.pulsetrain.buckets) {
            (Instrument::Histogram, None) => {
                Some("is a histogram without `annotations.pulsetrain.buckets`; use `seconds` for durations")
            }
            (Instrument::Histogram, Some(name)) => {
                buckets::find(name).is_none().then_some("names unknown buckets")
            }
            (_, Some(_)) => Some("names buckets but is no histogram"),
            (_, None) => None,
        }
    })
}

/// A state set is an up-down counter of integers over the members of exactly one required enum.
pub(super) fn state_set(registry: &Registry) -> Vec<Finding<'_>> {
    metrics_with(registry, |metric| {
        let is_integer = metric.annotations.code_generation.metric_value_type == Some(Number::Int);
        let fits = metric.instrument == Instrument::UpDownCounter
            && is_integer
            && required_enums(registry, metric) == 1;
        let message =
            "is a state set but no up-down counter of `int` with exactly one required attribute of an enum";
        (metric.unit == STATE && !fits).then_some(message)
    })
}

fn required_enums(registry: &Registry, metric: &MetricDef) -> usize {
    let references = registry.resolve(&metric.attributes);
    let required = references
        .iter()
        .filter(|reference| matches!(reference.level, RequirementLevel::Required));
    let attributes = required.filter_map(|reference| registry.attribute(&reference.key));
    attributes
        .filter(|attribute| matches!(attribute.kind, AttributeType::Enum { .. }))
        .count()
}
