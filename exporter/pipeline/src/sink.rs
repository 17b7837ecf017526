//! The interface of a sink, to which batches are delivered.
//!
//! A sink returns the outcome of one attempt; it never waits, retries, merges, splits or counts. The worker does that
//! (`worker`, `retry`, `ledger`).

use std::{future::Future, pin::Pin, time::Duration};

use pulsetrain_otlp::{Signal, Signals};

use crate::{Batch, Problem};

/// A boxed future, so that a list can hold sinks of different types.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// The outcome of a delivery.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Delivery {
    /// The receiver accepted all items.
    Delivered,
    /// The receiver accepted the batch except for `rejected` items, which are lost; zero is a warning. Never retried
    /// (OTLP specification, "Partial Success").
    Partial {
        /// The number of rejected items.
        rejected: u64,
        /// The receiver's message; empty if it gave none.
        problem: Problem,
    },
    /// The receiver will never accept this batch because of its contents; it is lost. A merged request is divided and
    /// sent again, so that the other batches in it are not lost too.
    Refused(Problem),
    /// The receiver refuses the request, and its answer does not blame the contents: the credentials or the path are wrong,
    /// or the receiver fails. The batch waits like after [`Retry`](Self::Retry) while the receiver accepts no other request.
    /// Once it does, the batch is sent again, and lost if it is refused again.
    Denied(Problem),
    /// The request is larger than the receiver accepts. It is sent again in smaller requests, down to a single item, which
    /// is rejected; later requests are smaller, too.
    TooLarge(Problem),
    /// The receiver does not support the batch's signal. The batch waits like after [`Denied`](Self::Denied) while the
    /// receiver accepts no request of another signal; then it is dropped, which is not a loss
    /// ([`SinkCounts::unsupported`](crate::SinkCounts::unsupported)).
    Unsupported(Problem),
    /// The receiver may accept the batch later.
    Retry {
        /// The wait that the receiver requested.
        after: Option<Duration>,
        /// The reason.
        problem: Problem,
    },
    /// The receiver did not answer: there is no connection, or it broke. The batch is sent again, like after
    /// [`Retry`](Self::Retry) without a requested wait.
    Unreachable(Problem),
}

/// A destination of batches.
pub trait Sink: Send + 'static {
    /// The name in messages, in the ledger and in telemetry: `otlp http://collector:4318`, `file out.jsonl`.
    fn name(&self) -> &str;

    /// Returns the signals that the sink accepts; called once, when the sink is added. Batches of other signals bypass
    /// the sink, and its account does not count them.
    fn signals(&self) -> Signals {
        Signals::ALL
    }

    /// Returns another handle to the same receiver, for separate requests. Returns `None` (the default) for a sink that
    /// keeps state between two deliveries: its batches are delivered one at a time, in order, unmerged. A sink that can
    /// be forked receives merged batches of one signal, and several requests at the same time, as
    /// [`SinkTaskConfig`](crate::SinkTaskConfig) allows. [`finish`](Self::finish) is called on the original only.
    fn fork(&self) -> Option<Box<dyn Sink>> {
        None
    }

    /// Returns the maximum size in bytes of a batch of this signal. A larger one is split at the borders of resources,
    /// scopes, metrics and items before it is delivered.
    fn max_request_bytes(&self, signal: Signal) -> usize {
        let _ = signal;
        usize::MAX
    }

    /// Delivers one batch and returns the outcome. After [`Delivery::Retry`] or [`Delivery::Unreachable`], it is called again with the same batch; for
    /// a sink that can be forked, possibly on another handle or with other batches merged into it.
    fn deliver<'a>(&'a mut self, batch: &'a Batch) -> BoxFuture<'a, Delivery>;

    /// Flushes the sink; called once, after the last batch. `Err` names the lost data and the cause.
    fn finish(&mut self) -> BoxFuture<'_, Result<(), Problem>> {
        Box::pin(std::future::ready(Ok(())))
    }
}
