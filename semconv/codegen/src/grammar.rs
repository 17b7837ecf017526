//! The grammar of a registry file: OpenTelemetry Weaver's `definition/2`, as far as this registry uses it.
//!
//! Names carry their place in the file, so that a broken rule can say where. What the grammar allows to be absent but
//! our rules do not (brief, stability, sources) is an `Option` here, so that the rule speaks and not the parser.

use std::collections::BTreeMap;

use pulsetrain_semconv::prometheus_name;
use serde::Deserialize;
use serde_saphyr::Spanned;

/// One YAML file.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct File {
    pub(crate) file_format: String,
    pub(crate) attributes: Vec<AttributeDef>,
    pub(crate) attribute_groups: Vec<GroupDef>,
    pub(crate) entities: Vec<EntityDef>,
    pub(crate) events: Vec<EventDef>,
    pub(crate) metrics: Vec<MetricDef>,
    pub(crate) spans: Vec<SpanDef>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct AttributeDef {
    pub(crate) key: Spanned<String>,
    #[serde(rename = "type")]
    pub(crate) kind: AttributeType,
    pub(crate) brief: Option<String>,
    pub(crate) note: Option<String>,
    pub(crate) stability: Option<Stability>,
    #[serde(default)]
    #[expect(dead_code, reason = "for readers of the YAML; part of the grammar")]
    examples: serde::de::IgnoredAny,
    #[serde(default)]
    pub(crate) annotations: Annotations,
}

#[derive(Debug, Deserialize)]
#[serde(untagged)]
pub(crate) enum AttributeType {
    Simple(SimpleType),
    Enum { members: Vec<Member> },
}

#[derive(Clone, Copy, Debug, Deserialize)]
pub(crate) enum SimpleType {
    #[serde(rename = "string")]
    String,
    #[serde(rename = "int")]
    Int,
    #[serde(rename = "double")]
    Double,
    #[serde(rename = "boolean")]
    Boolean,
    #[serde(rename = "string[]")]
    Strings,
    #[serde(rename = "int[]")]
    Ints,
    #[serde(rename = "double[]")]
    Doubles,
    #[serde(rename = "boolean[]")]
    Booleans,
    #[serde(rename = "any")]
    Any,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Member {
    pub(crate) id: String,
    pub(crate) value: Option<String>,
    pub(crate) brief: Option<String>,
    pub(crate) stability: Option<Stability>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct GroupDef {
    pub(crate) id: Spanned<String>,
    #[expect(
        dead_code,
        reason = "always `internal`: groups are a way to write, not a thing to publish"
    )]
    visibility: Visibility,
    #[serde(default)]
    pub(crate) attributes: Vec<AttributeRef>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Visibility {
    Internal,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct AttributeRef {
    #[serde(rename = "ref")]
    pub(crate) attribute: Option<Spanned<String>>,
    #[serde(rename = "ref_group")]
    pub(crate) group: Option<Spanned<String>>,
    pub(crate) requirement_level: Option<RequirementLevel>,
    pub(crate) note: Option<String>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum RequirementLevel {
    Required,
    Recommended,
    OptIn,
    ConditionallyRequired(String),
}

#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum SignalLevel {
    Recommended,
    OptIn,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct EntityDef {
    #[serde(rename = "type")]
    pub(crate) name: Spanned<String>,
    pub(crate) brief: Option<String>,
    pub(crate) note: Option<String>,
    pub(crate) stability: Option<Stability>,
    pub(crate) requirement_level: Option<SignalLevel>,
    #[serde(default)]
    pub(crate) identity: Vec<AttributeRef>,
    #[serde(default)]
    pub(crate) description: Vec<AttributeRef>,
    #[serde(default)]
    pub(crate) annotations: Annotations,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct MetricDef {
    pub(crate) name: Spanned<String>,
    pub(crate) brief: Option<String>,
    pub(crate) note: Option<String>,
    pub(crate) unit: String,
    pub(crate) instrument: Instrument,
    pub(crate) stability: Option<Stability>,
    pub(crate) requirement_level: Option<SignalLevel>,
    #[serde(default)]
    pub(crate) attributes: Vec<AttributeRef>,
    #[serde(default)]
    pub(crate) entity_associations: Vec<String>,
    #[serde(default)]
    pub(crate) annotations: Annotations,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct SpanDef {
    #[serde(rename = "type")]
    pub(crate) name: Spanned<String>,
    pub(crate) kind: SpanKind,
    #[serde(rename = "name")]
    #[expect(dead_code, reason = "the name is the type; Weaver wants it said in words")]
    words: SpanName,
    pub(crate) brief: Option<String>,
    pub(crate) note: Option<String>,
    pub(crate) stability: Option<Stability>,
    pub(crate) requirement_level: Option<SignalLevel>,
    #[serde(default)]
    pub(crate) attributes: Vec<AttributeRef>,
    #[serde(default)]
    pub(crate) entity_associations: Vec<String>,
    #[serde(default)]
    pub(crate) annotations: Annotations,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct SpanName {
    #[expect(dead_code, reason = "prose")]
    note: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct EventDef {
    pub(crate) name: Spanned<String>,
    pub(crate) brief: Option<String>,
    pub(crate) note: Option<String>,
    pub(crate) stability: Option<Stability>,
    pub(crate) requirement_level: Option<SignalLevel>,
    #[serde(default)]
    pub(crate) attributes: Vec<AttributeRef>,
    #[serde(default)]
    pub(crate) entity_associations: Vec<String>,
    #[serde(default)]
    pub(crate) annotations: Annotations,
}

/// What Weaver leaves to us; a key that is not here is a mistake.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Annotations {
    pub(crate) code_generation: CodeGeneration,
    pub(crate) naming_conventions: NamingConventions,
    pub(crate) pulsetrain: Pulsetrain,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct CodeGeneration {
    pub(crate) metric_value_type: Option<Number>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct NamingConventions {
    /// Rules that this entry may break, because its name comes from elsewhere.
    pub(crate) policy_exceptions: Vec<String>,
}

/// Our own annotations.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Pulsetrain {
    /// Who fills the entry, from which of their names.
    pub(crate) sources: BTreeMap<String, Vec<String>>,
    /// The name of a histogram's set of bounds.
    pub(crate) buckets: Option<String>,
    /// Of a metric in `1`: what is divided by what.
    pub(crate) ratio: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Number {
    Int,
    Double,
}

#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Instrument {
    Counter,
    UpDownCounter,
    Gauge,
    Histogram,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum SpanKind {
    Internal,
    Server,
    Client,
    Producer,
    Consumer,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Stability {
    Development,
    ReleaseCandidate,
    Stable,
}

impl MetricDef {
    /// The family's name in Prometheus.
    pub(crate) fn prometheus_name(&self) -> String {
        prometheus_name(&self.name.value, &self.unit, self.instrument.into())
    }
}

impl From<Instrument> for pulsetrain_semconv::Instrument {
    fn from(instrument: Instrument) -> Self {
        match instrument {
            Instrument::Counter => Self::Counter,
            Instrument::UpDownCounter => Self::UpDownCounter,
            Instrument::Gauge => Self::Gauge,
            Instrument::Histogram => Self::Histogram,
        }
    }
}
