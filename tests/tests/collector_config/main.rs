//! `collector-config/`: every file is run by the program that reads it, with the telemetry of a simulated job through it.

mod files;
mod gateway;
mod host;
mod local;
mod metrics;
mod otelcol;
mod pulsetrain;
mod tls;
mod traces;
// A demo, and its series and points by metric.
#[path = "../demo/world.rs"]
mod world;
