//! Prometheus: no two metrics may have a series name in common.

use std::collections::HashMap;

use super::Finding;
use crate::grammar::{Instrument, MetricDef};
use crate::registry::Registry;

/// The suffixes of the series of a histogram.
const HISTOGRAM_SUFFIXES: [&str; 3] = ["_bucket", "_count", "_sum"];

/// Names that differ here may be equal in Prometheus: `a.b` in `s`, and `a.b.seconds`.
pub(super) fn equal_names(registry: &Registry) -> Vec<Finding<'_>> {
    let mut findings = Vec::new();
    let mut seen: HashMap<String, &str> = HashMap::new();
    for entry in &registry.metrics {
        for series in series(&entry.def) {
            if let Some(other) = seen.insert(series.clone(), &entry.def.name.value) {
                findings.push(Finding::new(
                    entry.into(),
                    format!("is `{series}` in Prometheus, as is `{other}`"),
                ));
            }
        }
    }
    findings
}

fn series(metric: &MetricDef) -> Vec<String> {
    let family = metric.prometheus_name();
    let mut series = Vec::new();
    if metric.instrument == Instrument::Histogram {
        series.extend(
            HISTOGRAM_SUFFIXES
                .iter()
                .map(|suffix| format!("{family}{suffix}")),
        );
    }
    series.push(family);
    series
}
