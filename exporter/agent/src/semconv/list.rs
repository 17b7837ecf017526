//! The names of the registry, one per line.

use std::fmt::Write;

use pulsetrain_semconv::{attribute, event, metric, span};

use crate::cli::DefinitionKind;

/// Formats one name per line: kind, name, unit and instrument of a metric, brief.
pub(super) fn list(kind: Option<DefinitionKind>) -> String {
    let wanted = |candidate| kind.is_none_or(|kind| kind == candidate);
    let mut lines: Vec<[String; 4]> = Vec::new();
    if wanted(DefinitionKind::Metric) {
        lines.extend(metric::ALL.iter().map(|metric| {
            let kind = format!("{} {}", metric.instrument.as_str(), metric.unit);
            ["metric".into(), metric.name.into(), kind, metric.brief.into()]
        }));
    }
    if wanted(DefinitionKind::Attribute) {
        lines.extend(
            attribute::ALL
                .iter()
                .map(|it| line("attribute", it.name, it.brief)),
        );
    }
    if wanted(DefinitionKind::Span) {
        lines.extend(span::ALL.iter().map(|it| line("span", it.name, it.brief)));
    }
    if wanted(DefinitionKind::Event) {
        lines.extend(event::ALL.iter().map(|it| line("event", it.name, it.brief)));
    }
    aligned(&lines)
}

fn line(kind: &str, name: &str, brief: &str) -> [String; 4] {
    [kind.into(), name.into(), String::new(), brief.into()]
}

fn aligned(lines: &[[String; 4]]) -> String {
    let width = |column: usize| {
        lines
            .iter()
            .map(|line| line[column].len())
            .max()
            .unwrap_or_default()
    };
    let (kinds, names, units) = (width(0), width(1), width(2));
    lines
        .iter()
        .fold(String::new(), |mut text, [kind, name, unit, brief]| {
            let _ = writeln!(text, "{kind:kinds$}  {name:names$}  {unit:units$}  {brief}");
            text
        })
}
