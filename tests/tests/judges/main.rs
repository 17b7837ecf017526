//! Checks of our output with third-party programs: Prometheus, VictoriaMetrics, the Collector, Jaeger, Grafana and SDKs of OpenTelemetry.
//! `proofs` tests the programs themselves.

mod collector;
mod collector_config;
mod demo;
mod grafana;
mod history;
mod prometheus;
mod proofs;
mod python_sdk;
mod rust_sdk;
mod signals;
mod trace_backends;
mod victoria_metrics;
