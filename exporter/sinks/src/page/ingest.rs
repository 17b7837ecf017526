//! From a batch to the history: whose it is (`origin`), then points, spans or log records.

mod logs;
mod metrics;
mod origin;
mod spans;

pub(super) use self::{logs::logs, metrics::metrics, spans::spans};
