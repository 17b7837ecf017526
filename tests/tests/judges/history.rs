//! What a user does with a finished run: its history in a real Prometheus, by each way that leads there.

mod convert;
mod openmetrics;
mod otlp;
mod perfetto;
mod remote_write;
mod world;
