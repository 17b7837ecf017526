//! Tests of merged and parallel requests: their number, their order, and that every batch is settled separately.

use std::{
    ops::Range,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use pulsetrain_otlp::Signal;
use pulsetrain_pipeline::{
    Ack, Delivery, DropReason, Ingress, MergeConfig, Pipeline, QueueConfig, RetryConfig, Sink, SinkCounts,
    SinkTaskConfig, clock,
};
use tokio::time::sleep;

use crate::{
    fake_sink::send_or_drop,
    receiver::{Receiver, batch_of},
};

const MILLI: Duration = Duration::from_millis(1);
const SECOND: Duration = Duration::from_secs(1);
const HOUR: Duration = Duration::from_secs(3600);

fn start(sink: Box<dyn Sink>, config: SinkTaskConfig) -> (Pipeline, Ingress) {
    Pipeline::builder().config(config).sink(sink).start()
}

fn merging(max_bytes: usize) -> SinkTaskConfig {
    SinkTaskConfig {
        merge: MergeConfig {
            max_bytes,
            ..MergeConfig::default()
        },
        retry: RetryConfig::default().without_jitter(),
        ..SinkTaskConfig::default()
    }
}

/// Offers a batch of one item for each of these numbers.
fn offer(ingress: &Ingress, signal: Signal, items: Range<u32>) {
    for item in items {
        send_or_drop(ingress, batch_of(signal, &[item]));
    }
}

fn counts(pipeline: &Pipeline) -> SinkCounts {
    pipeline.ledger().snapshot().remove(0)
}

fn refused() -> Delivery {
    Delivery::Refused("malformed".into())
}

fn retry() -> Delivery {
    Delivery::Retry {
        after: None,
        problem: "busy".into(),
    }
}

#[tokio::test(start_paused = true)]
async fn merging_sustains_a_thousand_messages_per_second_to_a_slow_receiver() {
    let receiver = Receiver::accepting(100 * MILLI);
    let (pipeline, ingress) = start(receiver.sink(), SinkTaskConfig::default());
    for round in 0..3000 {
        let signal = Signal::ALL[round as usize % 3];
        offer(&ingress, signal, round..round + 1);
        sleep(MILLI).await;
        assert!(counts(&pipeline).queued < 400, "it keeps up");
    }
    sleep(300 * MILLI).await;
    let counts = counts(&pipeline);
    assert_eq!(
        (counts.delivered, counts.dropped_items(), counts.queued),
        (3000, 0, 0)
    );
    assert!(receiver.requests().len() < 110, "{}", receiver.requests().len());
    let mut accepted = receiver.accepted();
    accepted.sort_unstable();
    assert!(accepted.into_iter().eq(0..3000), "everything once");
}

#[tokio::test(start_paused = true)]
async fn idle_sink_sends_a_batch_immediately_and_unmerged() {
    let receiver = Receiver::accepting(Duration::ZERO);
    let (_pipeline, ingress) = start(receiver.sink(), SinkTaskConfig::default());
    for item in 0..3 {
        let began = clock::now();
        offer(&ingress, Signal::Traces, item..item + 1);
        sleep(MILLI).await;
        let last = receiver.requests().pop().expect("it was sent");
        assert_eq!((last.items, last.began), (vec![item], began));
    }
}

#[tokio::test(start_paused = true)]
async fn full_requests_are_sent_concurrently_except_metrics_which_stay_sequential() {
    let receiver = Receiver::accepting(SECOND);
    let one = batch_of(Signal::Logs, &[0]).bytes().len();
    let (pipeline, ingress) = start(receiver.sink(), merging(2 * one));
    for signal in Signal::ALL {
        offer(&ingress, signal, 0..20);
    }
    pipeline.drain(HOUR).await;
    assert!(receiver.requests().iter().all(|request| request.items.len() <= 2));
    assert_eq!(receiver.most_in_flight(Signal::Metrics), 1);
    assert!(receiver.most_in_flight(Signal::Traces) > 1 && receiver.most_in_flight(Signal::Logs) > 1);
    let metrics = receiver.requests();
    let metrics = metrics.iter().filter(|request| request.signal == Signal::Metrics);
    assert!(
        metrics.flat_map(|request| request.items.clone()).eq(0..20),
        "in order"
    );
}

#[tokio::test(start_paused = true)]
async fn merge_delay_collects_further_batches_and_ends_with_the_drain() {
    let receiver = Receiver::accepting(Duration::ZERO);
    let mut config = SinkTaskConfig::default();
    config.merge.max_wait = SECOND;
    let (pipeline, ingress) = start(receiver.sink(), config);
    for item in 0..5 {
        offer(&ingress, Signal::Logs, item..item + 1);
        sleep(100 * MILLI).await;
    }
    assert_eq!(receiver.requests().len(), 0);
    sleep(SECOND).await;
    let requests = receiver.requests();
    assert_eq!((requests.len(), requests[0].items.len()), (1, 5));
    offer(&ingress, Signal::Logs, 5..6);
    let began = clock::now();
    assert_eq!(pipeline.drain(HOUR).await[0].counts.delivered, 6);
    assert!(clock::now() - began < 10 * MILLI, "the drain does not wait");
}

#[tokio::test(start_paused = true)]
async fn refused_batch_does_not_affect_the_batches_merged_with_it() {
    for bad in [0, 7, 15] {
        let receiver = Receiver::answering(Duration::ZERO, move |request| {
            if request.items.contains(&bad) {
                refused()
            } else {
                Delivery::Delivered
            }
        });
        let (pipeline, ingress) = start(receiver.sink(), SinkTaskConfig::default());
        offer(&ingress, Signal::Metrics, 0..16);
        let counts = pipeline.drain(HOUR).await.remove(0).counts;
        assert_eq!(
            (counts.delivered, counts.dropped_for(DropReason::Refused)),
            (15, 1)
        );
        assert!(
            receiver
                .accepted()
                .into_iter()
                .eq((0..16).filter(|item| *item != bad)),
            "in order"
        );
        assert!(receiver.requests().len() <= 9, "two for each halving");
    }
}

#[tokio::test(start_paused = true)]
async fn panic_of_a_merged_request_loses_only_the_batch_that_caused_it() {
    let receiver = Receiver::behaving(Duration::ZERO, |request| {
        if request.items.contains(&3) {
            Err("as scripted")
        } else {
            Ok(Delivery::Delivered)
        }
    });
    let (pipeline, ingress) = start(receiver.sink(), SinkTaskConfig::default());
    offer(&ingress, Signal::Logs, 0..8);
    let counts = pipeline.drain(HOUR).await.remove(0).counts;
    assert_eq!(
        (counts.delivered, counts.dropped_for(DropReason::SinkPanicked)),
        (7, 1)
    );
}

#[tokio::test(start_paused = true)]
async fn rejected_items_of_a_merged_request_are_counted_once_and_never_retried() {
    let receiver = Receiver::answering(Duration::ZERO, |_| Delivery::Partial {
        rejected: 3,
        problem: "too old".into(),
    });
    let (pipeline, ingress) = start(receiver.sink(), SinkTaskConfig::default());
    offer(&ingress, Signal::Logs, 0..8);
    let counts = pipeline.drain(HOUR).await.remove(0).counts;
    assert_eq!(
        (counts.delivered, counts.dropped_for(DropReason::Rejected)),
        (5, 3)
    );
    assert_eq!((receiver.requests().len(), counts.failure), (1, None));
}

#[tokio::test(start_paused = true)]
async fn each_merged_batch_settles_its_own_ack() {
    let receiver = Receiver::answering(SECOND, |request| {
        if request.items.contains(&1) {
            refused()
        } else {
            Delivery::Delivered
        }
    });
    let (_pipeline, ingress) = start(receiver.sink(), SinkTaskConfig::default());
    let settled = Arc::new(AtomicUsize::new(0));
    for item in 0..4 {
        let counter = Arc::clone(&settled);
        let ack = Ack::new(move |outcome| {
            assert!(!outcome.is_cut_off);
            counter.fetch_add(1, Ordering::Relaxed);
        });
        let batch = batch_of(Signal::Metrics, &[item]).with_ack(ack.into());
        ingress.try_send_or_drop(batch).expect("the pipeline is open");
    }
    // All four batches are rejected, then the first two, then each of these, then the others are accepted.
    for (time, expected) in [(1, 0), (1, 0), (1, 1), (1, 2), (1, 4)] {
        sleep(time * SECOND + MILLI).await;
        assert_eq!(settled.load(Ordering::Relaxed), expected);
    }
}

#[tokio::test(start_paused = true)]
async fn batch_over_the_limit_of_a_request_is_split_and_settled_when_its_last_part_is() {
    let receiver = Receiver::accepting(SECOND);
    let (pipeline, ingress) = start(receiver.sink_up_to(1000), SinkTaskConfig::default());
    let settled = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&settled);
    let ack = Ack::new(move |_| {
        counter.fetch_add(1, Ordering::Relaxed);
    });
    let items: Vec<u32> = (0..1000).collect();
    let batch = batch_of(Signal::Logs, &items).with_ack(ack.into());
    let parts = batch.bytes().len().div_ceil(1000);
    assert!(parts > 5);
    ingress.try_send_or_drop(batch).expect("the pipeline is open");
    sleep(SECOND + MILLI).await;
    let under_way = counts(&pipeline);
    assert!(under_way.delivered > 0 && under_way.queued > 0, "{under_way:?}");
    assert_eq!(under_way.delivered + under_way.queued, 1000);
    assert_eq!(settled.load(Ordering::Relaxed), 0);
    let counts = pipeline.drain(HOUR).await.remove(0).counts;
    assert_eq!(
        (counts.accepted, counts.delivered, counts.dropped_items()),
        (1000, 1000, 0)
    );
    assert_eq!(settled.load(Ordering::Relaxed), 1);
    let mut accepted = receiver.accepted();
    accepted.sort_unstable();
    assert!(accepted.into_iter().eq(0..1000));
    let requests = receiver.requests();
    assert!(requests.iter().all(|request| request.bytes <= 1000));
    assert!(requests.len() <= parts + 1, "{} for {parts}", requests.len());
}

