//! Cells of a Markdown table.

use crate::definition::Definition;
use crate::grammar::{Aggregation, AttributeRef, AttributeType, Instrument, Member, RequirementLevel};
use crate::registry::Registry;

const BREAK: &str = "<br>";

/// Escapes text so that it cannot end its cell.
pub(super) fn text(text: &str) -> String {
    text.split_whitespace()
        .collect::<Vec<_>>()
        .join(" ")
        .replace('|', "\\|")
}

pub(super) fn code(name: &str) -> String {
    format!("`{}`", name.replace('|', "\\|"))
}

/// Returns the cell of a name: the name, and below it the brief.
pub(super) fn name(definition: &Definition<'_>) -> String {
    let mut lines = vec![code(&definition.name.value)];
    lines.extend(definition.brief.map(|brief| text(brief)));
    lines.extend(
        definition
            .annotations
            .pulsetrain
            .ratio
            .as_ref()
            .map(|ratio| format!("Ratio: {}.", text(ratio))),
    );
    if definition.annotations.pulsetrain.descriptive {
        lines.push("Describes the value: a series has one at a time.".to_owned());
    }
    lines.extend(definition.note.map(|note| text(note)));
    lines.join(BREAK)
}

/// Returns the source systems of a definition, each with its own names for it.
pub(super) fn sources(definition: &Definition<'_>) -> String {
    let line = |(system, names): (&String, &Vec<String>)| {
        let names: Vec<String> = names.iter().map(|name| code(name)).collect();
        format!("{system}: {}", names.join(", "))
    };
    definition
        .annotations
        .pulsetrain
        .sources
        .iter()
        .map(line)
        .collect::<Vec<_>>()
        .join(BREAK)
}

/// Returns the attributes with their requirement levels; a name without a level is recommended.
pub(super) fn attributes(registry: &Registry, references: &[AttributeRef]) -> String {
    let line = |(key, level): (&str, &RequirementLevel)| match level {
        RequirementLevel::Recommended => code(key),
        RequirementLevel::Required => format!("{} required", code(key)),
        RequirementLevel::OptIn => format!("{} opt-in", code(key)),
        RequirementLevel::ConditionallyRequired(condition) => format!("{} if {}", code(key), text(condition)),
    };
    let resolved = registry.resolve(references);
    let lines: Vec<String> = resolved
        .iter()
        .map(|reference| line((&reference.key, &reference.level)))
        .collect();
    lines.join(BREAK)
}

/// Returns the type of an attribute, with the values of an enum.
pub(super) fn kind(kind: &AttributeType) -> String {
    match kind {
        AttributeType::Enum { members } => members.iter().map(member).collect::<Vec<_>>().join(BREAK),
        AttributeType::Simple(simple) => simple.word().to_owned(),
    }
}

fn member(member: &Member) -> String {
    match &member.brief {
        Some(brief) => format!("{} {}", code(member.value()), text(brief)),
        None => code(member.value()),
    }
}

pub(super) fn instrument(instrument: Instrument) -> &'static str {
    match instrument {
        Instrument::Counter => "counter",
        Instrument::UpDownCounter => "up-down counter",
        Instrument::Gauge => "gauge",
        Instrument::Histogram => "histogram",
    }
}

pub(super) fn aggregation(aggregation: Option<Aggregation>) -> &'static str {
    match aggregation {
        Some(Aggregation::Sum) => "sum",
        Some(Aggregation::Average) => "average",
        Some(Aggregation::None) | None => "none",
    }
}
