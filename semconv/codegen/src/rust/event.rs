//! `generated/event.rs`: one row per event.

use super::{HEADER, literal, row};
use crate::grammar::EventDef;
use crate::registry::Registry;

pub(super) fn module(registry: &Registry) -> String {
    let rows = registry.events.iter().map(|entry| event(registry, &entry.def));
    format!(
        "//! Every event of the registry.\n\n{HEADER}\nuse crate::table::events;\n\n{}",
        row::table("events", rows)
    )
}

fn event(registry: &Registry, event: &EventDef) -> String {
    let name = &event.name.value;
    let attributes = literal::attribute_uses(registry, &event.attributes);
    let lines = [
        format!(
            "name: {}, stability: {}",
            literal::string(name),
            literal::stability(event.stability)
        ),
        literal::brief(event.brief.as_ref()),
        row::list(0, "attributes: ", &attributes),
        literal::upstream(&event.annotations.pulsetrain.sources),
    ];
    row::row(name, &lines)
}
