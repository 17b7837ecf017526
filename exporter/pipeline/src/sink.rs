//! What a sink is: something that batches are delivered to, one at a time, in order.
//!
//! A sink says how a delivery went; it never waits, retries or counts. That is the worker's part (`retry`, `ledger`).

use std::{future::Future, pin::Pin, time::Duration};

use pulsetrain_otlp::Signals;

use crate::Batch;

/// A boxed future, so that sinks of different kinds stand in one list.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// How a delivery went.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Delivery {
    /// All items arrived.
    Delivered,
    /// The receiver took the batch but for `rejected` items, which are lost; zero is a warning. Never tried again
    /// (OTLP specification, "Partial Success").
    Partial {
        /// The items refused.
        rejected: u64,
        /// What the receiver said.
        message: String,
    },
    /// The receiver will never take this batch; it is lost.
    Refused {
        /// What the receiver said, with what to do where that is known.
        message: String,
    },
    /// The receiver does not support the batch's signal. It is lost, unless the receiver supports another signal
    /// ([`SinkCounts::unsupported`](crate::SinkCounts::unsupported)).
    Unsupported {
        /// The receiver's answer, with what to do where that is known.
        message: String,
    },
    /// The receiver may take the batch later.
    Retry {
        /// How long the receiver asked to wait.
        after: Option<Duration>,
        /// What went wrong, with what to do where that is known.
        message: String,
    },
}

/// A place that batches go to.
pub trait Sink: Send + 'static {
    /// The name in messages, in the ledger and in telemetry: `otlp http://collector:4318`, `file out.jsonl`.
    fn name(&self) -> &str;

    /// The signals that the sink accepts; read once, when it is added. Batches of other signals pass it by: its account does
    /// not count them.
    fn signals(&self) -> Signals {
        Signals::ALL
    }

    /// Delivers one batch and says how it went. Called again with the same batch after [`Delivery::Retry`].
    fn deliver<'a>(&'a mut self, batch: &'a Batch) -> BoxFuture<'a, Delivery>;

    /// Writes out what the sink still holds; called once, after the last batch. An error says what was lost and why.
    fn finish(&mut self) -> BoxFuture<'_, Result<(), String>> {
        Box::pin(std::future::ready(Ok(())))
    }
}
