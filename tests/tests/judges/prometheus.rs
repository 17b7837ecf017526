//! The Prometheus endpoint, checked with a real Prometheus, promtool and the Collector's own Prometheus exporter.

mod agent;
mod day;
mod deliveries;
mod endpoint;
mod exemplars;
mod following;
mod names;
mod odd_labels;
mod odd_metrics;
mod otlp;
mod pages;
mod protocols;
mod samples;
mod scrape;
mod stalled;
