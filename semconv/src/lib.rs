//! The semantic conventions of Pulsetrain: what a metric, an attribute, a span or an event of model training is called,
//! what it means and in which unit it is.
//!
//! The vocabulary lives in `semconv/registry/*.yaml`; `pulsetrain-codegen` checks it and writes [`metric`], [`attribute`],
//! [`span`] and [`event`] from it. No other place in the workspace spells such a name.

mod definition;
#[cfg(feature = "registry")]
mod generated;
mod prometheus_name;

pub use definition::{
    Attribute, AttributeKind, AttributeUse, Event, Instrument, Metric, Number, Requirement, Span, SpanKind,
    Stability, Upstream,
};
#[cfg(feature = "instruments")]
pub use generated::instruments;
#[cfg(feature = "registry")]
pub use generated::{SCHEMA_URL, attribute, event, metric, span};
pub use prometheus_name::{prometheus_label, prometheus_name};
