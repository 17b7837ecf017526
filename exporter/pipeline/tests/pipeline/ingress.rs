//! The ingress and its queues: which batches wait, which are dropped, and which sinks are affected.

use std::time::Duration;

use pulsetrain_pipeline::{
    DropReason, Ingress, Pipeline, PipelineError, QueueConfig, Requirement, SinkCounts, SinkTaskConfig, clock,
};
use tokio::time::timeout;

use crate::fake_sink::{Answer, FakeSink, Witness, batch, send_or_drop};

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

/// Starts a pipeline with one sink that needs a second for each batch.
fn slow(config: SinkTaskConfig) -> (Pipeline, Ingress, Witness) {
    let (sink, witness) = FakeSink::scripted("slow", [Answer::Take.after(SECOND)]);
    let (pipeline, ingress) = Pipeline::builder().config(config).sink(sink).start();
    (pipeline, ingress, witness)
}

async fn drained(pipeline: Pipeline) -> SinkCounts {
    pipeline.drain(Duration::from_secs(3600)).await.remove(0).counts
}

#[tokio::test(start_paused = true)]
async fn full_queue_evicts_the_oldest_offered_batch_and_counts_it() {
    let (pipeline, ingress, witness) = slow(bounded(2, 1000));
    for id in 0..5 {
        send_or_drop(&ingress, batch(id, 10, 10));
    }
    let counts = drained(pipeline).await;
    assert_eq!(witness.received_ids(), [3, 4]);
    assert_eq!((counts.accepted, counts.delivered), (50, 20));
    assert_eq!(counts.dropped_for(DropReason::QueueFull), 30);
}

#[tokio::test(start_paused = true)]
async fn queue_is_limited_in_bytes_and_frees_space_when_a_batch_is_settled() {
    let (pipeline, ingress, witness) = slow(bounded(100, 25));
    for id in 0..3 {
        send_or_drop(&ingress, batch(id, 1, 10));
    }
    assert_eq!(
        pipeline.ledger().snapshot()[0].dropped_for(DropReason::QueueFull),
        1,
        "30 bytes are over 25"
    );
    tokio::time::sleep(SECOND + SECOND / 2).await;
    send_or_drop(&ingress, batch(3, 1, 15));
    drained(pipeline).await;
    assert_eq!(
        witness.received_ids(),
        [1, 2, 3],
        "the batch in delivery still takes its 10 bytes"
    );
}

#[tokio::test(start_paused = true)]
async fn offered_batch_evicts_no_more_batches_than_necessary() {
    let (pipeline, ingress, witness) = slow(bounded(100, 100));
    for (id, bytes) in [(0, 10), (1, 30), (2, 40), (3, 20), (4, 60)] {
        send_or_drop(&ingress, batch(id, 1, bytes));
    }
    let counts = drained(pipeline).await;
    assert_eq!(
        witness.received_ids(),
        [3, 4],
        "60 bytes need those of 0, 1 and 2"
    );
    assert_eq!(counts.dropped_for(DropReason::QueueFull), 3);
}

#[tokio::test(start_paused = true)]
async fn offered_batch_evicts_nothing_that_a_required_sink_has_acknowledged() {
    let (pipeline, ingress, witness) = slow(bounded(3, 1000));
    send_or_drop(&ingress, batch(0, 1, 10));
    for id in 1..3 {
        let batch = batch(id, 1, 10);
        let mut reserved = ingress
            .try_reserve(std::slice::from_ref(&batch))
            .expect("there is room");
        ingress
            .send_reserved(batch, &mut reserved)
            .expect("the pipeline is open");
    }
    for id in 3..6 {
        send_or_drop(&ingress, batch(id, 1, 10));
    }
    let counts = drained(pipeline).await;
    assert_eq!(witness.received_ids(), [1, 2, 5]);
    assert_eq!(counts.dropped_for(DropReason::QueueFull), 3);
}

#[tokio::test(start_paused = true)]
async fn offered_batch_larger_than_all_evictable_batches_evicts_nothing() {
    let (pipeline, ingress, witness) = slow(bounded(100, 100));
    ingress.send(batch(0, 1, 70)).await.expect("the pipeline is open");
    send_or_drop(&ingress, batch(1, 1, 20));
    send_or_drop(&ingress, batch(2, 1, 40));
    let counts = drained(pipeline).await;
    assert_eq!(witness.received_ids(), [0, 1]);
    assert_eq!(counts.dropped_for(DropReason::QueueFull), 1);
}

