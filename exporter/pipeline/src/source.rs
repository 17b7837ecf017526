//! A source: sends batches into the pipeline until its input ends or it is stopped.

use crate::{BoxFuture, Door, Stop};

/// A place that telemetry comes from.
pub trait Source: Send + 'static {
    /// The name in messages and in telemetry: `surogate training.json`.
    fn name(&self) -> &str;

    /// Runs until the input ends or `stop` is raised, and sends every batch through `door`. `Err` names the input that could not
    /// be read, and what to do.
    fn run(self: Box<Self>, door: Door, stop: Stop) -> BoxFuture<'static, Result<(), String>>;
}
