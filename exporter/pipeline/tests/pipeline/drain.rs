//! Tests of the drain: the batches that are still sent, the batches that are dropped at the deadline, and the end of each
//! sink.

use std::{future::pending, panic::resume_unwind, time::Duration};

use pulsetrain_pipeline::{
    Batch, BoxFuture, Delivery, DropReason, Dropped, Pipeline, PipelineConfig, Problem, Sink, SinkReport,
    clock,
};

use crate::fake_sink::{Answer, FakeSink, Move, batch, send_or_drop};

const SECOND: Duration = Duration::from_secs(1);

/// Offers three batches of one item each to a sink with this script and drains at once. Also returns the duration.
async fn drain_of_three(script: Move, within: Duration) -> (SinkReport, Duration) {
    let (sink, witness) = FakeSink::scripted("test", [script]);
    let (pipeline, ingress) = Pipeline::builder().sink(sink).start();
    for id in 0..3 {
        send_or_drop(&ingress, batch(id, 1, 10));
    }
    // The worker holds its first batch, as in a pipeline that has been running for a while.
    tokio::task::yield_now().await;
    let start = clock::now();
    let report = pipeline.drain(within).await.remove(0);
    assert_eq!(witness.books().finished, 1);
    assert_eq!(report.counts.queued, 0);
    (report, clock::now() - start)
}

fn only_loss(report: &SinkReport) -> &Dropped {
    let [loss] = report.counts.dropped.as_slice() else {
        panic!("one reason: {report:?}")
    };
    loss
}

#[tokio::test(start_paused = true)]
async fn drain_delivers_everything_and_ends_before_its_deadline() {
    let (report, took) = drain_of_three(Answer::Take.after(SECOND), 3600 * SECOND).await;
    assert_eq!((report.counts.delivered, report.finished), (3, Ok(())));
    assert!(took <= 3 * SECOND, "{took:?}");
}

