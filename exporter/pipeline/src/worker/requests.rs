//! The requests in flight, and the handles of the sink that carry them.

use std::{
    future::poll_fn,
    mem,
    sync::Arc,
    task::{Context, Poll},
};

use pulsetrain_otlp::Signal;
use tokio::sync::Mutex;

use super::{group::Group, staging::InFlight};
use crate::{BoxFuture, Delivery, Problem, Sink, panic::caught};

/// A handle of a sink, locked by the attempt that uses it.
type Handle = Arc<Mutex<Box<dyn Sink>>>;

/// The requests in flight, one for each handle at most.
pub(super) struct Requests {
    original: Handle,
    idle: Vec<Handle>,
    in_flight: Vec<Request>,
    /// The number of the next request.
    next_number: u64,
}

/// One attempt to deliver a group.
struct Request {
    group: Group,
    handle: Handle,
    number: u64,
    is_probe: bool,
    attempt: BoxFuture<'static, Result<Delivery, Problem>>,
}

/// An attempt that has ended.
pub(super) struct Outcome {
    pub(super) group: Group,
    /// The number of the request, in the order of their starts.
    pub(super) number: u64,
    /// Whether it was the only request that a failing sink was sent.
    pub(super) is_probe: bool,
    /// The outcome, or the problem of a panic.
    pub(super) delivery: Result<Delivery, Problem>,
}

impl Requests {
    /// Creates the requests for this sink and its forks.
    pub(super) fn new(sink: Box<dyn Sink>, forks: Vec<Box<dyn Sink>>) -> Self {
        let original = handle(sink);
        let mut idle: Vec<Handle> = forks.into_iter().map(handle).collect();
        // The handles are a stack, so that a sink with a low load uses one connection.
        idle.push(Arc::clone(&original));
        Self {
            original,
            idle,
            in_flight: Vec::new(),
            next_number: 0,
        }
    }

    /// Returns the number of the next request.
    pub(super) fn next_number(&self) -> u64 {
        self.next_number
    }

    /// Returns whether a request can start.
    pub(super) fn can_start(&self) -> bool {
        !self.idle.is_empty()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.in_flight.is_empty()
    }

    /// Returns whether a probe of a failing sink is in flight.
    pub(super) fn has_probe(&self) -> bool {
        self.in_flight.iter().any(|request| request.is_probe)
    }

    /// Returns the number of requests by signal.
    pub(super) fn by_signal(&self) -> InFlight {
        let mut counts = InFlight::default();
        for request in &self.in_flight {
            counts[request.group.signal() as usize] += 1;
        }
        counts
    }

    /// Starts a request on an idle handle.
    ///
    /// # Errors
    /// Returns the group if no handle is idle.
    pub(super) fn start(&mut self, group: Group, is_probe: bool) -> Result<(), Group> {
        let Some(handle) = self.idle.pop() else {
            return Err(group);
        };
        let (payload, sink) = (group.payload(), Arc::clone(&handle));
        let attempt = async move {
            let mut sink = sink.lock_owned().await;
            caught(|| sink.deliver(&payload)).await
        };
        let number = self.next_number;
        self.next_number += 1;
        self.in_flight.push(Request {
            group,
            handle,
            number,
            is_probe,
            attempt: Box::pin(attempt),
        });
        Ok(())
    }

    /// Waits for the end of a request; stays pending without a request. Cancel-safe.
    pub(super) async fn outcome(&mut self) -> Outcome {
        poll_fn(|context| self.poll_outcome(context)).await
    }

    /// Abandons all requests and returns their groups.
    pub(super) fn abandon(&mut self) -> Vec<Group> {
        let requests = mem::take(&mut self.in_flight).into_iter();
        requests
            .map(
                |Request {
                     group,
                     handle,
                     attempt,
                     ..
                 }| {
                    drop(attempt);
                    self.idle.push(handle);
                    group
                },
            )
            .collect()
    }

    /// Flushes the sink; an error is its message, or the message of a panic.
    pub(super) async fn finish(&mut self) -> Result<Result<(), Problem>, Problem> {
        let mut sink = self.original.lock().await;
        caught(|| sink.finish()).await
    }

    fn poll_outcome(&mut self, context: &mut Context<'_>) -> Poll<Outcome> {
        for place in 0..self.in_flight.len() {
            if let Poll::Ready(delivery) = self.in_flight[place].attempt.as_mut().poll(context) {
                let Request {
                    group,
                    handle,
                    number,
                    is_probe,
                    attempt,
                } = self.in_flight.remove(place);
                // The drop releases the lock on the handle, and the share of the ack.
                drop(attempt);
                self.idle.push(handle);
                return Poll::Ready(Outcome {
                    group,
                    number,
                    is_probe,
                    delivery,
                });
            }
        }
        Poll::Pending
    }
}

fn handle(sink: Box<dyn Sink>) -> Handle {
    Arc::new(Mutex::new(sink))
}

/// Returns the forks that `concurrency` allows in addition to the sink itself, or `None` if the sink cannot be forked.
pub(super) fn forks(sink: &dyn Sink, concurrency: usize) -> Option<Vec<Box<dyn Sink>>> {
    let first = sink.fork()?;
    let further = (2..concurrency).map_while(|_| sink.fork());
    let all = (concurrency > 1).then_some(first).into_iter().chain(further);
    Some(all.collect())
}

impl std::fmt::Debug for Requests {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let signals: Vec<Signal> = self
            .in_flight
            .iter()
            .map(|request| request.group.signal())
            .collect();
        f.debug_struct("Requests")
            .field("in_flight", &signals)
            .finish_non_exhaustive()
    }
}
