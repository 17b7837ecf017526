//! Tests of sinks that are added and removed while batches pass.

use std::time::Duration;

use pulsetrain_pipeline::{Ack, DropReason, Pipeline, Requirement, SinkRoute, SinkTaskConfig};

use crate::fake_sink::{Answer, FakeSink, batch, send_or_drop};

const MINUTE: Duration = Duration::from_secs(60);

#[tokio::test(start_paused = true)]
async fn sink_receives_only_batches_sent_while_it_is_attached() {
    let (stays, stays_saw) = FakeSink::scripted("stays", [Answer::Take.at_once()]);
    let (goes, goes_saw) = FakeSink::scripted("goes", [Answer::Take.at_once()]);
    let (comes, comes_saw) = FakeSink::scripted("comes", [Answer::Take.at_once()]);
    let (mut pipeline, ingress) = Pipeline::builder().sink(stays).sink(goes).start();
    send_or_drop(&ingress, batch(1, 1, 8));
    let removed = pipeline
        .remove_sink("goes", MINUTE)
        .expect("the sink is there")
        .await;
    send_or_drop(&ingress, batch(2, 1, 8));
    pipeline.add_sink(comes, Requirement::Required);
    send_or_drop(&ingress, batch(3, 1, 8));
    let names: Vec<_> = pipeline
        .ledger()
        .snapshot()
        .into_iter()
        .map(|counts| counts.name)
        .collect();
    assert_eq!(names, ["stays", "comes"]);
    let reports = pipeline.drain(MINUTE).await;

    assert_eq!(stays_saw.received_ids(), [1, 2, 3]);
    assert_eq!(goes_saw.received_ids(), [1]);
    assert_eq!(comes_saw.received_ids(), [3]);
    assert_eq!((removed.counts.delivered, removed.finished), (1, Ok(())));
    assert_eq!(goes_saw.books().finished, 1);
    assert_eq!(
        reports
            .iter()
            .map(|report| report.counts.delivered)
            .collect::<Vec<_>>(),
        [3, 1]
    );
}

#[tokio::test(start_paused = true)]
async fn removed_sink_drains_its_queue_until_its_deadline_without_blocking_others() {
    let slow = Answer::Take.after(MINUTE);
    let (goes, goes_saw) = FakeSink::again_and_again("goes", [slow]);
    let (stays, stays_saw) = FakeSink::scripted("stays", [Answer::Take.at_once()]);
    let (mut pipeline, ingress) = Pipeline::builder().sink(goes).sink(stays).start();
    for id in 1..=3 {
        send_or_drop(&ingress, batch(id, 1, 8));
    }
    let removed = pipeline
        .remove_sink("goes", MINUTE + MINUTE / 2)
        .expect("the sink is there");
    send_or_drop(&ingress, batch(4, 1, 8));
    let counts = removed.await.counts;
    assert_eq!(goes_saw.received_ids(), [1]);
    assert_eq!(
        (
            counts.delivered,
            counts.dropped_for(DropReason::DrainDeadline),
            counts.queued
        ),
        (1, 2, 0)
    );
    pipeline.drain(MINUTE).await;
    assert_eq!(stays_saw.received_ids(), [1, 2, 3, 4]);
}

#[tokio::test(start_paused = true)]
async fn unknown_sink_cannot_be_removed() {
    let (mut pipeline, _ingress) = Pipeline::builder().start();
    assert!(pipeline.remove_sink("nobody", MINUTE).is_none());
}

#[tokio::test(start_paused = true)]
async fn every_batch_reaches_either_the_replaced_sink_or_its_replacement() {
    let (old, old_saw) = FakeSink::scripted("replaced", [Answer::Take.after(MINUTE)]);
    let (new, new_saw) = FakeSink::scripted("replaced", [Answer::Take.at_once()]);
    let (mut pipeline, ingress) = Pipeline::builder().sink(old).start();
    send_or_drop(&ingress, batch(1, 1, 8));
    let leaving = pipeline
        .expect_sink("replaced", SinkRoute::ALL, SinkTaskConfig::default(), 2 * MINUTE)
        .expect("the old one is there");
    send_or_drop(&ingress, batch(2, 1, 8));
    assert_eq!(pipeline.ledger().snapshot()[0].queued, 1, "the new queue has it");
    assert!(pipeline.open_sink(new).is_ok(), "it is expected");
    tokio::time::sleep(MINUTE / 60).await;
    assert_eq!(
        new_saw.received_ids(),
        [2],
        "the new one does not wait for the old"
    );
    assert_eq!(leaving.await.counts.delivered, 1);
    assert_eq!(old_saw.received_ids(), [1]);
    pipeline.drain(MINUTE).await;
}

