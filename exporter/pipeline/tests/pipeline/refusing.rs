//! Receivers that refuse every request, one batch or one signal, that accept requests of some size only, and that limit their rate.

use std::time::Duration;

use pulsetrain_otlp::Signal;
use pulsetrain_pipeline::{
    Delivery, DropReason, GiveUp, Ingress, Pipeline, RetryConfig, SinkCounts, SinkTaskConfig, clock,
};
use tokio::time::sleep;

use crate::{
    fake_sink::send_or_drop,
    receiver::{Receiver, batch_of},
};

const SECOND: Duration = Duration::from_secs(1);
const HOUR: Duration = Duration::from_secs(3600);

fn start(receiver: &Receiver, give_up: GiveUp) -> (Pipeline, Ingress) {
    let config = SinkTaskConfig {
        retry: RetryConfig {
            give_up,
            ..RetryConfig::default().without_jitter()
        },
        ..SinkTaskConfig::default()
    };
    Pipeline::builder().config(config).sink(receiver.sink()).start()
}

fn offer(ingress: &Ingress, signal: Signal, items: std::ops::Range<u32>) {
    for item in items {
        send_or_drop(ingress, batch_of(signal, &[item]));
    }
}

fn counts(pipeline: &Pipeline) -> SinkCounts {
    pipeline.ledger().snapshot().remove(0)
}

fn denied() -> Delivery {
    Delivery::Denied("HTTP status 403 Forbidden".into())
}

fn unsupported() -> Delivery {
    Delivery::Unsupported("HTTP status 404 Not Found".into())
}