#[tokio::test(start_paused = true)]
async fn full_queue_of_a_best_effort_sink_drops_its_oldest() {
    let (sink, witness) = FakeSink::scripted("page", [Answer::Take.after(SECOND)]);
    let (pipeline, ingress) = Pipeline::builder()
        .config(bounded(2, 1000))
        .sink_as(sink, Requirement::BestEffort)
        .start();
    for id in 0..5 {
        let batch = batch(id, 1, 10);
        let mut reserved = ingress
            .try_reserve(std::slice::from_ref(&batch))
            .expect("it reserves nothing");
        ingress
            .send_reserved(batch, &mut reserved)
            .expect("the pipeline is open");
    }
    let counts = drained(pipeline).await;
    assert_eq!(witness.received_ids(), [3, 4]);
    assert_eq!(counts.dropped_for(DropReason::QueueFull), 3);
}

#[tokio::test(start_paused = true)]
async fn batch_larger_than_the_queue_is_dropped_with_a_message() {
    let (pipeline, ingress, _) = slow(bounded(100, 25));
    let sent = timeout(SECOND, ingress.send(batch(0, 7, 26))).await;
    assert_eq!(sent, Ok(Ok(())), "waiting would be for ever");
    ingress.send(batch(1, 1, 25)).await.expect("the pipeline is open");
    let counts = drained(pipeline).await;
    assert_eq!(
        (counts.delivered, counts.dropped_for(DropReason::TooLarge)),
        (1, 7)
    );
    let message = counts.dropped[0].message.as_deref().expect("a message");
    assert!(
        message.contains("26 bytes") && message.contains("25 bytes"),
        "{message}"
    );
}

#[tokio::test(start_paused = true)]
async fn send_waits_for_free_batches_and_bytes_and_loses_nothing() {
    for config in [bounded(1, 1000), bounded(1000, 19)] {
        let (pipeline, ingress, witness) = slow(config);
        let start = clock::now();
        for id in 0..20 {
            ingress
                .send(batch(id, 1, 10))
                .await
                .expect("the pipeline is open");
        }
        assert!(
            clock::now() - start >= 19 * SECOND,
            "the last one goes in when the one before is out"
        );
        assert_eq!(drained(pipeline).await.delivered, 20);
        assert_eq!(witness.received_ids(), Vec::from_iter(0..20));
    }
}

#[tokio::test(start_paused = true)]
async fn sent_batch_reaches_sinks_with_space_while_it_waits_for_a_full_one() {
    let (hanging, _) = FakeSink::scripted("hanging", [Answer::Hang.at_once()]);
    let (quick, witness) = FakeSink::scripted("quick", [Answer::Take.at_once()]);
    let (pipeline, ingress) = Pipeline::builder()
        .config(bounded(1, 1000))
        .sink(hanging)
        .sink(quick)
        .start();
    ingress.send(batch(0, 1, 10)).await.expect("the pipeline is open");
    let waits = timeout(SECOND, ingress.send(batch(1, 5, 10))).await;
    assert!(waits.is_err(), "the hanging sink has no room");
    assert_eq!(witness.received_ids(), [0, 1]);
    let hanging = &pipeline.ledger().snapshot()[0];
    assert_eq!(
        hanging.dropped_for(DropReason::Abandoned),
        5,
        "the cancelled send is counted where it waited"
    );
}

#[tokio::test(start_paused = true)]
async fn closed_ingress_returns_an_error_and_counts_the_items() {
    let (sink, _) = FakeSink::scripted("quick", [Answer::Take.at_once()]);
    let (pipeline, ingress) = Pipeline::builder().sink(sink).start();
    let ledger = pipeline.ledger().clone();
    pipeline.drain(SECOND).await;
    assert_eq!(
        ingress.try_send_or_drop(batch(0, 1, 10)),
        Err(PipelineError::Closed)
    );
    assert_eq!(ingress.send(batch(1, 2, 10)).await, Err(PipelineError::Closed));
    assert_eq!(ingress.blocking_send(batch(2, 4, 10)), Err(PipelineError::Closed));
    assert_eq!(ledger.snapshot()[0].dropped_for(DropReason::Closed), 7);
}

#[tokio::test]
async fn pipeline_without_sinks_accepts_every_batch_and_drains() {
    let (pipeline, ingress) = Pipeline::builder().start();
    ingress
        .try_send_or_drop(batch(0, 1, 10))
        .expect("nobody is there to be closed");
    ingress
        .send(batch(1, 1, 10))
        .await
        .expect("nobody is there to be closed");
    assert_eq!(pipeline.drain(SECOND).await, []);
}
