//! The live page: what runs, ranks and GPUs reported, kept in memory within bounds and shown in a browser.
//!
//! `sink` accepts batches and `ingest` walks them into the `history`: series with downsampled points (`series`), the spans of the
//! last steps (`steps`), verdicts and other events (`events`). `site` answers requests from it, as JSON (`snapshot`) and
//! as server-sent events (`feed`). `layout` is the one table of the metrics that the page shows by name, `asset` holds the page.

mod asset;
mod config;
mod curve;
mod events;
mod feed;
mod gpus;
mod history;
mod ingest;
mod json;
mod layout;
mod metrics;
mod rejected;
mod run;
mod series;
mod sink;
pub(crate) mod site;
mod snapshot;
mod steps;
mod store;
mod telemetry;
mod text;

pub use config::PageConfig;
pub use rejected::{PageRejection, PageRejections};
pub use sink::PageSink;
pub use store::{PageCounts, PageStore};
pub use telemetry::{PageTelemetry, SinkState};
pub use text::TextStyle;

#[cfg(test)]
mod tests;