#[tokio::test(start_paused = true)]
async fn batches_wait_while_every_request_is_refused_and_none_is_divided() {
    for answer in [denied, unsupported] {
        let relents = clock::now() + 20 * SECOND;
        let receiver = Receiver::answering(Duration::ZERO, move |_| {
            if clock::now() < relents {
                answer()
            } else {
                Delivery::Delivered
            }
        });
        let (pipeline, ingress) = start(&receiver, GiveUp::Never);
        for signal in Signal::ALL {
            offer(&ingress, signal, 0..300);
        }
        sleep(19 * SECOND).await;
        let held = counts(&pipeline);
        assert_eq!((held.queued, held.dropped_items()), (900, 0), "{held:?}");
        let problem = held.failure.expect("it fails").problem.to_string();
        assert!(
            problem.ends_with("; the data is held while there is room"),
            "{problem}"
        );
        let probes = receiver.requests();
        assert!(probes.len() <= 10, "{} requests", probes.len());
        assert!(
            probes[3..].iter().all(|probe| probe.items.len() == 1),
            "a probe has one batch"
        );
        sleep(30 * SECOND).await;
        assert_eq!(
            (counts(&pipeline).delivered, counts(&pipeline).dropped_items()),
            (900, 0)
        );
        let requests = receiver.requests();
        assert!(requests.len() <= 18, "{} requests", requests.len());
        let metrics = requests.iter().filter(|request| {
            request.signal == Signal::Metrics && request.delivery == Some(Delivery::Delivered)
        });
        assert!(
            metrics.flat_map(|request| request.items.clone()).eq(0..300),
            "in order"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn batch_on_which_a_receiver_fails_is_dropped_alone_among_accepted_ones() {
    for signal in Signal::ALL {
        for bad in [0, 7, 15] {
            let receiver = Receiver::answering(Duration::ZERO, move |request| {
                if request.items.contains(&bad) {
                    denied()
                } else {
                    Delivery::Delivered
                }
            });
            let (pipeline, ingress) = start(&receiver, GiveUp::Never);
            offer(&ingress, signal, 0..16);
            let counts = pipeline.drain(HOUR).await.remove(0).counts;
            assert_eq!(
                (counts.delivered, counts.dropped_for(DropReason::Refused)),
                (15, 1),
                "{signal} {bad}"
            );
            let accepted = receiver.accepted();
            assert!(signal != Signal::Metrics || accepted.is_sorted(), "{accepted:?}");
            assert!(receiver.requests().len() <= 24, "{}", receiver.requests().len());
        }
    }
}

#[tokio::test(start_paused = true)]
async fn refused_signal_neither_delays_nor_outlives_the_accepted_ones() {
    for (answer, reason) in [
        (denied as fn() -> Delivery, DropReason::Refused),
        (unsupported, DropReason::UnsupportedSignal),
    ] {
        let receiver = Receiver::answering(Duration::ZERO, move |request| {
            if request.signal == Signal::Metrics {
                answer()
            } else {
                Delivery::Delivered
            }
        });
        let (pipeline, ingress) = start(&receiver, GiveUp::Never);
        for round in 0..100 {
            for signal in Signal::ALL {
                offer(&ingress, signal, round..round + 1);
            }
            sleep(SECOND).await;
        }
        let counts = counts(&pipeline);
        assert_eq!(
            (counts.delivered, counts.dropped_for(reason)),
            (200, 100),
            "{counts:?}"
        );
        let late = receiver.requests().into_iter().skip(50);
        let refused = late.filter(|request| request.signal == Signal::Metrics).count();
        assert!(refused <= 100, "each batch of metrics is refused once: {refused}");
    }
}

#[tokio::test(start_paused = true)]
async fn job_that_has_to_end_loses_refused_batches_at_once() {
    let receiver = Receiver::answering(Duration::ZERO, |_| denied());
    let (pipeline, ingress) = start(&receiver, GiveUp::AfterOutage(60 * SECOND));
    offer(&ingress, Signal::Logs, 0..8);
    let counts = pipeline.drain(HOUR).await.remove(0).counts;
    assert_eq!(
        (counts.delivered, counts.dropped_for(DropReason::Refused)),
        (0, 8)
    );
    assert_eq!(receiver.requests().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn drain_to_a_refusing_receiver_ends_at_its_deadline_with_the_count() {
    let receiver = Receiver::answering(Duration::ZERO, |_| denied());
    let (pipeline, ingress) = start(&receiver, GiveUp::Never);
    offer(&ingress, Signal::Logs, 0..8);
    let began = clock::now();
    let counts = pipeline.drain(5 * SECOND).await.remove(0).counts;
    assert!(clock::now() - began <= 5 * SECOND);
    assert_eq!(
        (counts.delivered, counts.dropped_for(DropReason::DrainDeadline)),
        (0, 8)
    );
}

/// Sends 300 batches of about 10 kB, and returns the requests.
async fn sent_to(receiver: &Receiver) -> usize {
    let (pipeline, ingress) = start(receiver, GiveUp::Never);
    for batch in 0..300 {
        let items: Vec<u32> = (batch * 1500..(batch + 1) * 1500).collect();
        send_or_drop(&ingress, batch_of(Signal::Logs, &items));
    }
    let counts = pipeline.drain(HOUR).await.remove(0).counts;
    assert_eq!(
        (counts.delivered, counts.dropped_items()),
        (450_000, 0),
        "{counts:?}"
    );
    receiver.requests().len()
}

#[tokio::test(start_paused = true)]
async fn size_that_a_receiver_accepts_is_learned_whatever_it_answers_to_a_larger_request() {
    let too_large = || Delivery::TooLarge("received message larger than max".into());
    let retry = || Delivery::Retry {
        after: None,
        problem: "429".into(),
    };
    let reset = || Delivery::Unreachable("connection reset".into());
    for answer in [too_large as fn() -> Delivery, retry, reset] {
        let receiver = Receiver::answering(Duration::ZERO, move |request| {
            if request.bytes > 100_000 {
                answer()
            } else {
                Delivery::Delivered
            }
        });
        let requests = sent_to(&receiver).await;
        let bytes: usize = receiver
            .requests()
            .iter()
            .filter(|request| request.bytes <= 100_000)
            .map(|request| request.bytes)
            .sum();
        let needed = bytes.div_ceil(100_000);
        assert!(2 * requests <= 3 * needed, "{requests} for {needed}");
    }
}

/// Sends 400 batches of about 10 kB to a bucket of 120 kB that is filled with 100 kB a second. Returns the number of requests, and
/// of those that hold all.
async fn sent_to_a_bucket() -> (usize, usize) {
    let (mut room, mut filled) = (120_000.0, clock::now());
    let receiver = Receiver::answering(Duration::ZERO, move |request| {
        let now = clock::now();
        room = f64::min(120_000.0, room + (now - filled).as_secs_f64() * 100_000.0);
        filled = now;
        if request.bytes as f64 > room {
            return Delivery::Retry {
                after: None,
                problem: "429".into(),
            };
        }
        room -= request.bytes as f64;
        Delivery::Delivered
    });
    let mut config = SinkTaskConfig {
        retry: RetryConfig {
            initial: Duration::from_millis(200),
            max: SECOND,
            ..RetryConfig::default()
        },
        ..SinkTaskConfig::default()
    };
    config.merge.max_bytes = 53_000;
    let (pipeline, ingress) = Pipeline::builder().config(config).sink(receiver.sink()).start();
    let mut bytes = 0;
    for batch in 0..400 {
        let items: Vec<u32> = (batch * 1500..(batch + 1) * 1500).collect();
        let batch = batch_of(Signal::Logs, &items);
        bytes += batch.bytes().len();
        send_or_drop(&ingress, batch);
    }
    let counts = pipeline.drain(HOUR).await.remove(0).counts;
    assert_eq!(
        (counts.delivered, counts.dropped_items()),
        (600_000, 0),
        "{counts:?}"
    );
    (receiver.requests().len(), bytes.div_ceil(53_000))
}

#[tokio::test(start_paused = true)]
async fn receiver_that_limits_its_rate_gets_its_requests_at_its_pace() {
    for _ in 0..20 {
        let (requests, needed) = sent_to_a_bucket().await;
        assert!(2 * requests <= 3 * needed, "{requests} for {needed}");
    }
}
