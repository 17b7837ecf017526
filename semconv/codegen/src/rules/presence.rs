//! What every entry must say of itself: brief, stability, how much it is asked for, and who fills it.

use super::Finding;
use crate::definition::{Definition, Kind};
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
    find(
        registry,
        bad,
        "has no `stability`; say `development` where in doubt",
    )
}

/// A signal, and each attribute that it names, says how much it is asked for.
pub(super) fn requirement_level(registry: &Registry) -> Vec<Finding<'_>> {
    let open =
        |reference: &AttributeRef| reference.attribute.is_some() && reference.requirement_level.is_none();
    let bad = |definition: &Definition<'_>| {
        definition.kind != Kind::Attribute
            && (definition.level.is_none() || definition.references().any(open))
    };
    find(
        registry,
        bad,
        "has no `requirement_level`, or one of its attributes has none",
    )
}

/// A metric, span or event says which system fills it, from which of its names.
pub(super) fn source(registry: &Registry) -> Vec<Finding<'_>> {
    let bad = |definition: &Definition<'_>| {
        let sources = &definition.annotations.pulsetrain.sources;
        let is_signal = matches!(definition.kind, Kind::Metric | Kind::Span | Kind::Event);
        is_signal && sources.is_empty() || sources.values().any(|names| names.is_empty())
    };
    find(
        registry,
        bad,
        "has no source; say in `annotations.pulsetrain.sources` which system fills it from which of its names",
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
