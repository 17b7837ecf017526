//! What a source is: something that puts batches through the door until it has no more or is told to stop.

use crate::{BoxFuture, Door, Stop};

/// A place that telemetry comes from.
pub trait Source: Send + 'static {
    /// The name in messages and in telemetry: `surogate training.json`.
    fn name(&self) -> &str;

    /// Runs until the input ends or `stop` is raised; every batch goes through `door`. An error says what could not be read
    /// and what to do.
    fn run(self: Box<Self>, door: Door, stop: Stop) -> BoxFuture<'static, Result<(), String>>;
}
