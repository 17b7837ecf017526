//! The Prometheus endpoint: the last value of every series, for a Prometheus that comes to fetch it.
//!
//! `sink` takes batches in, `ingest` walks their points into `store`; `server` answers a scrape with a page that `render`
//! writes from the store piece by piece, in the format that `accept` reads from the request. `names`, `labels` and `escape`
//! make names and labels, `family_names` knows which belong to one family, `extra` and `bridge` add families of other origin. `history` writes all
//! points into a file instead, `remote_write` sends them.

mod accept;
#[cfg(feature = "prometheus-bridge")]
mod bridge;
mod config;
mod escape;
mod extra;
mod family_names;
mod history;
mod ingest;
mod labels;
mod names;
mod points;
mod remote_write;
mod render;
mod scrapes;
mod server;
mod sink;
mod store;

#[cfg(feature = "prometheus-bridge")]
pub use bridge::RegistryBridge;
pub use config::{PrometheusConfig, Translation};
pub use extra::{ExtraFamilies, ExtraFamily, ExtraMetric, ExtraValue};
pub use history::{HistoryError, HistorySummary, OpenMetricsHistory, OpenMetricsSink};
pub use remote_write::RemoteWriteSink;
pub use server::PrometheusServer;
pub use sink::PrometheusSink;
pub use store::family::Kind as ExtraKind;
pub use store::{PrometheusCounts, PrometheusStore, Rejection};

#[cfg(test)]
mod tests;
