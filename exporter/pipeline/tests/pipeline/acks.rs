//! Tests of acks: settled when every sink has finished a batch, with the correct outcome.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use pulsetrain_otlp::Signal;
use pulsetrain_pipeline::{Ack, AckOutcome, Pipeline, QueueConfig, Sink, SinkTaskConfig};

use crate::fake_sink::{Answer, FakeSink, Move, batch, send_or_drop};

const SECOND: Duration = Duration::from_secs(1);
const HOUR: Duration = Duration::from_secs(3600);
const UNPOISONED: &str = "nothing panics while it holds the lock";

/// The outcome of an ack, or `None` before it is settled.
#[derive(Clone, Default)]
struct Seen(Arc<Mutex<Option<AckOutcome>>>);

impl Seen {
    fn ack(&self) -> Arc<Ack> {
        let seen = Arc::clone(&self.0);
        Arc::new(Ack::new(move |outcome| {
            let before = seen.lock().expect(UNPOISONED).replace(outcome);
            assert_eq!(before, None, "a receipt is settled once");
        }))
    }

    fn outcome(&self) -> Option<AckOutcome> {
        self.0.lock().expect(UNPOISONED).clone()
    }

    fn is_cut_off(&self) -> Option<bool> {
        self.outcome().map(|outcome| outcome.is_cut_off)
    }
}

fn taking(name: &str, time: Duration) -> Box<dyn Sink> {
    FakeSink::scripted(name, [Answer::Take.after(time)]).0
}

#[tokio::test(start_paused = true)]
async fn ack_is_settled_by_the_slowest_sink() {
    let (pipeline, ingress) = Pipeline::builder()
        .sink(taking("fast", SECOND))
        .sink(taking("slow", 3 * SECOND))
        .start();
    let seen = Seen::default();
    send_or_drop(&ingress, batch(1, 5, 10).with_ack(seen.ack()));
    tokio::time::sleep(2 * SECOND).await;
    assert_eq!(pipeline.ledger().snapshot()[0].delivered, 5);
    assert_eq!(seen.is_cut_off(), None);
    tokio::time::sleep(2 * SECOND).await;
    assert_eq!(seen.is_cut_off(), Some(false));
}

#[tokio::test(start_paused = true)]
async fn shared_ack_waits_for_all_its_batches() {
    let (_pipeline, ingress) = Pipeline::builder().sink(taking("slow", SECOND)).start();
    let seen = Seen::default();
    let ack = seen.ack();
    for id in 0..3 {
        send_or_drop(&ingress, batch(id, 1, 10).with_ack(Arc::clone(&ack)));
    }
    drop(ack);
    tokio::time::sleep(2 * SECOND + SECOND / 2).await;
    assert_eq!(seen.is_cut_off(), None, "the third is still on its way");
    tokio::time::sleep(SECOND).await;
    assert_eq!(seen.is_cut_off(), Some(false));
}

#[tokio::test(start_paused = true)]
async fn refused_and_dropped_batches_are_settled_permanently() {
    let one_batch = QueueConfig {
        max_batches: 1,
        max_bytes: 1000,
    };
    let config = SinkTaskConfig {
        queue: one_batch,
        ..SinkTaskConfig::default()
    };
    let refusing = Move {
        takes: SECOND,
        answer: Answer::Refuse,
    };
    let (pipeline, ingress) = Pipeline::builder()
        .config(config)
        .sink(FakeSink::scripted("refuses", [refusing]).0)
        .start();
    let (refused, no_room) = (Seen::default(), Seen::default());
    send_or_drop(&ingress, batch(1, 1, 10).with_ack(refused.ack()));
    // The batch is being delivered, and cannot be evicted.
    tokio::task::yield_now().await;
    send_or_drop(&ingress, batch(2, 1, 10).with_ack(no_room.ack()));
    assert_eq!(no_room.is_cut_off(), Some(false));
    pipeline.drain(HOUR).await;
    assert_eq!(refused.is_cut_off(), Some(false));
}

#[tokio::test(start_paused = true)]
async fn losses_caused_by_shutdown_are_marked_as_cut_off() {
    let (pipeline, ingress) = Pipeline::builder().sink(taking("slow", HOUR)).start();
    let (in_delivery, waiting, too_late) = (Seen::default(), Seen::default(), Seen::default());
    send_or_drop(&ingress, batch(1, 1, 10).with_ack(in_delivery.ack()));
    send_or_drop(&ingress, batch(2, 1, 10).with_ack(waiting.ack()));
    pipeline.drain(SECOND).await;
    ingress
        .try_send_or_drop(batch(3, 1, 10).with_ack(too_late.ack()))
        .unwrap_err();
    for seen in [in_delivery, waiting, too_late] {
        assert_eq!(seen.is_cut_off(), Some(true));
    }
}

#[tokio::test(start_paused = true)]
async fn dropped_pipeline_marks_its_batches_as_cut_off() {
    let (pipeline, ingress) = Pipeline::builder().sink(taking("slow", HOUR)).start();
    let seen = Seen::default();
    send_or_drop(&ingress, batch(1, 1, 10).with_ack(seen.ack()));
    drop(pipeline);
    while seen.outcome().is_none() {
        tokio::task::yield_now().await;
    }
    assert_eq!(seen.is_cut_off(), Some(true));
}

#[test]
fn ack_of_a_batch_waits_for_its_derived_batches() {
    let seen = Seen::default();
    let one = batch(1, 5, 10).with_ack(seen.ack());
    let computed = one.derived(Signal::Metrics, 1, vec![0x0a, 0]);
    let other = batch(1, 5, 10);
    assert!(computed.shares_ack(&one) && !computed.shares_ack(&other) && other.shares_ack(&other));
    drop(one);
    assert_eq!(seen.outcome(), None);
    drop(computed);
    assert!(seen.outcome().is_some());
}

#[tokio::test(start_paused = true)]
async fn batch_lost_by_a_removed_sink_is_not_cut_off() {
    let (mut pipeline, ingress) = Pipeline::builder()
        .sink(taking("goes", HOUR))
        .sink(taking("stays", SECOND))
        .start();
    let seen = Seen::default();
    send_or_drop(&ingress, batch(1, 5, 10).with_ack(seen.ack()));
    let removed = pipeline.remove_sink("goes", SECOND).unwrap().await;
    assert_eq!(removed.counts.dropped_items(), 5);
    pipeline.drain(HOUR).await;
    assert_eq!(seen.is_cut_off(), Some(false));
}
