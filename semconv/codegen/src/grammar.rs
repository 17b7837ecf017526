//! The grammar of a registry file: OpenTelemetry Weaver's `definition/2`, as far as this registry uses it.
//!
//! Names carry their place in the file, for the error messages of the rules. A key that the grammar allows to be absent but
//! our rules do not (brief, stability, sources) is an `Option` here, so that the rule reports it and not the parser.

mod annotations;
mod attribute;

pub(crate) use annotations::{Aggregation, Annotations, Number};
pub(crate) use attribute::{
    AttributeDef, AttributeRef, AttributeType, GroupDef, Member, RequirementLevel, SimpleType,
};
use pulsetrain_semconv::prometheus_name;
use serde::Deserialize;
use serde_saphyr::Spanned;

/// The file that describes a registry.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Manifest {
    pub(crate) schema_url: String,
    #[expect(dead_code, reason = "for Weaver")]
    description: String,
    #[expect(dead_code, reason = "for Weaver")]
    stability: Stability,
}

/// One YAML file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct File {
    #[expect(dead_code, reason = "checked by being parsed")]
    file_format: Format,
    #[serde(default)]
    pub(crate) attributes: Vec<AttributeDef>,
    #[serde(default)]
    pub(crate) attribute_groups: Vec<GroupDef>,
    #[serde(default)]
    pub(crate) entities: Vec<EntityDef>,
    #[serde(default)]
    pub(crate) events: Vec<EventDef>,
    #[serde(default)]
    pub(crate) metrics: Vec<MetricDef>,
    #[serde(default)]
    pub(crate) spans: Vec<SpanDef>,
}

#[derive(Debug, Deserialize)]
pub(crate) enum Format {
    #[serde(rename = "definition/2")]
    DefinitionV2,
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
    #[expect(dead_code, reason = "the name is the type; Weaver requires the note")]
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

    /// The type of the values, which a rule requires.
    pub(crate) fn number(&self) -> Number {
        let annotated = self.annotations.code_generation.metric_value_type;
        annotated.unwrap_or(Number::Double)
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
