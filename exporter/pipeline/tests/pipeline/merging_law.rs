//! The invariant of the ledger for merged, parallel, divided and split requests, in random worlds: at every moment
//! accepted = delivered + dropped + queued, and in the end every item was accepted once by the receiver or is counted as
//! dropped.

use std::{cell::RefCell, collections::BTreeSet, time::Duration};

use proptest::{
    collection::vec,
    prelude::*,
    test_runner::{Config, TestRunner},
};
use pulsetrain_otlp::Signal;
use pulsetrain_pipeline::{
    Delivery, DropReason, GiveUp, Ingress, Ledger, MergeConfig, Pipeline, Problem, RetryConfig, SinkCounts,
    SinkTaskConfig,
};
use tokio::time::sleep;

use crate::{
    receiver::{Receiver, Request, batch_of},
    scenario::{End, millis, runtime},
};

/// The answer of a receiver to a request without a bad item.
#[derive(Clone, Copy, Debug)]
enum Answer {
    Accept,
    Retry(Option<Duration>),
    Reject(u64),
    Deny,
    DoNotSupport,
}

#[derive(Clone, Debug)]
struct World {
    /// The signal and the number of items of each batch, and the delay after the previous batch.
    batches: Vec<(Signal, u32, Duration)>,
    answers: Vec<Answer>,
    latency: Duration,
    /// The period of bad items: every `bad`-th item is rejected, panics or is too large, alone or with others.
    bad: u32,
    max_bytes: usize,
    max_wait: Duration,
    max_request_bytes: usize,
    concurrency: usize,
    give_up: GiveUp,
    end: End,
}

fn worlds() -> impl Strategy<Value = World> {
    let signals = prop_oneof![Just(Signal::Traces), Just(Signal::Metrics), Just(Signal::Logs)];
    let gaps = prop_oneof![3 => Just(Duration::ZERO), 1 => millis(0..60)];
    let answers = prop_oneof![
        12 => Just(Answer::Accept),
        6 => proptest::option::of(millis(0..50)).prop_map(Answer::Retry),
        2 => (0_u64..40).prop_map(Answer::Reject),
        1 => Just(Answer::Deny),
        1 => Just(Answer::DoNotSupport),
    ];
    let give_up = prop_oneof![
        2 => Just(GiveUp::Never),
        1 => millis(20..200).prop_map(GiveUp::WhenFull),
        1 => millis(20..200).prop_map(GiveUp::AfterOutage),
    ];
    let ends = prop_oneof![6 => millis(0..400).prop_map(End::Drain), 1 => Just(End::DropWithoutDrain)];
    let requests = (0_usize..400, millis(0..30), 30_usize..400, 0_usize..6);
    (
        vec((signals, 1_u32..30, gaps), 0..60),
        vec(answers, 1..10),
        millis(0..40),
        5_u32..200,
        requests,
        give_up,
        ends,
    )
        .prop_map(
            |(
                batches,
                answers,
                latency,
                bad,
                (max_bytes, max_wait, max_request_bytes, concurrency),
                give_up,
                end,
            )| {
                World {
                    batches,
                    answers,
                    latency,
                    bad,
                    max_bytes,
                    max_wait,
                    max_request_bytes,
                    concurrency,
                    give_up,
                    end,
                }
            },
        )
}

impl World {
    fn receiver(&self) -> Receiver {
        let (answers, bad, mut number) = (self.answers.clone(), self.bad, 0);
        Receiver::behaving(self.latency, move |request: &Request| {
            number += 1;
            let problem = Problem::new("as scripted");
            match request.items.iter().find(|item| *item % bad == bad - 1) {
                Some(item) if item % 3 == 0 => return Err("as scripted"),
                Some(item) if item % 3 == 1 => return Ok(Delivery::TooLarge(problem)),
                Some(_) => return Ok(Delivery::Refused(problem)),
                None => {}
            }
            Ok(match answers[number % answers.len()] {
                Answer::Accept => Delivery::Delivered,
                Answer::Retry(after) => Delivery::Retry { after, problem },
                Answer::Reject(rejected) => Delivery::Partial { rejected, problem },
                Answer::Deny => Delivery::Denied(problem),
                Answer::DoNotSupport => Delivery::Unsupported(problem),
            })
        })
    }

