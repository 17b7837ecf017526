//! The invariant, in random worlds: for every sink and at every moment, accepted = delivered + dropped (by reason) +
//! queued, and the ledger matches the sink's own counts.

use std::{
    cell::{Cell, RefCell},
    collections::BTreeSet,
    slice,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use proptest::test_runner::{Config, TestRunner};
use pulsetrain_pipeline::{
    Batch, DropReason, Ingress, Ledger, Pipeline, SinkCounts,
    clock::{self, Instant},
};
use tokio::{
    sync::mpsc,
    task::JoinHandle,
    time::{sleep, timeout},
};

use crate::{
    fake_sink::{Answer, Attempt, RecordedCalls, Witness, batch},
    scenario::{End, FIRST_BACKOFF, GRACE, Op, Scenario, Size, runtime, scenarios},
};

/// The bit that distinguishes the numbers of sent batches from those of offered ones.
const SENT: u32 = 1 << 31;

/// The tolerance for timers, which tick in milliseconds.
const TICK: Duration = Duration::from_millis(2);

/// A running scenario.
struct World {
    ingress: Ingress,
    ledger: Ledger,
    witnesses: Vec<Witness>,
    /// The number of items that were passed to the pipeline so far.
    put: Arc<AtomicU64>,
    send: mpsc::Sender<(Batch, Option<Duration>)>,
    sender: JoinHandle<()>,
    drain_began: Cell<Option<Instant>>,
}

#[test]
fn accepted_items_always_equal_delivered_plus_dropped_plus_queued() {
    let seen = RefCell::new(BTreeSet::new());
    let config = Config {
        cases: 1000,
        source_file: Some(file!()),
        ..Config::default()
    };
    let ran = TestRunner::new(config).run(&scenarios(), |scenario| {
        let ends = runtime().block_on(happen(&scenario));
        seen.borrow_mut().extend(
            ends.iter()
                .flat_map(|counts| &counts.dropped)
                .map(|dropped| dropped.reason),
        );
        Ok(())
    });
    ran.unwrap_or_else(|failure| panic!("{failure}"));
    let never: Vec<_> = DropReason::ALL
        .into_iter()
        .filter(|reason| !seen.borrow().contains(reason))
        // Only a disk queue has this reason: see disk_law.rs.
        .filter(|reason| *reason != DropReason::Unreadable)
        .collect();
    assert_eq!(never, [], "reasons that no random world brought about");
}

async fn happen(scenario: &Scenario) -> Vec<SinkCounts> {
    let (builder, witnesses) = scenario.build();
    let (pipeline, ingress) = builder.start();
    let world = World::begin(&pipeline, ingress, witnesses);
    world.observe();
    for (id, op) in (0..).zip(&scenario.ops) {
        world.step(id, op).await;
        world.observe();
    }
    match scenario.end {
        End::Drain(within) => world.drain(pipeline, within).await,
        End::DropWithoutDrain => drop(pipeline),
    }
    world.end().await
}

impl World {
    fn begin(pipeline: &Pipeline, ingress: Ingress, witnesses: Vec<Witness>) -> Self {
        let put = Arc::new(AtomicU64::new(0));
        let (send, commands) = mpsc::channel(1000);
        let sender = tokio::spawn(send_in_order(commands, ingress.clone(), Arc::clone(&put)));
        Self {
            ingress,
            ledger: pipeline.ledger().clone(),
            witnesses,
            put,
            send,
            sender,
            drain_began: Cell::default(),
        }
    }

    async fn step(&self, id: u32, op: &Op) {
        match *op {
            Op::Offer(Size { items, bytes }) => {
                self.put.fetch_add(u64::from(items), Ordering::Relaxed);
                self.ingress
                    .try_send_or_drop(batch(id, items, bytes))
                    .expect("the pipeline is open");
            }
            Op::Push(Size { items, bytes }) => {
                let batch = batch(id, items, bytes);
                if let Ok(mut reserved) = self.ingress.try_reserve(slice::from_ref(&batch)) {
                    self.put.fetch_add(u64::from(items), Ordering::Relaxed);
                    self.ingress
                        .send_reserved(batch, &mut reserved)
                        .expect("the pipeline is open");
                }
            }
            Op::Send(Size { items, bytes }, patience) => {
                let command = (batch(id | SENT, items, bytes), patience);
                self.send
                    .try_send(command)
                    .expect("there is room for every command");
            }
            Op::Pass(time) => sleep(time).await,
        }
    }

    /// Checks the invariants that hold at every moment.
    fn observe(&self) {
        for (counts, witness) in self.ledger.snapshot().iter().zip(&self.witnesses) {
            let books = witness.books();
            assert_eq!(counts.accepted, self.put.load(Ordering::Relaxed), "{counts:?}");
            assert_eq!(
                counts.accepted,
                counts.delivered + counts.dropped_items() + counts.queued,
                "{counts:?}"
            );
            assert_eq!(counts.delivered, books.received, "{counts:?}");
            assert_eq!(
                counts.dropped_for(DropReason::Rejected),
                books.rejected,
                "{counts:?}"
            );
            assert_eq!(
                counts.dropped_for(DropReason::Refused),
                books.refused,
                "{counts:?}"
            );
            // A batch waits while nothing is accepted, and is sent again.
            assert!(
                counts.dropped_for(DropReason::UnsupportedSignal) <= books.unsupported,
                "{counts:?}"
            );
            assert_eq!(
                counts.dropped_for(DropReason::SinkPanicked),
                books.panicked,
                "{counts:?}"
            );
            books.assert_in_order(self.drain_began.get());
        }
    }

    async fn drain(&self, pipeline: Pipeline, within: Duration) {
        let start = clock::now();
        self.drain_began.set(Some(start));
        let reports = pipeline.drain(within).await;
        let took = clock::now() - start;
        assert!(took <= within + GRACE + TICK, "{took:?}");
        for (report, witness) in reports.iter().zip(&self.witnesses) {
            assert_eq!(
                (report.counts.queued, &report.finished),
                (0, &Ok(())),
                "{report:?}"
            );
            assert_eq!(witness.books().finished, 1);
        }
        self.observe();
    }

    /// Checks the invariants that hold at the end.
    async fn end(self) -> Vec<SinkCounts> {
        assert!(
            self.ingress.try_send_or_drop(batch(SENT - 1, 0, 4)).is_err(),
            "the ingress is closed"
        );
        let attempts = self.attempts();
        sleep(TICK).await;
        self.observe();
        assert_eq!(self.attempts(), attempts, "nothing is delivered after the end");
        let Self {
            ledger, send, sender, ..
        } = self;
        drop(send);
        sender.await.expect("the sender does not panic");
        let counts = ledger.snapshot();
        assert!(counts.iter().all(|counts| counts.queued == 0), "{counts:?}");
        counts
    }

    fn attempts(&self) -> usize {
        self.witnesses
            .iter()
            .map(|witness| witness.books().attempts.len())
            .sum()
    }
}

/// The task that sends batches in order.
async fn send_in_order(
    mut commands: mpsc::Receiver<(Batch, Option<Duration>)>,
    ingress: Ingress,
    put: Arc<AtomicU64>,
) {
    while let Some((batch, patience)) = commands.recv().await {
        put.fetch_add(u64::from(batch.items()), Ordering::Relaxed);
        let patience = patience.unwrap_or(Duration::from_secs(3600));
        // After the timeout or the close, the ledger counts the batch.
        let _ = timeout(patience, ingress.send(batch)).await;
    }
}

impl RecordedCalls {
    /// Checks that batches arrive in order. A batch is repeated only after the sink requested a retry or refused everything,
    /// and never before the requested time, except for the attempt at the start of the drain.
    fn assert_in_order(&self, drain_began: Option<Instant>) {
        for sent in [0, SENT] {
            assert!(
                self.attempts
                    .iter()
                    .map(|attempt| attempt.id)
                    .filter(|id| id & SENT == sent)
                    .is_sorted()
            );
        }
        for pair in self.attempts.windows(2) {
            if drain_began != Some(pair[1].began) {
                assert_follows(pair[0], pair[1]);
            }
        }
    }
}

fn assert_follows(before: Attempt, after: Attempt) {
    let (answered, answer) = before
        .answered
        .expect("nothing is tried while or after a delivery hangs");
    match answer {
        Answer::Retry(wish) => {
            let wish = wish.filter(|wish| !wish.is_zero()).unwrap_or(FIRST_BACKOFF);
            assert!(after.began >= answered + wish, "{before:?} {after:?}");
        }
        // Nothing was accepted since.
        Answer::DoNotSupport if before.id == after.id => {
            assert!(after.began >= answered + FIRST_BACKOFF, "{before:?} {after:?}");
        }
        _ => assert_ne!(before.id, after.id, "{before:?} {after:?}"),
    }
}
