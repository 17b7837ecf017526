//! `generated/metric.rs`: one constant per metric, and the sets of histogram bounds.

use super::{HEADER, literal, table};
use crate::buckets::{self, Buckets};
use crate::grammar::{MetricDef, Number};
use crate::registry::Registry;

pub(super) fn module(registry: &Registry) -> String {
    let names: Vec<&str> = registry
        .metrics
        .iter()
        .map(|entry| entry.def.name.value.as_str())
        .collect();
    let bounds: String = buckets::ALL.iter().map(bounds).collect();
    let constants: String = registry
        .metrics
        .iter()
        .enumerate()
        .map(|(ordinal, entry)| constant(registry, ordinal, &entry.def))
        .collect();
    format!(
        "//! Every metric of the registry.\n\n{HEADER}\n\
         use super::attribute;\n\
         use crate::definition::{{AttributeUse, Instrument, Metric, Number, Requirement, Stability, Upstream}};\n\n\
         {bounds}{constants}{}",
        table("Metric", &names)
    )
}

fn bounds(buckets: &Buckets) -> String {
    let values: Vec<String> = buckets.bounds.iter().map(|bound| format!("{bound:?}")).collect();
    format!(
        "{}pub const {}: &[f64] = &[{}];\n\n",
        literal::doc(buckets.brief),
        bounds_constant(buckets.name),
        values.join(", ")
    )
}

fn bounds_constant(name: &str) -> String {
    format!("BOUNDS_{}", literal::constant(name))
}

fn constant(registry: &Registry, ordinal: usize, metric: &MetricDef) -> String {
    let brief = literal::brief(metric.brief.as_ref());
    let annotations = &metric.annotations;
    let prometheus_name = metric.prometheus_name();
    let docs = format!(
        "{brief}\n\nUnit `{}`; in Prometheus `{prometheus_name}`.",
        metric.unit
    );
    format!(
        "{}pub const {}: Metric = Metric {{\nordinal: {ordinal},\nname: {},\nbrief: {},\nunit: {},\n\
         instrument: Instrument::{:?},\nnumber: Number::{:?},\nbounds: {},\nattributes: {},\nprometheus_name: {},\n\
         stability: {},\nupstream: {},\n}};\n\n",
        literal::doc(&docs),
        literal::constant(&metric.name.value),
        literal::string(&metric.name.value),
        literal::string(&brief),
        literal::string(&metric.unit),
        metric.instrument,
        annotations
            .code_generation
            .metric_value_type
            .unwrap_or(Number::Double),
        annotations
            .pulsetrain
            .buckets
            .as_deref()
            .map_or("&[]".to_owned(), bounds_constant),
        literal::attributes(registry, &metric.attributes),
        literal::string(&prometheus_name),
        literal::stability(metric.stability),
        literal::upstream(&annotations.pulsetrain.sources),
    )
}