#[tokio::test(start_paused = true)]
async fn request_too_large_for_the_receiver_is_halved_down_to_the_oversized_item() {
    // Items from 900 on are too large, alone or with others.
    let receiver = Receiver::answering(Duration::ZERO, |request| {
        if request.bytes > 300 || request.items.iter().any(|item| *item >= 900) {
            Delivery::TooLarge("too large".into())
        } else {
            Delivery::Delivered
        }
    });
    let (pipeline, ingress) = start(receiver.sink(), SinkTaskConfig::default());
    let items: Vec<u32> = (0..100).chain([900]).chain(100..200).collect();
    send_or_drop(&ingress, batch_of(Signal::Traces, &items));
    offer(&ingress, Signal::Traces, 200..210);
    let counts = pipeline.drain(HOUR).await.remove(0).counts;
    assert_eq!(
        (counts.delivered, counts.dropped_for(DropReason::Refused)),
        (210, 1)
    );
    let mut accepted = receiver.accepted();
    accepted.sort_unstable();
    assert!(accepted.into_iter().eq(0..210));
}

#[tokio::test(start_paused = true)]
async fn failing_sink_is_probed_with_one_request_at_a_time() {
    let healthy_at = clock::now() + 10 * SECOND;
    let receiver = Receiver::answering(100 * MILLI, move |_| {
        if clock::now() < healthy_at {
            retry()
        } else {
            Delivery::Delivered
        }
    });
    let (pipeline, ingress) = start(receiver.sink(), merging(0));
    offer(&ingress, Signal::Logs, 0..50);
    sleep(9 * SECOND).await;
    let requests = receiver.requests();
    let (together, probes) = requests.split_at(4);
    assert!(together.iter().all(|request| request.began == requests[0].began));
    assert!(
        probes.len() <= 4,
        "a backoff of 1, 1.5, 2.25, 3.375 s: {}",
        probes.len()
    );
    for pair in probes.windows(2) {
        assert!(pair[1].began - pair[0].began > SECOND, "one after the other");
    }
    let counts = pipeline.drain(HOUR).await.remove(0).counts;
    assert_eq!((counts.delivered, counts.dropped_items()), (50, 0));
    let mut accepted = receiver.accepted();
    accepted.sort_unstable();
    assert!(accepted.into_iter().eq(0..50), "everything once");
}

