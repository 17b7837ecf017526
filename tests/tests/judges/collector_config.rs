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

use crate::demo::world;
