//! The Prometheus endpoint: the last value of every series, for a Prometheus that comes to fetch it.
//!
//! `sink` takes batches in, `ingest` walks their points into `store`; `server` answers a scrape with a page that `render`
//! writes from the store piece by piece, in the format that `accept` reads from the request. `names`, `labels` and `escape`
//! make names and labels, `extra` and `bridge` add families of other origin.

mod accept;
mod attribute_text;
#[cfg(feature = "prometheus-bridge")]
mod bridge;
mod config;
mod escape;
mod extra;
mod ingest;
mod labels;
mod names;
mod points;
mod render;
mod server;
mod sink;
mod store;

#[cfg(feature = "prometheus-bridge")]
pub use bridge::RegistryBridge;
pub use config::{PrometheusConfig, Translation};
pub use extra::{ExtraFamilies, ExtraFamily, ExtraMetric, ExtraValue};
pub use server::PrometheusServer;
pub use sink::PrometheusSink;
pub use store::family::Kind as ExtraKind;
pub use store::{PrometheusCounts, PrometheusStore, Refusal};

#[cfg(test)]
mod tests;