#[tokio::test(start_paused = true)]
async fn drain_deadline_cancels_every_request_in_flight_and_counts_its_batches() {
    let receiver = Receiver::accepting(HOUR);
    let (pipeline, ingress) = start(receiver.sink(), merging(0));
    offer(&ingress, Signal::Logs, 0..10);
    sleep(SECOND).await;
    let counts = pipeline.drain(SECOND).await.remove(0).counts;
    assert_eq!(receiver.most_in_flight(Signal::Logs), 4);
    assert_eq!(
        (counts.queued, counts.dropped_for(DropReason::DrainDeadline)),
        (0, 10)
    );
}

#[tokio::test(start_paused = true)]
async fn batch_that_ends_inside_a_field_is_not_merged_with_another() {
    let receiver = Receiver::accepting(SECOND);
    let (pipeline, ingress) = start(receiver.sink(), SinkTaskConfig::default());
    let cut = batch_of(Signal::Logs, &[2]);
    let cut = cut.with_contents(1, cut.bytes().slice(..cut.bytes().len() - 1));
    offer(&ingress, Signal::Logs, 0..2);
    send_or_drop(&ingress, cut.clone());
    offer(&ingress, Signal::Logs, 3..5);
    let counts = pipeline.drain(HOUR).await.remove(0).counts;
    assert_eq!(counts.delivered, 5);
    let items: Vec<_> = receiver
        .requests()
        .into_iter()
        .map(|request| request.items)
        .collect();
    assert_eq!(items, [vec![0, 1], vec![], vec![3, 4]]);
    assert_eq!(receiver.requests()[1].bytes, cut.bytes().len());
}

#[tokio::test(start_paused = true)]
async fn queue_permit_is_released_when_the_last_part_of_a_batch_is_settled() {
    let receiver = Receiver::accepting(SECOND);
    let batch = batch_of(Signal::Metrics, &(0..100).collect::<Vec<_>>());
    let config = SinkTaskConfig {
        queue: QueueConfig {
            max_batches: 1,
            max_bytes: batch.bytes().len(),
        },
        ..SinkTaskConfig::default()
    };
    let (pipeline, ingress) = start(receiver.sink_up_to(batch.bytes().len() / 2), config);
    send_or_drop(&ingress, batch.clone());
    sleep(SECOND + SECOND / 2).await;
    assert!(ingress.try_reserve(std::slice::from_ref(&batch)).is_err());
    sleep(5 * SECOND).await;
    assert!(ingress.try_reserve(&[batch]).is_ok());
    assert_eq!(counts(&pipeline).queued_bytes, 0);
}
