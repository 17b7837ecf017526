//! `collector-config/`: the target program of every file runs it with the telemetry of a simulated job.

mod files;
mod gateway;
mod host;
mod local;
mod metrics;
pub(crate) mod otelcol;
mod pulsetrain;
mod tls;
mod traces;

use crate::demo::world;
