//! Adds a batch to the history: finds its run and rank (`origin`), then adds points, spans or log records.

mod logs;
mod metrics;
mod origin;
mod spans;

pub(super) use self::{logs::logs, metrics::metrics, spans::spans};
