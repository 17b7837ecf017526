//! The interface of a sink: something that batches are delivered to.
//!
//! A sink returns the outcome of one attempt; it never waits, retries, merges, splits or counts. The worker does that
//! (`worker`, `retry`, `ledger`).

use std::{future::Future, pin::Pin, time::Duration};

use pulsetrain_otlp::{Signal, Signals};

use crate::Batch;

/// A boxed future, so that sinks of different types fit into one list.
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
        /// The receiver's message.
        message: String,
    },
    /// The receiver will never accept this batch because of its contents; it is lost. A merged request is divided and sent
    /// again, so that the other batches in it are not lost too.
    Refused {
        /// The receiver's message, with a remedy if one is known.
        message: String,
    },
    /// The receiver accepts no batch from this sink: the credentials, the path or the method are wrong. The batch is lost,
    /// and so is every batch that was merged with it.
    Denied {
        /// The receiver's answer, with what to do where that is known.
        message: String,
    },
    /// The request is larger than the receiver accepts. It is divided and sent again, down to a single item, which is
    /// refused.
    TooLarge {
        /// The receiver's answer, with what to do where that is known.
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

    /// Returns another handle to the same receiver, for requests of its own. `None` (the default) for a sink that keeps
    /// something between two deliveries: its batches come one at a time, in order, each as it was accepted. A sink that can
    /// be forked receives batches of one signal merged, and several requests at the same time, as
    /// [`SinkTaskConfig`](crate::SinkTaskConfig) allows. [`finish`](Self::finish) is called on the original only.
    fn fork(&self) -> Option<Box<dyn Sink>> {
        None
    }

    /// The maximum size in bytes of a batch of this signal; a larger one is split at the borders of resources, scopes,
    /// metrics and items before it is delivered.
    fn max_request_bytes(&self, signal: Signal) -> usize {
        let _ = signal;
        usize::MAX
    }

    /// Delivers one batch and returns the outcome. Called again with the same batch after [`Delivery::Retry`]; of a sink
    /// that can be forked, with another handle or other batches merged into it.
    fn deliver<'a>(&'a mut self, batch: &'a Batch) -> BoxFuture<'a, Delivery>;

    /// Flushes the sink; called once, after the last batch. `Err` names the lost data and the cause.
    fn finish(&mut self) -> BoxFuture<'_, Result<(), String>> {
        Box::pin(std::future::ready(Ok(())))
    }
}
