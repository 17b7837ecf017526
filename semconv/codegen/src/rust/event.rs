//! `generated/event.rs`: one constant per event.

use super::{HEADER, literal, table};
use crate::grammar::EventDef;
use crate::registry::Registry;

pub(super) fn module(registry: &Registry) -> String {
    let names: Vec<&str> = registry
        .events
        .iter()
        .map(|entry| entry.def.name.value.as_str())
        .collect();
    let constants: String = registry
        .events
        .iter()
        .map(|entry| constant(registry, &entry.def))
        .collect();
    format!(
        "//! Every event of the registry.\n\n{HEADER}\n\
         use super::attribute;\n\
         use crate::definition::{{AttributeUse, Event, Requirement, Stability, Upstream}};\n\n{constants}{}",
        table("Event", &names)
    )
}

fn constant(registry: &Registry, event: &EventDef) -> String {
    let brief = literal::brief(event.brief.as_ref());
    format!(
        "{}pub const {}: Event = Event {{\nname: {},\nbrief: {},\nattributes: {},\nstability: {},\nupstream: {},\n}};\n\n",
        literal::doc(&brief),
        literal::constant(&event.name.value),
        literal::string(&event.name.value),
        literal::string(&brief),
        literal::attributes(registry, &event.attributes),
        literal::stability(event.stability),
        literal::upstream(&event.annotations.pulsetrain.sources),
    )
}
