//! Tests of retries through the public interface: the order, the open circuit, and the kept messages.

use std::{sync::Arc, time::Duration};

use pulsetrain_pipeline::{
    Ack, DropReason, GiveUp, Ingress, Pipeline, QueueConfig, Requirement, ReserveError, RetryConfig,
    SinkTaskConfig, clock,
};
use tokio::time::sleep;

use crate::fake_sink::{Answer, FakeSink, Witness, batch, send_or_drop};

const SECOND: Duration = Duration::from_secs(1);

fn start(script: &[Answer]) -> (Pipeline, Ingress, Witness) {
    start_with(script, GiveUp::AfterOutage(60 * SECOND), QueueConfig::default())
}

fn start_with(script: &[Answer], give_up: GiveUp, queue: QueueConfig) -> (Pipeline, Ingress, Witness) {
    let (sink, witness) = FakeSink::scripted(
        "test",
        script.iter().map(|answer| answer.at_once()).collect::<Vec<_>>(),
    );
    let retry = RetryConfig {
        give_up,
        ..RetryConfig::default()
    }
    .without_jitter();
    let config = SinkTaskConfig {
        retry,
        queue,
        ..SinkTaskConfig::default()
    };
    let (pipeline, ingress) = Pipeline::builder().config(config).sink(sink).start();
    (pipeline, ingress, witness)
}

fn offer(ingress: &Ingress, ids: std::ops::Range<u32>) {
    for id in ids {
        send_or_drop(ingress, batch(id, 10, 10));
    }
}

#[tokio::test(start_paused = true)]
async fn failed_batch_is_retried_before_the_next_and_is_delivered_once() {
    let (pipeline, ingress, witness) =
        start(&[Answer::Retry(None), Answer::Retry(Some(7 * SECOND)), Answer::Take]);
    let began = clock::now();
    offer(&ingress, 0..2);
    let counts = pipeline.drain(3600 * SECOND).await.remove(0).counts;
    assert_eq!(
        (counts.delivered, counts.dropped_items(), counts.retries),
        (20, 0, 2)
    );
    assert_eq!(counts.retry_message.as_deref(), Some("busy"));
    let books = witness.books();
    let attempts: Vec<_> = books
        .attempts
        .iter()
        .map(|attempt| (attempt.id, attempt.began - began))
        .collect();
    assert_eq!(attempts[..3], [(0, Duration::ZERO), (0, SECOND), (0, 8 * SECOND)]);
    assert_eq!(attempts[3].0, 1);
}

#[tokio::test(start_paused = true)]
async fn refused_and_partially_accepted_batches_are_never_retried() {
    let (pipeline, ingress, witness) =
        start(&[Answer::Refuse, Answer::Reject(3), Answer::Reject(0), Answer::Take]);
    offer(&ingress, 0..4);
    let counts = pipeline.drain(SECOND).await.remove(0).counts;
    let ids: Vec<_> = witness
        .books()
        .attempts
        .iter()
        .map(|attempt| attempt.id)
        .collect();
    assert_eq!(ids, [0, 1, 2, 3]);
    assert_eq!(counts.delivered, 27);
    let losses: Vec<_> = counts
        .dropped
        .iter()
        .map(|loss| (loss.reason, loss.items, loss.message.as_deref()))
        .collect();
    assert_eq!(
        losses,
        [
            (DropReason::Rejected, 3, Some("some are too old")),
            (DropReason::Refused, 10, Some("no such tenant")),
        ]
    );
    assert_eq!(
        (counts.warnings, counts.warning_message.as_deref()),
        (1, Some("some are too old"))
    );
}

#[tokio::test(start_paused = true)]
async fn sink_with_a_long_outage_drops_batches_immediately_until_it_responds() {
    let mut script = vec![Answer::Retry(None); 10];
    script.extend([Answer::Take, Answer::Retry(None), Answer::Take]);
    let (pipeline, ingress, witness) = start(&script);
    offer(&ingress, 0..3);
    sleep(75 * SECOND).await;
    let counts = pipeline.ledger().snapshot().remove(0);
    assert_eq!(
        witness.books().attempts.len(),
        10,
        "1, 1.5, 2.25 s and so on: 60 s are over at the tenth"
    );
    assert_eq!(counts.dropped_for(DropReason::RetriesExhausted), 10);
    assert_eq!(
        counts.dropped_for(DropReason::Unreachable),
        20,
        "no wait for each of them"
    );
    assert_eq!(
        counts.dropped.last().and_then(|loss| loss.message.as_deref()),
        Some("busy")
    );
    sleep(60 * SECOND).await;
    offer(&ingress, 3..5);
    let counts = pipeline.drain(60 * SECOND).await.remove(0).counts;
    assert_eq!(
        witness.received_ids(),
        [3, 4],
        "the probe arrived, and what fails after it is tried again"
    );
    assert_eq!((counts.delivered, counts.dropped_items()), (20, 30));
}

