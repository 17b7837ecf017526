//! The Prometheus endpoint, judged by a real Prometheus, by promtool and by the Collector's own Prometheus exporter.

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
mod samples;
mod scrape;
mod stalled;