#[tokio::test(start_paused = true)]
async fn drain_deadline_cancels_the_delivery_in_flight_and_drops_the_queue() {
    let (report, took) = drain_of_three(Answer::Take.after(4 * SECOND), 6 * SECOND).await;
    assert_eq!(report.counts.delivered, 1);
    assert_eq!(
        (only_loss(&report).reason, only_loss(&report).items),
        (DropReason::DrainDeadline, 2)
    );
    assert!(
        (6 * SECOND..6 * SECOND + SECOND / 100).contains(&took),
        "{took:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn batch_with_a_retry_after_the_deadline_is_dropped_at_once_with_its_message() {
    let (report, took) = drain_of_three(Answer::Retry(Some(60 * SECOND)).at_once(), 10 * SECOND).await;
    let loss = only_loss(&report);
    assert_eq!(
        (loss.reason, loss.items, loss.message.as_deref()),
        (DropReason::DrainDeadline, 3, Some("busy"))
    );
    assert_eq!(
        report.counts.retries, 1,
        "the receiver asked for a pause, and had it"
    );
    assert_eq!(took, Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn drain_retries_a_sink_in_backoff_at_once_and_delivers_everything() {
    let mut script = vec![Answer::Retry(None).at_once(); 8];
    script.push(Answer::Take.at_once());
    let (sink, witness) = FakeSink::scripted("back again", script);
    let (pipeline, ingress) = Pipeline::builder().sink(sink).start();
    for id in 0..3 {
        send_or_drop(&ingress, batch(id, 1, 10));
    }
    // Eight failures; the ninth attempt would be about 15 s later, long after the deadline.
    while witness.books().attempts.len() < 8 {
        tokio::time::sleep(SECOND / 10).await;
    }
    let (start, before) = (clock::now(), pipeline.ledger().snapshot()[0].delivered);
    let report = pipeline.drain(5 * SECOND).await.remove(0);
    assert_eq!(
        (before, report.counts.delivered, report.counts.dropped_items()),
        (0, 3, 0)
    );
    assert!(clock::now() - start < SECOND);
}

#[tokio::test(start_paused = true)]
async fn drain_retries_until_its_deadline() {
    let (report, took) = drain_of_three(Answer::Retry(None).at_once(), 10 * SECOND).await;
    assert_eq!(
        (only_loss(&report).reason, only_loss(&report).items),
        (DropReason::DrainDeadline, 3)
    );
    assert!(report.counts.retries >= 4, "{}", report.counts.retries);
    assert!(took <= 10 * SECOND, "{took:?}");
}

#[tokio::test(start_paused = true)]
async fn resolved_failure_is_not_reported_as_the_reason_for_drops_at_the_deadline() {
    let script = [
        Answer::Retry(Some(SECOND)).at_once(),
        Answer::Take.at_once(),
        Answer::Hang.at_once(),
    ];
    let (sink, witness) = FakeSink::scripted("test", script);
    let (pipeline, ingress) = Pipeline::builder().sink(sink).start();
    for id in 0..3 {
        send_or_drop(&ingress, batch(id, 1, 10));
    }
    tokio::time::sleep(2 * SECOND).await;
    assert_eq!(
        witness.books().attempts.len(),
        3,
        "one batch has arrived, and the next one hangs"
    );
    let report = pipeline.drain(Duration::ZERO).await.remove(0);
    let message = only_loss(&report).message.as_deref();
    assert_eq!(
        (only_loss(&report).items, message),
        (2, Some("still in delivery at the deadline"))
    );
}

#[tokio::test(start_paused = true)]
async fn ingress_closes_when_the_drain_begins_even_with_a_delivery_in_flight() {
    let (sink, _) = FakeSink::scripted("slow", [Answer::Take.after(60 * SECOND)]);
    let (pipeline, ingress) = Pipeline::builder().sink(sink).start();
    send_or_drop(&ingress, batch(0, 1, 10));
    let ledger = pipeline.ledger().clone();
    let drain = tokio::spawn(pipeline.drain(3600 * SECOND));
    tokio::time::sleep(SECOND).await;
    assert!(ingress.try_send_or_drop(batch(1, 1, 10)).is_err());
    let counts = ledger.snapshot().remove(0);
    assert_eq!((counts.queued, counts.dropped_for(DropReason::Closed)), (1, 1));
    assert_eq!(
        drain.await.expect("the drain does not panic")[0].counts.delivered,
        1
    );
}

#[tokio::test(start_paused = true)]
async fn drain_without_time_counts_every_item() {
    let (report, _) = drain_of_three(Answer::Hang.at_once(), Duration::ZERO).await;
    assert_eq!(only_loss(&report).items, 3);
}

#[tokio::test(start_paused = true)]
async fn drain_of_any_length_does_not_panic() {
    let (report, _) = drain_of_three(Answer::Take.at_once(), Duration::MAX).await;
    assert_eq!(report.counts.delivered, 3);
}

#[tokio::test(start_paused = true)]
async fn pipeline_dropped_without_a_drain_counts_its_items_as_abandoned() {
    let (sink, _) = FakeSink::scripted("hanging", [Answer::Hang.at_once()]);
    let (pipeline, ingress) = Pipeline::builder().sink(sink).start();
    send_or_drop(&ingress, batch(0, 3, 10));
    send_or_drop(&ingress, batch(1, 4, 10));
    let ledger = pipeline.ledger().clone();
    drop(pipeline);
    tokio::time::sleep(SECOND).await;
    assert!(ingress.try_send_or_drop(batch(2, 1, 10)).is_err());
    let counts = ledger.snapshot().remove(0);
    assert_eq!(
        (
            counts.dropped_for(DropReason::Abandoned),
            counts.dropped_for(DropReason::Closed)
        ),
        (7, 1)
    );
}

/// A sink that only tests how it ends.
struct Ending(fn() -> BoxFuture<'static, Result<(), Problem>>);

impl Sink for Ending {
    fn name(&self) -> &str {
        "ending"
    }

    fn deliver<'a>(&'a mut self, _batch: &'a Batch) -> BoxFuture<'a, Delivery> {
        Box::pin(async { Delivery::Delivered })
    }

    fn finish(&mut self) -> BoxFuture<'_, Result<(), Problem>> {
        (self.0)()
    }
}

#[tokio::test(start_paused = true)]
async fn sink_that_fails_panics_or_hangs_in_finish_is_reported_and_others_finish() {
    let config = PipelineConfig {
        finish_grace: 2 * SECOND,
        ..PipelineConfig::default()
    };
    let (well, _) = FakeSink::scripted("well", [Answer::Take.at_once()]);
    let (pipeline, _ingress) = Pipeline::builder()
        .config(config)
        .sink(Box::new(Ending(|| {
            Box::pin(async { Err("no space left on out.jsonl".into()) })
        })))
        .sink(Box::new(Ending(|| resume_unwind(Box::new("as scripted")))))
        .sink(Box::new(Ending(|| Box::pin(pending()))))
        .sink(well)
        .start();
    let start = clock::now();
    let ends: Vec<_> = pipeline
        .drain(SECOND)
        .await
        .into_iter()
        .map(|report| report.finished)
        .collect();
    let words: Vec<_> = ends
        .iter()
        .map(|end| end.as_ref().err().map_or("", |problem| problem.what.as_str()))
        .collect();
    assert_eq!(words[0], "no space left on out.jsonl");
    assert!(words[1].contains("as scripted"), "{}", words[1]);
    assert!(words[2].contains("in time"), "{}", words[2]);
    assert_eq!(ends[3], Ok(()));
    let took = clock::now() - start;
    assert!(
        (2 * SECOND..2 * SECOND + SECOND / 100).contains(&took),
        "the grace is kept, and is a bound: {took:?}"
    );
}

/// A sink whose delivery hangs, and panics when it is cancelled.
struct Clinging;

struct PanicsWhenDropped;

impl Drop for PanicsWhenDropped {
    fn drop(&mut self) {
        resume_unwind(Box::new("as scripted"));
    }
}

impl Sink for Clinging {
    fn name(&self) -> &str {
        "clinging"
    }

    fn deliver<'a>(&'a mut self, _batch: &'a Batch) -> BoxFuture<'a, Delivery> {
        Box::pin(async {
            let _clings = PanicsWhenDropped;
            pending().await
        })
    }
}

#[tokio::test(start_paused = true)]
async fn panic_of_a_canceled_delivery_ends_its_worker_and_is_counted() {
    let (well, _) = FakeSink::scripted("well", [Answer::Take.at_once()]);
    let (pipeline, ingress) = Pipeline::builder().sink(Box::new(Clinging)).sink(well).start();
    for id in 0..2 {
        send_or_drop(&ingress, batch(id, 1, 10));
    }
    let reports = pipeline.drain(SECOND).await;
    assert!(
        reports[0]
            .finished
            .as_ref()
            .is_err_and(|problem| problem.what.contains("its worker failed")),
        "{reports:?}"
    );
    assert_eq!(
        (
            reports[0].counts.queued,
            reports[0].counts.dropped_for(DropReason::Abandoned)
        ),
        (0, 2)
    );
    assert_eq!((reports[1].counts.delivered, &reports[1].finished), (2, &Ok(())));
}
