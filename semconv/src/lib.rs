//! The semantic conventions of Pulsetrain: the names, descriptions and units of the metrics, attributes, spans and events of
//! model training.
//!
//! The vocabulary is in `semconv/registry/*.yaml`; `pulsetrain-codegen` checks it and generates [`metric`], [`attribute`],
//! [`span`] and [`event`] from it. No other place in the workspace spells these names.

mod definition;
#[cfg(feature = "registry")]
mod generated;
#[cfg(feature = "instruments")]
mod instrument;
mod prometheus_name;
#[cfg(feature = "registry")]
mod table;

pub use definition::{
    Attribute, AttributeKind, AttributeUse, Event, Instrument, Metric, Number, Requirement, Span, SpanKind,
    Stability, Upstream,
};
#[cfg(feature = "instruments")]
pub use generated::instruments;
#[cfg(feature = "registry")]
pub use generated::{SCHEMA_URL, attribute, event, metric, span};
pub use prometheus_name::{prometheus_label, prometheus_name};
