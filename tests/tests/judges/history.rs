//! The history of a finished run in a real Prometheus, through each supported path.

mod convert;
mod openmetrics;
mod otlp;
mod perfetto;
mod remote_write;
mod world;
