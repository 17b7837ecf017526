//! The live page: the history of runs, ranks and GPUs, in bounded memory, for a browser.
//!
//! `sink` accepts batches and `ingest` adds them to the `history`: downsampled series (`series`), the spans
//! of the last steps (`steps`), verdicts and other events (`events`). `site` serves the history as JSON
//! (`snapshot`) and as server-sent events (`feed`). `layout` is the table of metrics that the page names;
//! `asset` holds the page's files.

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
mod site;
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
