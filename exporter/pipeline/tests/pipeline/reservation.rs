//! Tests of reservations: the guarantees for a source that can push back before it acknowledges a batch.

use std::{
    slice,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
    time::Duration,
};

use pulsetrain_pipeline::{
    Ack, Batch, DropReason, Ingress, Pipeline, QueueConfig, Requirement, ReserveError, SinkRoute,
    SinkTaskConfig,
};

use crate::fake_sink::{Answer, FakeSink, batch, send_or_drop};

const SECOND: Duration = Duration::from_secs(1);

fn bounded(max_batches: usize, max_bytes: usize) -> SinkTaskConfig {
    SinkTaskConfig {
        queue: QueueConfig {
            max_batches,
            max_bytes,
        },
        ..SinkTaskConfig::default()
    }
}

/// Starts a pipeline with a dead sink and a healthy one, each required or not.
fn dead_and_healthy(config: SinkTaskConfig, dead: Requirement, healthy: Requirement) -> (Pipeline, Ingress) {
    let (broken, _) = FakeSink::scripted("dead", [Answer::Retry(None).at_once()]);
    let (quick, _) = FakeSink::scripted("healthy", [Answer::Take.at_once()]);
    Pipeline::builder()
        .config(config)
        .sink_as(broken, dead)
        .sink_as(quick, healthy)
        .start()
}

/// Returns a batch of ten bytes.
fn ten() -> Batch {
    batch(1, 1, 10)
}

/// Sends one batch of ten bytes, if there is room for it.
fn put(ingress: &Ingress, id: u32) -> Result<(), ReserveError> {
    let batch = batch(id, 1, 10);
    let mut reserved = ingress.try_reserve(slice::from_ref(&batch))?;
    let sent = ingress.send_reserved(batch, &mut reserved);
    sent.map_err(|_| ReserveError::Closed)
}

#[tokio::test(start_paused = true)]
async fn full_required_sink_applies_backpressure_even_if_other_queues_have_space() {
    let (pipeline, ingress) =
        dead_and_healthy(bounded(2, 1000), Requirement::Required, Requirement::BestEffort);
    let answers: Vec<_> = (0..5).map(|id| put(&ingress, id)).collect();
    assert_eq!(answers[..2], [Ok(()), Ok(())]);
    assert_eq!(answers[2..], [Err(ReserveError::Full); 3]);
    tokio::time::sleep(SECOND).await;
    let [dead, healthy] = pipeline.ledger().snapshot().try_into().expect("two sinks");
    assert_eq!((dead.accepted, dead.dropped_items(), dead.queued), (2, 0, 2));
    assert_eq!(healthy.delivered, 2, "what is refused reached no sink");
}

#[tokio::test(start_paused = true)]
async fn full_required_sink_drops_best_effort_batches() {
    let (pipeline, ingress) =
        dead_and_healthy(bounded(2, 1000), Requirement::Required, Requirement::Required);
    for id in 0..2 {
        assert_eq!(put(&ingress, id), Ok(()));
    }
    tokio::time::sleep(SECOND).await;
    let mut nothing_reserved = ingress.try_reserve(&[]).expect("no batch needs no room");
    for id in 2..7 {
        let derived = batch(id, 1, 10).best_effort();
        ingress
            .send_reserved(derived, &mut nothing_reserved)
            .expect("the pipeline is open");
        tokio::time::sleep(SECOND / 100).await;
    }
    tokio::time::sleep(SECOND).await;
    let [dead, healthy] = pipeline.ledger().snapshot().try_into().expect("two sinks");
    assert_eq!((dead.accepted, dead.dropped_items(), dead.queued), (7, 5, 2));
    assert_eq!(healthy.delivered, 7);
}

#[tokio::test(start_paused = true)]
async fn full_best_effort_sink_drops_its_own_batches_and_blocks_no_other_sink() {
    let (pipeline, ingress) =
        dead_and_healthy(bounded(2, 1000), Requirement::BestEffort, Requirement::Required);
    for id in 0..5 {
        assert_eq!(put(&ingress, id), Ok(()));
        tokio::time::sleep(SECOND / 100).await;
    }
    let [dead, healthy] = pipeline.ledger().snapshot().try_into().expect("two sinks");
    assert_eq!((dead.dropped_for(DropReason::QueueFull), dead.queued), (3, 2));
    assert_eq!(healthy.delivered, 5);
}

#[tokio::test(start_paused = true)]
async fn two_reservations_never_share_the_last_permit() {
    let (_pipeline, ingress) =
        dead_and_healthy(bounded(100, 25), Requirement::Required, Requirement::Required);
    let first = ingress.try_reserve(&[ten(), ten()]).expect("20 of 25 bytes");
    assert_eq!(ingress.try_reserve(&[ten()]).err(), Some(ReserveError::Full));
    drop(first);
    assert!(
        ingress.try_reserve(&[ten()]).is_ok(),
        "what is not used is free again"
    );
}

