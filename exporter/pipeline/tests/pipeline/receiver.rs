//! A sink that can be forked, and the receiver that all forks share, which records requests, times and answers.

use std::{
    panic::resume_unwind,
    sync::{Arc, Mutex, MutexGuard},
    time::Duration,
};

use pulsetrain_otlp::{
    Signal,
    wire::{Reader, WireValue},
    write::Buffer,
};
use pulsetrain_pipeline::{
    Batch, BoxFuture, Delivery, Sink,
    clock::{self, Instant},
};
use tokio::time::sleep;

/// The answer of a receiver to a request with these items; an `Err` panics in the sink.
type Answer = Box<dyn FnMut(&Request) -> Result<Delivery, &'static str> + Send>;

/// A receiver; clones share it.
#[derive(Clone)]
pub(crate) struct Receiver(Arc<Mutex<State>>);

struct State {
    latency: Duration,
    answer: Answer,
    requests: Vec<Request>,
    in_flight: Vec<Signal>,
    most_in_flight: [usize; 3],
}

/// One request.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    pub(crate) signal: Signal,
    /// The numbers of the items.
    pub(crate) items: Vec<u32>,
    pub(crate) bytes: usize,
    pub(crate) began: Instant,
    /// The answer, or `None` while the request is in flight.
    pub(crate) delivery: Option<Delivery>,
}

struct ForkedSink {
    receiver: Receiver,
    max_request_bytes: usize,
}

/// Returns a batch with one resource, one scope and these items; a metric has one point.
pub(crate) fn batch_of(signal: Signal, items: &[u32]) -> Batch {
    let mut scope = Buffer::default();
    for item in items {
        let mut record = Buffer::default();
        record.fixed32(8, *item);
        for number in around_item(signal).iter().rev() {
            let mut outer = Buffer::default();
            outer.delimited(*number, record.as_slice());
            record = outer;
        }
        scope.delimited(2, record.as_slice());
    }
    let (mut resource, mut message) = (Buffer::default(), Buffer::default());
    resource.delimited(2, scope.as_slice());
    message.delimited(1, resource.as_slice());
    Batch::new(signal, items.len() as u32, message.into_vec())
}

/// Returns the fields between a scope and an item: those of a gauge and its point, or none.
fn around_item(signal: Signal) -> &'static [u32] {
    match signal {
        Signal::Metrics => &[5, 1],
        Signal::Traces | Signal::Logs => &[],
    }
}

/// Returns the numbers of the items in a message, as far as the message can be read.
fn items_of(message: &[u8], path: &[u32]) -> Vec<u32> {
    let fields = Reader::new(message).map_while(Result::ok);
    let items = fields.flat_map(|field| match (field.value, path) {
        (WireValue::Bytes(inner), [number, path @ ..]) if field.number == *number => items_of(inner, path),
        (WireValue::Fixed32(item), []) => vec![item],
        _ => Vec::new(),
    });
    items.collect()
}

impl Receiver {
    /// Creates a receiver that accepts everything after this time.
    pub(crate) fn accepting(latency: Duration) -> Self {
        Self::answering(latency, |_| Delivery::Delivered)
    }

    pub(crate) fn answering(
        latency: Duration,
        mut answer: impl FnMut(&Request) -> Delivery + Send + 'static,
    ) -> Self {
        Self::behaving(latency, move |request| Ok(answer(request)))
    }

    pub(crate) fn behaving(
        latency: Duration,
        answer: impl FnMut(&Request) -> Result<Delivery, &'static str> + Send + 'static,
    ) -> Self {
        Self(Arc::new(Mutex::new(State {
            latency,
            answer: Box::new(answer),
            requests: Vec::new(),
            in_flight: Vec::new(),
            most_in_flight: [0; 3],
        })))
    }

    /// Returns a sink that sends to the receiver.
    pub(crate) fn sink(&self) -> Box<dyn Sink> {
        self.sink_up_to(usize::MAX)
    }

    /// Returns a sink that sends requests of at most this size.
    pub(crate) fn sink_up_to(&self, max_request_bytes: usize) -> Box<dyn Sink> {
        Box::new(ForkedSink {
            receiver: self.clone(),
            max_request_bytes,
        })
    }

    /// Returns the requests so far, in the order of their start.
    pub(crate) fn requests(&self) -> Vec<Request> {
        self.state().requests.clone()
    }

    /// Returns the maximum number of requests of one signal that were in flight at the same time.
    pub(crate) fn most_in_flight(&self, signal: Signal) -> usize {
        self.state().most_in_flight[signal as usize]
    }

    /// Returns the items of all accepted requests, in the order of the requests.
    pub(crate) fn accepted(&self) -> Vec<u32> {
        let state = self.state();
        let accepted = state.requests.iter().filter(|request| {
            matches!(
                request.delivery,
                Some(Delivery::Delivered | Delivery::Partial { .. })
            )
        });
        accepted.flat_map(|request| request.items.clone()).collect()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().expect("nothing panics while it holds the lock")
    }

    fn begin(&self, batch: &Batch) -> usize {
        let mut state = self.state();
        state.requests.push(Request {
            signal: batch.signal(),
            items: items_of(batch.bytes(), &[&[1, 2, 2], around_item(batch.signal())].concat()),
            bytes: batch.bytes().len(),
            began: clock::now(),
            delivery: None,
        });
        state.in_flight.push(batch.signal());
        let now = state
            .in_flight
            .iter()
            .filter(|signal| **signal == batch.signal())
            .count();
        let most = &mut state.most_in_flight[batch.signal() as usize];
        *most = now.max(*most);
        state.requests.len() - 1
    }

    fn end(&self, number: usize) -> Result<Delivery, &'static str> {
        let mut state = self.state();
        let request = state.requests[number].clone();
        let place = state
            .in_flight
            .iter()
            .position(|signal| *signal == request.signal);
        state.in_flight.remove(place.expect("it is in flight"));
        let delivery = (state.answer)(&request)?;
        state.requests[number].delivery = Some(delivery.clone());
        Ok(delivery)
    }
}

impl Sink for ForkedSink {
    fn name(&self) -> &str {
        "forked"
    }

    fn fork(&self) -> Option<Box<dyn Sink>> {
        Some(self.receiver.sink_up_to(self.max_request_bytes))
    }

    fn max_request_bytes(&self, _: Signal) -> usize {
        self.max_request_bytes
    }

    fn deliver<'a>(&'a mut self, batch: &'a Batch) -> BoxFuture<'a, Delivery> {
        let number = self.receiver.begin(batch);
        let latency = self.receiver.state().latency;
        Box::pin(async move {
            if !latency.is_zero() {
                sleep(latency).await;
            }
            let ended = self.receiver.end(number);
            // Not `panic!`: the hook would print it.
            ended.unwrap_or_else(|words| resume_unwind(Box::new(words)))
        })
    }
}
