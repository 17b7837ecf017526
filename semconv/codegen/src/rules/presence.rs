//! Keys that every entry must have: brief, stability, requirement level and sources.

use super::Finding;
use crate::definition::{Definition, DefinitionKind};
use crate::grammar::AttributeRef;
use crate::registry::Registry;

/// A brief is one sentence.
pub(super) fn brief(registry: &Registry) -> Vec<Finding<'_>> {
    let bad =
        |definition: &Definition<'_>| !definition.brief.is_some_and(|brief| brief.trim().ends_with('.'));
    find(
        registry,
        bad,
        "has no `brief`: one sentence that ends with a full stop",
    )
}

/// A stability is given.
pub(super) fn stability(registry: &Registry) -> Vec<Finding<'_>> {
    let bad = |definition: &Definition<'_>| definition.stability.is_none();
    find(registry, bad, "has no `stability`; use `development` if in doubt")
}

/// A signal, and each of its attributes, has a requirement level.
pub(super) fn requirement_level(registry: &Registry) -> Vec<Finding<'_>> {
    let open =
        |reference: &AttributeRef| reference.attribute.is_some() && reference.requirement_level.is_none();
    let bad = |definition: &Definition<'_>| {
        definition.kind != DefinitionKind::Attribute
            && (definition.level.is_none() || definition.references().any(open))
    };
    find(
        registry,
        bad,
        "has no `requirement_level`, or one of its attributes has none",
    )
}

/// A metric, span or event names the systems that fill it and their fields.
pub(super) fn source(registry: &Registry) -> Vec<Finding<'_>> {
    let bad = |definition: &Definition<'_>| {
        let sources = &definition.annotations.pulsetrain.sources;
        let is_signal = matches!(
            definition.kind,
            DefinitionKind::Metric | DefinitionKind::Span | DefinitionKind::Event
        );
        is_signal && sources.is_empty() || sources.values().any(|names| names.is_empty())
    };
    find(
        registry,
        bad,
        "has no source; name in `annotations.pulsetrain.sources` the system that fills it and its fields",
    )
}

fn find<'a>(
    registry: &'a Registry,
    bad: impl Fn(&Definition<'a>) -> bool,
    message: &str,
) -> Vec<Finding<'a>> {
    let definitions = registry.definitions().into_iter();
    definitions
        .filter(bad)
        .map(|definition| Finding::new(definition, message.to_owned()))
        .collect()
}