#[tokio::test(start_paused = true)]
async fn batch_larger_than_a_required_queue_is_refused_with_its_limit() {
    let (pipeline, ingress) =
        dead_and_healthy(bounded(100, 25), Requirement::Required, Requirement::Required);
    assert_eq!(
        ingress.try_reserve(&[batch(0, 1, 26)]).err(),
        Some(ReserveError::TooLarge { limit: 25 })
    );
    pipeline.drain(Duration::ZERO).await;
    assert_eq!(ingress.try_reserve(&[ten()]).err(), Some(ReserveError::Closed));
}

#[tokio::test(start_paused = true)]
async fn batches_beyond_their_reservation_are_still_accepted() {
    let (pipeline, ingress) =
        dead_and_healthy(bounded(2, 25), Requirement::Required, Requirement::BestEffort);
    let mut reserved = ingress.try_reserve(&[ten()]).expect("there is room");
    for id in 0..4 {
        ingress
            .send_reserved(batch(id, 1, 10), &mut reserved)
            .expect("the pipeline is open");
    }
    let dead = pipeline.ledger().snapshot().remove(0);
    assert_eq!((dead.queued, dead.dropped_items()), (4, 0));
}

#[tokio::test(start_paused = true)]
async fn ack_waits_only_for_required_sinks() {
    let (_pipeline, ingress) =
        dead_and_healthy(bounded(100, 1000), Requirement::BestEffort, Requirement::Required);
    let settled = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&settled);
    let ack = Arc::new(
        Ack::new(move |_| {
            counter.fetch_add(1, Ordering::Relaxed);
        })
        .numbered(7),
    );
    send_or_drop(&ingress, batch(1, 1, 10).with_ack(ack));
    tokio::time::sleep(SECOND).await;
    assert_eq!(settled.load(Ordering::Relaxed), 1);
}

#[test]
fn blocking_reserve_waits_for_space_until_the_caller_cancels() {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_time()
        .build()
        .expect("a runtime");
    let (sink, witness) = FakeSink::scripted("healthy", [Answer::Take.at_once()]);
    let (pipeline, ingress) =
        runtime.block_on(async { Pipeline::builder().config(bounded(1, 1000)).sink(sink).start() });
    let held = ingress.try_reserve(&[ten()]).expect("there is room");
    assert_eq!(
        ingress.blocking_reserve(&[ten()], || true).err(),
        Some(ReserveError::Full)
    );
    let waiting = thread::spawn(move || {
        let mut reserved = ingress.blocking_reserve(&[ten()], || false)?;
        let sent = ingress.send_reserved(batch(1, 1, 10), &mut reserved);
        sent.map_err(|_| ReserveError::Closed)
    });
    drop(held);
    assert_eq!(waiting.join().expect("the thread does not panic"), Ok(()));
    runtime.block_on(pipeline.drain(60 * SECOND));
    assert_eq!(witness.received_ids(), [1]);
}

#[test]
fn blocked_thread_waits_for_the_queue_of_the_sink_that_replaces_a_full_one() {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_time()
        .build()
        .expect("a runtime");
    let (old, _) = FakeSink::scripted("replaced", [Answer::Hang.at_once()]);
    let (new, witness) = FakeSink::scripted("replaced", [Answer::Take.at_once()]);
    let (mut pipeline, ingress) =
        runtime.block_on(async { Pipeline::builder().config(bounded(1, 1000)).sink(old).start() });
    let held = ingress.try_reserve(&[ten()]).expect("there is room");
    let asked = Arc::new(AtomicUsize::new(0));
    let asks = Arc::clone(&asked);
    let waiting = thread::spawn(move || {
        let gives_up = || {
            asks.fetch_add(1, Ordering::Relaxed);
            false
        };
        let mut reserved = ingress.blocking_reserve(&[ten()], gives_up)?;
        let sent = ingress.send_reserved(batch(1, 1, 10), &mut reserved);
        sent.map_err(|_| ReserveError::Closed)
    });
    while asked.load(Ordering::Relaxed) == 0 {
        thread::yield_now();
    }
    runtime.block_on(async {
        let replaced = pipeline.expect_sink(
            "replaced",
            SinkRoute::ALL,
            SinkTaskConfig::default(),
            Duration::ZERO,
        );
        replaced.expect("the old one is there").await;
        assert!(pipeline.open_sink(new).is_ok(), "it is expected");
    });
    assert_eq!(waiting.join().expect("the thread does not panic"), Ok(()));
    drop(held);
    runtime.block_on(pipeline.drain(60 * SECOND));
    assert_eq!(witness.received_ids(), [1]);
}