#[tokio::test(start_paused = true)]
async fn panic_of_a_delivery_loses_only_its_own_batch() {
    let (pipeline, ingress, witness) = start(&[Answer::Take, Answer::Panic, Answer::Take]);
    offer(&ingress, 0..3);
    let report = pipeline.drain(SECOND).await.remove(0);
    assert_eq!(witness.received_ids(), [0, 2]);
    assert_eq!(report.counts.dropped_for(DropReason::SinkPanicked), 10);
    assert_eq!(
        report.counts.dropped[0].message.as_deref(),
        Some("panicked: as scripted")
    );
    assert_eq!(report.finished, Ok(()));
}

const TWO_BATCHES: QueueConfig = QueueConfig {
    max_batches: 2,
    max_bytes: 1000,
};

#[tokio::test(start_paused = true)]
async fn outage_of_any_length_drops_nothing_while_the_queue_has_space() {
    for give_up in [GiveUp::Never, GiveUp::WhenFull(60 * SECOND)] {
        let mut script = vec![Answer::Retry(None); 40];
        script.push(Answer::Take);
        let (pipeline, ingress, witness) = start_with(&script, give_up, QueueConfig::default());
        offer(&ingress, 0..3);
        sleep(600 * SECOND).await;
        offer(&ingress, 3..5);
        let counts = pipeline.ledger().snapshot().remove(0);
        assert_eq!((counts.dropped_items(), counts.queued), (0, 50), "{give_up:?}");
        sleep(3600 * SECOND).await;
        assert_eq!(witness.received_ids(), [0, 1, 2, 3, 4]);
        drop(pipeline);
    }
}

#[tokio::test(start_paused = true)]
async fn expired_batch_is_dropped_in_favor_of_a_newer_one() {
    let (pipeline, ingress, _) =
        start_with(&[Answer::Retry(None)], GiveUp::WhenFull(60 * SECOND), TWO_BATCHES);
    offer(&ingress, 0..2);
    sleep(30 * SECOND).await;
    assert_eq!(
        ingress.try_reserve(&[batch(9, 10, 10)]).err(),
        Some(ReserveError::Full),
        "not old yet"
    );
    sleep(60 * SECOND).await;
    let counts = pipeline.ledger().snapshot().remove(0);
    assert_eq!(counts.dropped_for(DropReason::RetriesExhausted), 10, "the oldest");
    let mut reserved = ingress
        .try_reserve(&[batch(9, 10, 10)])
        .expect("there is room now");
    ingress
        .send_reserved(batch(2, 10, 10), &mut reserved)
        .expect("the pipeline is open");
    sleep(600 * SECOND).await;
    let counts = pipeline.ledger().snapshot().remove(0);
    assert_eq!(
        (counts.dropped_items(), counts.queued),
        (10, 20),
        "nobody misses room, so nothing else is dropped"
    );
}

#[tokio::test(start_paused = true)]
async fn replayable_batch_never_expires() {
    let (pipeline, ingress, _) =
        start_with(&[Answer::Retry(None)], GiveUp::WhenFull(60 * SECOND), TWO_BATCHES);
    for id in 0..2 {
        let ack = Arc::new(Ack::new(|_| {}));
        send_or_drop(&ingress, batch(id, 10, 10).with_ack(ack));
    }
    sleep(600 * SECOND).await;
    assert_eq!(
        ingress.try_reserve(&[batch(9, 10, 10)]).err(),
        Some(ReserveError::Full)
    );
    sleep(600 * SECOND).await;
    assert_eq!(pipeline.ledger().snapshot()[0].dropped_items(), 0);
}

#[tokio::test(start_paused = true)]
async fn sink_is_failing_until_it_accepts_a_batch() {
    let (pipeline, ingress, _) = start(&[Answer::Retry(None), Answer::Refuse, Answer::Take]);
    let began = clock::now();
    offer(&ingress, 0..1);
    sleep(SECOND / 2).await;
    let failure = pipeline.ledger().snapshot()[0].failure.clone().expect("it fails");
    assert_eq!((failure.since, failure.problem.what.as_str()), (began, "busy"));
    sleep(SECOND).await;
    let failure = pipeline.ledger().snapshot()[0]
        .failure
        .clone()
        .expect("it refuses");
    assert_eq!(
        (failure.since, failure.problem.what.as_str()),
        (began, "no such tenant")
    );
    offer(&ingress, 1..2);
    sleep(SECOND).await;
    assert_eq!(pipeline.ledger().snapshot()[0].failure, None);
}

#[tokio::test(start_paused = true)]
async fn replayable_batch_can_expire_for_a_best_effort_sink() {
    let (sink, _) = FakeSink::scripted("optional", [Answer::Retry(None).at_once()]);
    let config = SinkTaskConfig {
        queue: TWO_BATCHES,
        retry: RetryConfig {
            give_up: GiveUp::WhenFull(60 * SECOND),
            ..RetryConfig::default()
        },
        ..SinkTaskConfig::default()
    };
    let (pipeline, ingress) = Pipeline::builder()
        .config(config)
        .sink_as(sink, Requirement::BestEffort)
        .start();
    for id in 0..2 {
        let ack = Arc::new(Ack::new(|_| {}));
        send_or_drop(&ingress, batch(id, 10, 10).with_ack(ack));
    }
    sleep(90 * SECOND).await;
    offer(&ingress, 2..3);
    sleep(SECOND).await;
    let counts = pipeline.ledger().snapshot().remove(0);
    assert_eq!(counts.dropped_for(DropReason::RetriesExhausted), 10);
}
