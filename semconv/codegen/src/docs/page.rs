//! The page of one domain: a table for each kind that it defines.

use super::cell;
use crate::definition::{Definition, DefinitionKind};
use crate::grammar::{AttributeDef, EntityDef, MetricDef};
use crate::registry::{Entry, Registry};

/// A row of cells.
type Row = Vec<String>;

pub(super) fn page(registry: &Registry, domain: &str) -> String {
    let tables = [
        table(
            "Metrics",
            &[
                "Metric",
                "Unit",
                "Instrument",
                "Aggregation",
                "Prometheus",
                "Attributes",
                "Filled from",
            ],
            &metrics(registry, domain),
        ),
        table(
            "Spans",
            &["Span", "Attributes", "Filled from"],
            &signals(registry, domain, DefinitionKind::Span),
        ),
        table(
            "Events",
            &["Event", "Attributes", "Filled from"],
            &signals(registry, domain, DefinitionKind::Event),
        ),
        table(
            "Attributes",
            &["Attribute", "Type", "Filled from"],
            &attributes(registry, domain),
        ),
        table(
            "Entities",
            &["Entity", "Identified by", "Described by"],
            &entities(registry, domain),
        ),
    ];
    format!("# {domain}\n{}", tables.concat())
}

fn table(title: &str, columns: &[&str], rows: &[Row]) -> String {
    if rows.is_empty() {
        return String::new();
    }
    let line = |cells: &[String]| format!("| {} |\n", cells.join(" | "));
    let head: Vec<String> = columns.iter().map(|column| (*column).to_owned()).collect();
    let rule: Vec<String> = columns.iter().map(|_| "---".to_owned()).collect();
    let body: String = rows.iter().map(|row| line(row)).collect();
    format!("\n## {title}\n\n{}{}{body}", line(&head), line(&rule))
}

fn metrics(registry: &Registry, domain: &str) -> Vec<Row> {
    let row = |entry: &Entry<MetricDef>| {
        let definition = Definition::from(entry);
        let def = &entry.def;
        vec![
            cell::name(&definition),
            cell::code(&def.unit),
            cell::instrument(def.instrument).to_owned(),
            cell::aggregation(def.annotations.pulsetrain.aggregation).to_owned(),
            cell::code(&def.prometheus_name()),
            cell::attributes(registry, &def.attributes),
            cell::sources(&definition),
        ]
    };
    registry
        .metrics
        .iter()
        .filter(|entry| entry.domain == domain)
        .map(row)
        .collect()
}

fn signals(registry: &Registry, domain: &str, kind: DefinitionKind) -> Vec<Row> {
    let row = |definition: Definition<'_>| {
        vec![
            cell::name(&definition),
            cell::attributes(registry, definition.attributes),
            cell::sources(&definition),
        ]
    };
    let definitions = registry.definitions().into_iter();
    definitions
        .filter(|definition| definition.kind == kind && definition.domain == domain)
        .map(row)
        .collect()
}

fn attributes(registry: &Registry, domain: &str) -> Vec<Row> {
    let row = |entry: &Entry<AttributeDef>| {
        let definition = Definition::from(entry);
        vec![
            cell::name(&definition),
            cell::kind(&entry.def.kind),
            cell::sources(&definition),
        ]
    };
    registry
        .attributes
        .iter()
        .filter(|entry| entry.domain == domain)
        .map(row)
        .collect()
}

fn entities(registry: &Registry, domain: &str) -> Vec<Row> {
    let row = |entry: &Entry<EntityDef>| {
        let definition = Definition::from(entry);
        vec![
            cell::name(&definition),
            cell::attributes(registry, &entry.def.identity),
            cell::attributes(registry, &entry.def.description),
        ]
    };
    registry
        .entities
        .iter()
        .filter(|entry| entry.domain == domain)
        .map(row)
        .collect()
}
