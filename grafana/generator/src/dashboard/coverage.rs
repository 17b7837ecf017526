//! Every metric of the registry is on a panel, or is listed with the reason why not.

use std::collections::BTreeSet;

use pulsetrain_semconv::metric;
use serde::Deserialize;

use super::model::Dashboard;
use crate::DefinitionError;

const FILE: &str = "not_shown.yaml";

/// An entry of `not_shown.yaml`: metrics that no panel shows, with one reason.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct NotShown {
    pub(crate) reason: String,
    /// Names of the registry; one that ends in `.*` is a family.
    pub(crate) metrics: Vec<String>,
}

impl NotShown {
    fn matches(pattern: &str, name: &str) -> bool {
        match pattern.strip_suffix('*') {
            Some(family) => name.starts_with(family),
            None => name == pattern,
        }
    }
}

/// Returns an error for each metric that is neither shown nor listed, and for each entry that lists a metric that is shown or
/// does not exist.
pub(crate) fn check(dashboards: &[Dashboard], not_shown: &[NotShown]) -> Vec<DefinitionError> {
    let shown = shown(dashboards);
    let mut errors = Vec::new();
    for metric in metric::ALL {
        let listed = not_shown
            .iter()
            .flat_map(|entry| &entry.metrics)
            .any(|pattern| NotShown::matches(pattern, metric.name));
        let message = match (shown.contains(metric.name), listed) {
            (false, false) => "no panel shows this metric; add a panel, or list it here with a reason",
            (true, true) => "a panel shows this metric; remove it from the list",
            _ => continue,
        };
        errors.push(DefinitionError::new(FILE, metric.name, message));
    }
    for entry in not_shown {
        if entry.reason.trim().is_empty() {
            errors.push(DefinitionError::new(
                FILE,
                &entry.metrics.join(", "),
                "has no reason",
            ));
        }
        for pattern in &entry.metrics {
            if !metric::ALL
                .iter()
                .any(|metric| NotShown::matches(pattern, metric.name))
            {
                errors.push(DefinitionError::new(
                    FILE,
                    pattern,
                    "the registry has no such metric",
                ));
            }
        }
    }
    errors
}

/// Returns the names in the registry of the metrics that some panel selects.
fn shown(dashboards: &[Dashboard]) -> BTreeSet<&'static str> {
    let selected: BTreeSet<&str> = dashboards
        .iter()
        .flat_map(Dashboard::panels)
        .flat_map(|panel| &panel.queries)
        .flat_map(|query| &query.metrics)
        .map(String::as_str)
        .collect();
    metric::ALL
        .iter()
        .filter(|metric| {
            let name = metric.prometheus_name;
            let parts = ["", "_bucket", "_sum", "_count"];
            parts
                .iter()
                .any(|part| selected.contains(format!("{name}{part}").as_str()))
        })
        .map(|metric| metric.name)
        .collect()
}
