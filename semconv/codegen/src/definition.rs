//! The fields that all kinds of definitions share, so that rules and docs need not distinguish the kinds.

use serde_saphyr::Spanned;

use crate::grammar::{
    Annotations, AttributeDef, AttributeRef, EntityDef, EventDef, MetricDef, SignalLevel, SpanDef, Stability,
};
use crate::registry::{Entry, Registry};

/// The kinds of definitions; names are unique within a kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DefinitionKind {
    Attribute,
    Entity,
    Event,
    Metric,
    Span,
}

impl DefinitionKind {
    pub(crate) const ALL: [Self; 5] = [
        Self::Attribute,
        Self::Entity,
        Self::Event,
        Self::Metric,
        Self::Span,
    ];

    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Attribute => "attribute",
            Self::Entity => "entity",
            Self::Event => "event",
            Self::Metric => "metric",
            Self::Span => "span",
        }
    }
}

/// A definition of any kind.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Definition<'a> {
    pub(crate) kind: DefinitionKind,
    pub(crate) domain: &'a str,
    pub(crate) name: &'a Spanned<String>,
    pub(crate) brief: Option<&'a String>,
    pub(crate) note: Option<&'a String>,
    pub(crate) stability: Option<Stability>,
    /// The requirement level of the signal itself; `None` for an attribute, which has a level per reference.
    pub(crate) level: Option<SignalLevel>,
    pub(crate) attributes: &'a [AttributeRef],
    /// For an entity: the attributes that describe but do not identify it.
    pub(crate) description: &'a [AttributeRef],
    pub(crate) entities: &'a [String],
    pub(crate) annotations: &'a Annotations,
}

impl<'a> Definition<'a> {
    /// Returns all references to attributes and groups.
    pub(crate) fn references(&self) -> impl Iterator<Item = &'a AttributeRef> + use<'a> {
        self.attributes.iter().chain(self.description)
    }
}

impl Registry {
    /// Returns all definitions, grouped by kind.
    pub(crate) fn definitions(&self) -> Vec<Definition<'_>> {
        let mut definitions: Vec<Definition<'_>> = self.attributes.iter().map(Definition::from).collect();
        definitions.extend(self.entities.iter().map(Definition::from));
        definitions.extend(self.events.iter().map(Definition::from));
        definitions.extend(self.metrics.iter().map(Definition::from));
        definitions.extend(self.spans.iter().map(Definition::from));
        definitions
    }
}

impl<'a> From<&'a Entry<AttributeDef>> for Definition<'a> {
    fn from(Entry { domain, def }: &'a Entry<AttributeDef>) -> Self {
        Self {
            kind: DefinitionKind::Attribute,
            domain,
            name: &def.key,
            brief: def.brief.as_ref(),
            note: def.note.as_ref(),
            stability: def.stability,
            level: None,
            attributes: &[],
            description: &[],
            entities: &[],
            annotations: &def.annotations,
        }
    }
}

impl<'a> From<&'a Entry<EntityDef>> for Definition<'a> {
    fn from(Entry { domain, def }: &'a Entry<EntityDef>) -> Self {
        Self {
            kind: DefinitionKind::Entity,
            domain,
            name: &def.name,
            brief: def.brief.as_ref(),
            note: def.note.as_ref(),
            stability: def.stability,
            level: def.requirement_level,
            attributes: &def.identity,
            description: &def.description,
            entities: &[],
            annotations: &def.annotations,
        }
    }
}

/// Implements the accessors that events, metrics and spans share.
macro_rules! signals {
    ($($def:ident is $kind:ident),*) => {$(
        impl<'a> From<&'a Entry<$def>> for Definition<'a> {
            fn from(Entry { domain, def }: &'a Entry<$def>) -> Self {
                Self {
                    kind: DefinitionKind::$kind,
                    domain,
                    name: &def.name,
                    brief: def.brief.as_ref(),
                    note: def.note.as_ref(),
                    stability: def.stability,
                    level: def.requirement_level,
                    attributes: &def.attributes,
                    description: &[],
                    entities: &def.entity_associations,
                    annotations: &def.annotations,
                }
            }
        }
    )*};
}

signals!(EventDef is Event, MetricDef is Metric, SpanDef is Span);
