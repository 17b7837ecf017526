//! The Prometheus endpoint: exposes the last value of each series to a scraper.
//!
//! `sink` accepts batches, and `ingest` writes their points to `store`. `routes` answers a scrape with pieces
//! that `render` writes from the store, in the format that `accept` negotiates, and `compress` compresses. `names`, `labels` and
//! `escape` build names and labels; `family_names` lists the sample names of a family. `extra` and `bridge`
//! add families of other origin. `history` writes all points as text, and `remote_write` as requests.

mod accept;
#[cfg(feature = "prometheus-bridge")]
mod bridge;
mod compress;
mod config;
mod error;
mod escape;
mod extra;
mod family_names;
mod go_float;
mod history;
mod ingest;
mod labels;
mod names;
mod points;
mod remote_write;
mod render;
mod routes;
mod scrapes;
mod sink;
mod store;

#[cfg(feature = "prometheus-bridge")]
pub use bridge::RegistryBridge;
pub use config::{PrometheusConfig, Translation};
pub use error::PrometheusError;
pub use extra::{ExtraFamilies, ExtraFamily, ExtraMetric, ExtraValue};
pub use history::{HistoryError, HistorySummary, OpenMetricsHistory};
pub use remote_write::{RemoteWriteBody, RemoteWriteEncoder};
pub use sink::PrometheusSink;
pub use store::family::FamilyKind as ExtraKind;
pub use store::{PrometheusCounts, PrometheusStore, Rejection};

#[cfg(test)]
mod tests;
