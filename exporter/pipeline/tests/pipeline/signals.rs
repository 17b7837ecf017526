//! Tests of sinks that accept some signals only: batches of other signals bypass them.

use std::time::Duration;

use pulsetrain_otlp::{Signal, Signals};
use pulsetrain_pipeline::{
    Batch, BoxFuture, Delivery, DropReason, Pipeline, QueueConfig, Sink, SinkTaskConfig,
};
use tokio::time::timeout;

use crate::{
    fake_sink::{Answer, FakeSink, send_or_drop},
    receiver::{Receiver, batch_of},
};

const MINUTE: Duration = Duration::from_secs(60);

/// A sink that accepts one signal.
struct Only(Signal, Box<dyn Sink>);

impl Sink for Only {
    fn name(&self) -> &str {
        self.1.name()
    }

    fn signals(&self) -> Signals {
        [self.0].into_iter().collect()
    }

    fn deliver<'a>(&'a mut self, batch: &'a Batch) -> BoxFuture<'a, Delivery> {
        assert_eq!(batch.signal(), self.0, "the sink does not accept it");
        self.1.deliver(batch)
    }
}

fn batch(id: u32, signal: Signal) -> Batch {
    Batch::new(signal, 1, id.to_be_bytes().to_vec())
}

#[tokio::test(start_paused = true)]
async fn batch_of_a_signal_that_a_sink_does_not_accept_is_neither_delivered_nor_counted_there() {
    let (traces, traces_saw) = FakeSink::scripted("traces", [Answer::Take.at_once()]);
    let (all, all_saw) = FakeSink::scripted("all", [Answer::Take.at_once()]);
    let (pipeline, ingress) = Pipeline::builder()
        .sink(Box::new(Only(Signal::Traces, traces)))
        .sink(all)
        .start();
    for (id, signal) in (0..).zip([Signal::Traces, Signal::Metrics, Signal::Logs]) {
        send_or_drop(&ingress, batch(id, signal));
        ingress
            .send(batch(id + 10, signal))
            .await
            .expect("the pipeline is open");
    }
    let reports = pipeline.drain(MINUTE).await;
    assert_eq!(traces_saw.received_ids(), [0, 10]);
    assert_eq!(all_saw.received_ids(), [0, 10, 1, 11, 2, 12]);
    let counts = &reports[0].counts;
    assert_eq!(
        (counts.accepted, counts.delivered, counts.dropped_items()),
        (2, 2, 0)
    );
}

#[tokio::test(start_paused = true)]
async fn full_queue_of_one_signal_does_not_block_senders_of_another() {
    let (hangs, _) = FakeSink::scripted("hangs", [Answer::Hang.at_once()]);
    let config = SinkTaskConfig {
        queue: QueueConfig {
            max_batches: 1,
            max_bytes: 100,
        },
        ..SinkTaskConfig::default()
    };
    let (takes, takes_saw) = FakeSink::scripted("takes", [Answer::Take.at_once()]);
    let (pipeline, ingress) = Pipeline::builder()
        .config(config)
        .sink(Box::new(Only(Signal::Traces, hangs)))
        .sink(takes)
        .start();
    ingress
        .send(batch(0, Signal::Traces))
        .await
        .expect("the pipeline is open");
    for id in 1..4 {
        let sent = timeout(MINUTE, ingress.send(batch(id, Signal::Metrics))).await;
        assert_eq!(sent, Ok(Ok(())), "nobody waits for a queue of traces");
    }
    pipeline.drain(MINUTE).await;
    assert_eq!(takes_saw.received_ids(), [0, 1, 2, 3]);
}

#[tokio::test(start_paused = true)]
async fn batch_of_an_unsupported_signal_waits_for_an_accepted_one_and_is_not_counted_as_a_loss() {
    let receiver = Receiver::answering(Duration::ZERO, |request| match request.signal {
        Signal::Traces => Delivery::Unsupported("no such service".into()),
        _ => Delivery::Delivered,
    });
    let (pipeline, ingress) = Pipeline::builder().sink(receiver.sink()).start();
    for (id, signal) in (0..).zip([Signal::Traces, Signal::Metrics, Signal::Traces, Signal::Metrics]) {
        send_or_drop(&ingress, batch_of(signal, &[id]));
    }
    let counts = pipeline.drain(MINUTE).await.remove(0).counts;
    assert_eq!(
        (counts.delivered, counts.dropped_items(), counts.lost_items()),
        (2, 2, 0)
    );
    let drops: Vec<_> = counts.unsupported().collect();
    assert_eq!(
        (drops.len(), drops[0].reason, drops[0].signal, drops[0].items),
        (1, DropReason::UnsupportedSignal, Signal::Traces, 2)
    );
}