    fn config(&self) -> SinkTaskConfig {
        let retry = RetryConfig {
            initial: Duration::from_millis(10),
            max: Duration::from_millis(50),
            give_up: self.give_up,
            ..RetryConfig::default()
        };
        SinkTaskConfig {
            retry: retry.without_jitter(),
            merge: MergeConfig {
                max_bytes: self.max_bytes,
                max_wait: self.max_wait,
            },
            concurrency: self.concurrency,
            ..SinkTaskConfig::default()
        }
    }

    async fn happen(&self) -> SinkCounts {
        let receiver = self.receiver();
        let (pipeline, ingress) = Pipeline::builder()
            .config(self.config())
            .sink(receiver.sink_up_to(self.max_request_bytes))
            .start();
        let ledger = pipeline.ledger().clone();
        let put = self.put(&ingress, &ledger).await;
        match self.end {
            End::Drain(within) => drop(pipeline.drain(within).await),
            End::DropWithoutDrain => {
                drop(pipeline);
                sleep(Duration::from_millis(2)).await;
            }
        }
        let counts = ledger.snapshot().remove(0);
        assert_law(&counts, put);
        assert_eq!(
            (counts.queued, counts.queued_batches, counts.queued_bytes),
            (0, 0, 0)
        );
        self.assert_delivered(&receiver, &counts);
        counts
    }

    /// Sends all batches, and returns the number of their items.
    async fn put(&self, ingress: &Ingress, ledger: &Ledger) -> u64 {
        let mut put = 0;
        for (signal, items, gap) in &self.batches {
            let numbers: Vec<u32> = (put..put + items).collect();
            ingress
                .try_send_or_drop(batch_of(*signal, &numbers))
                .expect("the pipeline is open");
            put += items;
            if !gap.is_zero() {
                sleep(*gap).await;
            }
            assert_law(&ledger.snapshot()[0], put.into());
        }
        put.into()
    }

    /// Checks that the receiver accepted every item that is counted as delivered, none twice, and metrics in order.
    fn assert_delivered(&self, receiver: &Receiver, counts: &SinkCounts) {
        let accepted = receiver.accepted();
        let once: BTreeSet<u32> = accepted.iter().copied().collect();
        assert_eq!(once.len(), accepted.len(), "an item was accepted twice");
        let rejected = counts.dropped_for(DropReason::Rejected);
        assert_eq!(accepted.len() as u64, counts.delivered + rejected, "{counts:?}");
        assert!(receiver.most_in_flight(Signal::Metrics) <= 1);
        let most: usize = Signal::ALL
            .into_iter()
            .map(|signal| receiver.most_in_flight(signal))
            .max()
            .unwrap_or(0);
        assert!(most <= self.concurrency.max(1), "{most}");
        let metrics = receiver.requests();
        let metrics = metrics.iter().filter(|request| {
            request.signal == Signal::Metrics
                && matches!(
                    request.delivery,
                    Some(Delivery::Delivered | Delivery::Partial { .. })
                )
        });
        assert!(metrics.flat_map(|request| request.items.clone()).is_sorted());
    }
}

fn assert_law(counts: &SinkCounts, put: u64) {
    assert_eq!(counts.accepted, put, "{counts:?}");
    assert_eq!(
        counts.accepted,
        counts.delivered + counts.dropped_items() + counts.queued,
        "{counts:?}"
    );
}

#[test]
fn every_item_is_accepted_once_or_counted_as_dropped_whatever_happens() {
    let seen = RefCell::new(BTreeSet::new());
    let config = Config {
        cases: 1000,
        source_file: Some(file!()),
        ..Config::default()
    };
    let ran = TestRunner::new(config).run(&worlds(), |world| {
        let counts = runtime().block_on(world.happen());
        seen.borrow_mut()
            .extend(counts.dropped.iter().map(|dropped| dropped.reason));
        Ok(())
    });
    ran.unwrap_or_else(|failure| panic!("{failure}"));
    for reason in [
        DropReason::Rejected,
        DropReason::Refused,
        DropReason::UnsupportedSignal,
        DropReason::RetriesExhausted,
        DropReason::SinkPanicked,
        DropReason::DrainDeadline,
        DropReason::Abandoned,
    ] {
        assert!(
            seen.borrow().contains(&reason),
            "no random world brought about {reason}"
        );
    }
}
