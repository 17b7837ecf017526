//! Sinks with the names of the configuration, whose deliveries are counted and timed.

use opentelemetry::{
    KeyValue,
    metrics::{Counter, Histogram},
};
use pulsetrain_otlp::{Signal, Signals};
use pulsetrain_pipeline::{
    Batch, BoxFuture, Delivery, Problem, Sink,
    clock::{self, Instant},
};
use pulsetrain_semconv::attribute;

/// A sink with its name from the configuration.
pub(in crate::agent) struct NamedSink {
    name: String,
    sink: Box<dyn Sink>,
}

impl NamedSink {
    pub(in crate::agent) fn new(name: &str, sink: Box<dyn Sink>) -> Self {
        Self {
            name: name.to_owned(),
            sink,
        }
    }

    fn fork_named(&self) -> Option<Self> {
        Some(Self::new(&self.name, self.sink.fork()?))
    }
}

impl Sink for NamedSink {
    fn name(&self) -> &str {
        &self.name
    }

    fn signals(&self) -> Signals {
        self.sink.signals()
    }

    fn fork(&self) -> Option<Box<dyn Sink>> {
        Some(Box::new(self.fork_named()?))
    }

    fn max_request_bytes(&self, signal: Signal) -> usize {
        self.sink.max_request_bytes(signal)
    }

    fn deliver<'a>(&'a mut self, batch: &'a Batch) -> BoxFuture<'a, Delivery> {
        self.sink.deliver(batch)
    }

    fn finish(&mut self) -> BoxFuture<'_, Result<(), Problem>> {
        self.sink.finish()
    }
}

/// A sink whose deliveries are counted by signal, and timed from the first attempt to the last. The time of a retried
/// request with other batches merged into it starts with the retry.
pub(super) struct InstrumentedSink {
    sink: NamedSink,
    delivered: Counter<u64>,
    duration: Histogram<f64>,
    /// The batch in delivery, identified by the address of its bytes, and the start of its first attempt.
    trying: Option<(usize, Instant)>,
}

impl InstrumentedSink {
    pub(super) fn new(sink: NamedSink, delivered: Counter<u64>, duration: Histogram<f64>) -> Self {
        Self {
            sink,
            delivered,
            duration,
            trying: None,
        }
    }

    /// Returns the start of the first attempt with this batch.
    fn began(&mut self, batch: &Batch) -> Instant {
        let place = batch.bytes().as_ptr().addr();
        match self.trying {
            Some((known, began)) if known == place => began,
            _ => {
                let now = clock::now();
                self.trying = Some((place, now));
                now
            }
        }
    }

    fn ended(&mut self, batch: &Batch, began: Instant, delivery: &Delivery) {
        let delivered = match delivery {
            // The batch is sent again, or dropped by the pipeline.
            Delivery::Retry { .. }
            | Delivery::Unreachable(_)
            | Delivery::TooLarge(_)
            | Delivery::Denied(_)
            | Delivery::Unsupported(_) => return,
            Delivery::Delivered => u64::from(batch.items()),
            Delivery::Partial { rejected, .. } => u64::from(batch.items()).saturating_sub(*rejected),
            Delivery::Refused(_) => 0,
        };
        self.trying = None;
        let attributes = [
            KeyValue::new(attribute::PULSETRAIN_SINK_NAME.name, self.sink.name.clone()),
            KeyValue::new(attribute::PULSETRAIN_SIGNAL.name, batch.signal().as_str()),
        ];
        self.duration.record(began.elapsed().as_secs_f64(), &attributes);
        self.delivered.add(delivered, &attributes);
    }
}

impl Sink for InstrumentedSink {
    fn name(&self) -> &str {
        self.sink.name()
    }

    fn signals(&self) -> Signals {
        self.sink.signals()
    }

    fn fork(&self) -> Option<Box<dyn Sink>> {
        let sink = self.sink.fork_named()?;
        Some(Box::new(Self::new(
            sink,
            self.delivered.clone(),
            self.duration.clone(),
        )))
    }

    fn max_request_bytes(&self, signal: Signal) -> usize {
        self.sink.max_request_bytes(signal)
    }

    fn deliver<'a>(&'a mut self, batch: &'a Batch) -> BoxFuture<'a, Delivery> {
        Box::pin(async move {
            let began = self.began(batch);
            let delivery = self.sink.deliver(batch).await;
            self.ended(batch, began, &delivery);
            delivery
        })
    }

    fn finish(&mut self) -> BoxFuture<'_, Result<(), Problem>> {
        self.sink.finish()
    }
}
