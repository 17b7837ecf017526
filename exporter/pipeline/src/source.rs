//! A source: sends batches into the pipeline until its input ends or it is stopped.

use crate::{BoxFuture, CancellationToken, Ingress, Problem};

/// An origin of telemetry.
pub trait Source: Send + 'static {
    /// The name in messages and in telemetry: `surogate training.json`.
    fn name(&self) -> &str;

    /// Runs until the input ends or `stop` is raised, and sends every batch through `ingress`. `Err` names the input that
    /// could not be read.
    fn run(
        self: Box<Self>,
        ingress: Ingress,
        stop: CancellationToken,
    ) -> BoxFuture<'static, Result<(), Problem>>;
}
