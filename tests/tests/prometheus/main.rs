//! The Prometheus endpoint, judged by a real Prometheus, by promtool and by the Collector's own Prometheus exporter.

mod agent;
mod endpoint;
mod names;
mod otlp;
mod scrape;