#[tokio::test(start_paused = true)]
async fn undelivered_batches_of_a_replaced_sink_reach_its_last_successor() {
    let (first, _) = FakeSink::scripted("replaced", [Answer::Retry(None).at_once()]);
    let (last, last_saw) = FakeSink::scripted("replaced", [Answer::Take.at_once()]);
    let (mut pipeline, ingress) = Pipeline::builder().sink(first).start();
    send_or_drop(&ingress, batch(1, 1, 8));
    let (long, short) = (2 * MINUTE, MINUTE);
    let replace = |pipeline: &mut Pipeline, within| {
        // Another limit, so that the expected queue is a new one.
        let config = SinkTaskConfig {
            concurrency: usize::from(within == short),
            ..SinkTaskConfig::default()
        };
        pipeline
            .expect_sink("replaced", SinkRoute::ALL, config, within)
            .expect("there is one before it")
    };
    let first = replace(&mut pipeline, long);
    // The second sink is never opened, and is removed before the first ends.
    replace(&mut pipeline, short).await;
    assert!(pipeline.open_sink(last).is_ok(), "it is expected");
    let counts = first.await.counts;
    assert_eq!((counts.accepted, counts.dropped_items()), (0, 0));
    pipeline.drain(MINUTE).await;
    assert_eq!(last_saw.received_ids(), [1]);
}

#[tokio::test(start_paused = true)]
async fn sink_that_is_never_opened_drops_its_queue_with_the_reason() {
    let (mut pipeline, ingress) = Pipeline::builder().start();
    assert!(
        pipeline
            .expect_sink("missing", SinkRoute::ALL, SinkTaskConfig::default(), MINUTE)
            .is_none()
    );
    send_or_drop(&ingress, batch(1, 3, 8));
    let report = pipeline.drain(MINUTE).await.remove(0);
    let [lost] = report.counts.dropped.as_slice() else {
        panic!("one reason")
    };
    assert_eq!((lost.reason, lost.items), (DropReason::DrainDeadline, 3));
    assert_eq!(lost.message.as_deref(), Some("the sink could not be opened"));
}

#[tokio::test(start_paused = true)]
async fn opening_an_unexpected_sink_returns_it() {
    let (sink, _) = FakeSink::scripted("unexpected", [Answer::Take.at_once()]);
    let (mut pipeline, _ingress) = Pipeline::builder().start();
    assert!(
        pipeline
            .open_sink(sink)
            .is_err_and(|sink| sink.name() == "unexpected")
    );
}

#[tokio::test(start_paused = true)]
async fn queue_of_a_sink_that_is_expected_again_keeps_its_batches() {
    let (sink, saw) = FakeSink::scripted("late", [Answer::Take.at_once()]);
    let (mut pipeline, ingress) = Pipeline::builder().start();
    assert!(
        pipeline
            .expect_sink("late", SinkRoute::ALL, SinkTaskConfig::default(), MINUTE)
            .is_none()
    );
    send_or_drop(&ingress, batch(1, 1, 8));
    assert!(
        pipeline
            .expect_sink("late", SinkRoute::ALL, SinkTaskConfig::default(), MINUTE)
            .is_none()
    );
    assert!(pipeline.open_sink(sink).is_ok(), "it is expected");
    pipeline.drain(MINUTE).await;
    assert_eq!(saw.received_ids(), [1]);
}

#[tokio::test(start_paused = true)]
async fn replaced_sink_passes_undelivered_batches_to_its_successor() {
    for failing in [Answer::Retry(None), Answer::Hang] {
        let (dead, _) = FakeSink::scripted("replaced", [failing.at_once()]);
        let (new, new_saw) = FakeSink::scripted("replaced", [Answer::Take.at_once()]);
        let (mut pipeline, ingress) = Pipeline::builder().sink(dead).start();
        let settled = std::sync::Arc::new(std::sync::Mutex::new(None));
        let seen = std::sync::Arc::clone(&settled);
        let ack = Ack::new(move |outcome| *seen.lock().unwrap() = Some(outcome));
        send_or_drop(&ingress, batch(1, 1, 8).with_ack(ack.into()));
        send_or_drop(&ingress, batch(2, 1, 8));
        let leaving = pipeline
            .expect_sink("replaced", SinkRoute::ALL, SinkTaskConfig::default(), MINUTE)
            .expect("the old one is there");
        assert!(pipeline.open_sink(new).is_ok(), "it is expected");
        let left = leaving.await.counts;
        assert_eq!((left.accepted, left.queued, left.dropped_items()), (0, 0, 0));
        let reports = pipeline.drain(MINUTE).await;
        assert_eq!(new_saw.received_ids(), [1, 2]);
        assert_eq!((reports[0].counts.accepted, reports[0].counts.delivered), (2, 2));
        let outcome = settled.lock().unwrap().take();
        assert!(outcome.is_some_and(|outcome| !outcome.is_cut_off));
    }
}

#[tokio::test(start_paused = true)]
async fn replaced_sink_counts_the_loss_if_its_successor_has_already_ended() {
    let (dead, _) = FakeSink::scripted("replaced", [Answer::Hang.at_once()]);
    let (new, _) = FakeSink::scripted("replaced", [Answer::Take.at_once()]);
    let (mut pipeline, ingress) = Pipeline::builder().sink(dead).start();
    send_or_drop(&ingress, batch(1, 3, 8));
    let leaving = pipeline
        .expect_sink("replaced", SinkRoute::ALL, SinkTaskConfig::default(), MINUTE)
        .expect("the old one is there");
    assert!(pipeline.open_sink(new).is_ok(), "it is expected");
    pipeline.drain(MINUTE).await;
    let left = leaving.await.counts;
    assert_eq!(
        (left.accepted, left.dropped_for(DropReason::DrainDeadline)),
        (3, 3)
    );
}
