//! Tests of sinks whose batches are held when they are delivered: the wait of a source before it acknowledges.

use std::{future::Future, slice, time::Duration};

use pulsetrain_pipeline::{
    Batch, Ingress, NotHeld, Pipeline, PipelineBuilder, Requirement, Sink, SinkRoute, SinkTaskConfig,
    clock::{self, Instant},
};

use crate::fake_sink::{Answer, FakeSink, Move, batch};

const SECOND: Duration = Duration::from_secs(1);

/// The maximum time that a source waits for a delivery.
const MAX_DELIVERY_WAIT: Duration = Duration::from_secs(2);

/// Returns the settings of a file-like sink.
fn task() -> SinkTaskConfig {
    SinkTaskConfig {
        held_when_delivered: true,
        ..SinkTaskConfig::default()
    }
}

fn with(sink: Box<dyn Sink>) -> PipelineBuilder {
    Pipeline::builder().sink_with(sink, Requirement::Required, task())
}

fn start(script: impl Into<Vec<Move>>) -> (Pipeline, Ingress) {
    with(FakeSink::scripted("file", script).0).start()
}

/// Sends a batch, and returns the future that waits until the batch is held.
fn send(ingress: &Ingress, batch: Batch) -> impl Future<Output = Result<(), NotHeld>> + use<> {
    let mut reserved = ingress
        .try_reserve(slice::from_ref(&batch))
        .expect("there is room");
    ingress
        .send_reserved(batch, &mut reserved)
        .expect("the pipeline is open");
    reserved.held()
}

/// Returns the result of a future, and its duration.
async fn timed(
    start: Instant,
    held: impl Future<Output = Result<(), NotHeld>>,
) -> (Result<(), NotHeld>, Duration) {
    let result = held.await;
    (result, clock::now() - start)
}

#[tokio::test(start_paused = true)]
async fn batch_is_held_once_the_sink_has_delivered_or_rejected_it() {
    for answer in [Answer::Take, Answer::Reject(1), Answer::Refuse] {
        let (_pipeline, ingress) = start([answer.after(SECOND)]);
        let waited = timed(clock::now(), send(&ingress, batch(1, 1, 10))).await;
        assert_eq!(waited, (Ok(()), SECOND), "{answer:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn batch_of_a_failing_sink_is_held_in_memory_after_the_delivery_timeout() {
    let (_pipeline, ingress) = start([Answer::Retry(None).at_once()]);
    let start = clock::now();
    let [first, second] = [1, 2].map(|id| timed(start, send(&ingress, batch(id, 1, 10))));
    let late = (Ok(()), MAX_DELIVERY_WAIT);
    assert_eq!(tokio::join!(first, second), (late, late));
    // The age of the oldest batch has a resolution of a second.
    tokio::time::sleep(2 * SECOND).await;
    let waited = timed(clock::now(), send(&ingress, batch(3, 1, 10))).await;
    assert_eq!(waited, (Ok(()), Duration::ZERO));
}

#[tokio::test(start_paused = true)]
async fn recovered_sink_is_awaited_again() {
    let outage = [
        Answer::Take.after(3 * MAX_DELIVERY_WAIT),
        Answer::Take.after(SECOND),
    ];
    let (_pipeline, ingress) = start(outage);
    let waited = timed(clock::now(), send(&ingress, batch(1, 1, 10))).await;
    assert_eq!(waited, (Ok(()), MAX_DELIVERY_WAIT));
    tokio::time::sleep(3 * MAX_DELIVERY_WAIT).await;
    let waited = timed(clock::now(), send(&ingress, batch(2, 1, 10))).await;
    assert_eq!(waited, (Ok(()), SECOND));
}

#[tokio::test(start_paused = true)]
async fn batch_cut_off_by_shutdown_is_not_held() {
    let (pipeline, ingress) = start([Answer::Hang.at_once()]);
    let held = tokio::spawn(send(&ingress, batch(1, 1, 10)));
    pipeline.drain(SECOND).await;
    assert_eq!(held.await.expect("it does not panic"), Err(NotHeld));
}

#[tokio::test(start_paused = true)]
async fn undelivered_batch_of_a_replaced_sink_is_held_once_its_successor_delivers_it() {
    let (old, _) = FakeSink::scripted("file", [Answer::Retry(None).at_once()]);
    let (new, new_saw) = FakeSink::scripted("file", [Answer::Take.after(SECOND)]);
    let (mut pipeline, ingress) = with(old).start();
    let start = clock::now();
    let held = send(&ingress, batch(1, 1, 10));
    let leaving = pipeline
        .expect_sink("file", SinkRoute::ALL, task(), SECOND)
        .expect("the old one is there");
    leaving.await;
    let left = clock::now();
    assert!(pipeline.open_sink(new).is_ok(), "it is expected");
    assert_eq!(timed(start, held).await, (Ok(()), left - start + SECOND));
    assert_eq!(new_saw.received_ids(), [1]);
}
