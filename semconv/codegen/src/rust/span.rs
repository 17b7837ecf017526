//! `generated/span.rs`: one constant per span.

use super::{HEADER, literal, table};
use crate::grammar::{SpanDef, SpanKind};
use crate::registry::Registry;

pub(super) fn module(registry: &Registry) -> String {
    let names: Vec<&str> = registry
        .spans
        .iter()
        .map(|entry| entry.def.name.value.as_str())
        .collect();
    let constants: String = registry
        .spans
        .iter()
        .map(|entry| constant(registry, &entry.def))
        .collect();
    format!(
        "//! Every span of the registry.\n\n{HEADER}\n\
         use super::attribute;\n\
         use crate::definition::{{AttributeUse, Requirement, Span, SpanKind, Stability, Upstream}};\n\n{constants}{}",
        table("Span", &names)
    )
}

fn constant(registry: &Registry, span: &SpanDef) -> String {
    let brief = literal::brief(span.brief.as_ref());
    format!(
        "{}pub const {}: Span = Span {{\nname: {},\nbrief: {},\nkind: {},\nattributes: {},\nstability: {},\nupstream: {},\n}};\n\n",
        literal::doc(&brief),
        literal::constant(&span.name.value),
        literal::string(&span.name.value),
        literal::string(&brief),
        kind(span.kind),
        literal::attributes(registry, &span.attributes),
        literal::stability(span.stability),
        literal::upstream(&span.annotations.pulsetrain.sources),
    )
}

fn kind(kind: SpanKind) -> &'static str {
    match kind {
        SpanKind::Internal => "SpanKind::Internal",
        SpanKind::Server => "SpanKind::Server",
        SpanKind::Client => "SpanKind::Client",
        SpanKind::Producer => "SpanKind::Producer",
        SpanKind::Consumer => "SpanKind::Consumer",
    }
}
