//! `generated/metric.rs`: one row per metric, and the sets of histogram bounds.

use super::{HEADER, literal, row};
use crate::buckets::{self, Buckets};
use crate::grammar::MetricDef;
use crate::registry::Registry;

pub(super) fn module(registry: &Registry) -> String {
    let bounds: String = buckets::ALL.iter().map(bounds).collect();
    let rows = registry.metrics.iter().map(|entry| metric(registry, &entry.def));
    format!(
        "//! Every metric of the registry.\n\n{HEADER}\nuse crate::table::metrics;\n\n{bounds}{}",
        row::table("metrics", rows)
    )
}

fn bounds(buckets: &Buckets) -> String {
    let values: Vec<String> = buckets.bounds.iter().map(|bound| format!("{bound:?}")).collect();
    format!(
        "/// {}\npub const {}: &[f64] = &[{}];\n\n",
        buckets.brief,
        bounds_constant(buckets.name),
        values.join(", ")
    )
}

fn bounds_constant(name: &str) -> String {
    format!("BOUNDS_{}", literal::constant(name))
}

fn metric(registry: &Registry, metric: &MetricDef) -> String {
    let name = &metric.name.value;
    let annotations = &metric.annotations;
    let attributes = literal::attribute_uses(registry, &metric.attributes);
    let lines = [
        format!(
            "name: {}, prometheus_name: {}",
            literal::string(name),
            literal::string(&metric.prometheus_name())
        ),
        format!(
            "unit: {}, instrument: {:?}, number: {:?}, bounds: {}, stability: {}",
            literal::string(&metric.unit),
            metric.instrument,
            metric.number(),
            annotations
                .pulsetrain
                .buckets
                .as_deref()
                .map_or("&[]".to_owned(), bounds_constant),
            literal::stability(metric.stability)
        ),
        literal::brief(metric.brief.as_ref()),
        row::filled_list("attributes: ", &attributes),
        literal::upstream(&annotations.pulsetrain.sources),
    ];
    row::row(name, &lines)
}
