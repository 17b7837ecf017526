//! `generated/span.rs`: one row per span.

use super::{HEADER, literal, row};
use crate::grammar::SpanDef;
use crate::registry::Registry;

pub(super) fn module(registry: &Registry) -> String {
    let rows = registry.spans.iter().map(|entry| span(registry, &entry.def));
    format!(
        "//! Every span of the registry.\n\n{HEADER}\nuse crate::table::spans;\n\n{}",
        row::table("spans", rows)
    )
}

fn span(registry: &Registry, span: &SpanDef) -> String {
    let name = &span.name.value;
    let attributes = literal::attribute_uses(registry, &span.attributes);
    let lines = [
        format!(
            "name: {}, kind: {:?}, stability: {}",
            literal::string(name),
            span.kind,
            literal::stability(span.stability)
        ),
        literal::brief(span.brief.as_ref()),
        row::list(0, "attributes: ", &attributes),
        literal::upstream(&span.annotations.pulsetrain.sources),
    ];
    row::row(name, &lines)
}
