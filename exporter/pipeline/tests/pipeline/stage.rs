//! Tests of the stage: the items that it holds arrive later and are never lost, whatever happens to the stage or the
//! pipeline.

use std::{
    panic::resume_unwind,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use proptest::{collection::vec, prelude::*, test_runner::Config};
use pulsetrain_pipeline::{
    Batch, DropReason, Ledger, Pipeline, QueueConfig, SinkTaskConfig,
    clock::{self, Instant},
};
use tokio::time::sleep;

use crate::{
    fake_sink::{Answer, FakeSink, Witness, batch, id_of, send_or_drop},
    scenario::{End, millis, runtime},
};

const SECOND: Duration = Duration::from_secs(1);

/// The number of a batch at which the stage panics.
const BAD: u32 = 13;

/// Holds the batches with odd numbers for a while.
struct Stage {
    hold: Duration,
    held: Vec<(Instant, Batch)>,
    held_items: Arc<AtomicU64>,
}

impl Stage {
    fn holding(hold: Duration) -> (Box<Self>, Arc<AtomicU64>) {
        let held_items = Arc::<AtomicU64>::default();
        let stage = Self {
            hold,
            held: Vec::new(),
            held_items: Arc::clone(&held_items),
        };
        (Box::new(stage), held_items)
    }

    fn let_go(&mut self, is_due: impl Fn(Instant) -> bool, out: &mut Vec<Batch>) {
        let due = self.held.iter().take_while(|(at, _)| is_due(*at)).count();
        for (_, batch) in self.held.drain(..due) {
            self.held_items
                .fetch_sub(u64::from(batch.items()), Ordering::Relaxed);
            out.push(batch);
        }
    }
}

impl pulsetrain_pipeline::Stage for Stage {
    fn pass(&mut self, batch: Batch, now: Instant, out: &mut Vec<Batch>) {
        match id_of(&batch) {
            // Not `panic!`: the hook would print it.
            BAD => resume_unwind(Box::new("scripted panic")),
            id if id % 2 == 1 => {
                self.held_items
                    .fetch_add(u64::from(batch.items()), Ordering::Relaxed);
                self.held.push((now + self.hold, batch));
            }
            _ => out.push(batch),
        }
    }

    fn due(&self) -> Option<Instant> {
        self.held.first().map(|(at, _)| *at)
    }

    fn release(&mut self, now: Instant, out: &mut Vec<Batch>) {
        self.let_go(|at| at <= now, out);
    }

    fn finish(&mut self, out: &mut Vec<Batch>) {
        self.let_go(|_| true, out);
    }
}

fn quick(stage: Box<Stage>) -> (Pipeline, pulsetrain_pipeline::Ingress, Witness) {
    let (sink, witness) = FakeSink::scripted("quick", [Answer::Take.at_once()]);
    let (pipeline, ingress) = Pipeline::builder().sink(sink).stage(stage).start();
    (pipeline, ingress, witness)
}

#[tokio::test(start_paused = true)]
async fn held_batch_is_released_when_due_without_a_further_batch() {
    let (stage, _) = Stage::holding(10 * SECOND);
    let (pipeline, ingress, witness) = quick(stage);
    for id in 0..3 {
        send_or_drop(&ingress, batch(id, 1, 4));
    }
    sleep(9 * SECOND).await;
    assert_eq!(witness.received_ids(), [0, 2]);
    assert_eq!(
        pipeline.ledger().snapshot()[0].accepted,
        2,
        "what is held is not accepted yet"
    );
    sleep(2 * SECOND).await;
    assert_eq!(witness.received_ids(), [0, 2, 1]);
}

#[tokio::test(start_paused = true)]
async fn drain_releases_held_batches() {
    let (stage, held) = Stage::holding(3600 * SECOND);
    let (pipeline, ingress, witness) = quick(stage);
    for id in 0..4 {
        ingress.send(batch(id, 5, 4)).await.expect("the pipeline is open");
    }
    let counts = pipeline.drain(SECOND).await.remove(0).counts;
    assert_eq!(witness.received_ids(), [0, 2, 1, 3]);
    assert_eq!((counts.delivered, held.load(Ordering::Relaxed)), (20, 0));
}

#[tokio::test(start_paused = true)]
async fn held_batch_is_counted_as_lost_without_a_drain() {
    let (stage, _) = Stage::holding(SECOND);
    let (pipeline, ingress, _) = quick(stage);
    let ledger = pipeline.ledger().clone();
    send_or_drop(&ingress, batch(1, 7, 4));
    drop(pipeline);
    assert_eq!(ledger.snapshot()[0].dropped_for(DropReason::Closed), 7);
}

#[tokio::test(start_paused = true)]
async fn panicking_stage_is_removed_and_loses_no_batch() {
    let (stage, _) = Stage::holding(3600 * SECOND);
    let (pipeline, ingress, witness) = quick(stage);
    for id in [1, BAD, 3, 4] {
        send_or_drop(&ingress, batch(id, 1, 4));
    }
    pipeline.drain(SECOND).await;
    assert_eq!(witness.received_ids(), [BAD, 1, 3, 4]);
}

/// Adds to each batch another one with the next number, as long as that number is below a hundred.
struct Adding;

impl pulsetrain_pipeline::Stage for Adding {
    fn pass(&mut self, batch_: Batch, _: Instant, out: &mut Vec<Batch>) {
        let next = id_of(&batch_) + 1;
        out.push(batch_);
        if next < 100 {
            out.push(batch(next, 1, 4));
        }
    }

    fn due(&self) -> Option<Instant> {
        None
    }

    fn release(&mut self, _: Instant, _: &mut Vec<Batch>) {}

    fn finish(&mut self, _: &mut Vec<Batch>) {}
}

fn chained(
    stages: Vec<Box<dyn pulsetrain_pipeline::Stage>>,
) -> (Pipeline, pulsetrain_pipeline::Ingress, Witness) {
    let (sink, witness) = FakeSink::scripted("quick", [Answer::Take.at_once()]);
    let all = stages.into_iter();
    let builder = all.fold(Pipeline::builder().sink(sink), |builder, stage| {
        builder.stage(stage)
    });
    let (pipeline, ingress) = builder.start();
    (pipeline, ingress, witness)
}

#[tokio::test(start_paused = true)]
async fn stage_receives_batches_added_and_released_by_the_previous_stage() {
    let (first, _) = Stage::holding(10 * SECOND);
    let (last, _) = Stage::holding(20 * SECOND);
    let (pipeline, ingress, witness) = chained(vec![Box::new(Adding), first, Box::new(Adding), last]);
    send_or_drop(&ingress, batch(20, 1, 4));
    // 20 and 21; 21 is held; 20 and 21 again; 21 is held by the last.
    assert_eq!(witness_after(&witness, 1).await, [20]);
    assert_eq!(
        witness_after(&witness, 10).await,
        [20, 22],
        "the first stage released 21: the last holds it, and the batch added to it passes"
    );
    assert_eq!(witness_after(&witness, 10).await, [20, 22, 21]);
    assert_eq!(witness_after(&witness, 10).await, [20, 22, 21, 21]);
    assert_eq!(pipeline.drain(SECOND).await[0].counts.delivered, 4);
}

#[tokio::test(start_paused = true)]
async fn drain_releases_the_held_batches_of_every_stage() {
    let (first, _) = Stage::holding(3600 * SECOND);
    let (last, _) = Stage::holding(3600 * SECOND);
    let (pipeline, ingress, witness) = chained(vec![first, Box::new(Adding), last]);
    send_or_drop(&ingress, batch(31, 1, 4));
    pipeline.drain(SECOND).await;
    assert_eq!(witness.received_ids(), [32, 31]);
}

#[tokio::test(start_paused = true)]
async fn panicking_stage_does_not_affect_the_other_stages() {
    let (first, _) = Stage::holding(3600 * SECOND);
    let (pipeline, ingress, witness) = chained(vec![first, Box::new(Adding)]);
    for id in [1, BAD, 40] {
        send_or_drop(&ingress, batch(id, 1, 4));
    }
    pipeline.drain(SECOND).await;
    assert_eq!(witness.received_ids(), [BAD, BAD + 1, 1, 2, 40, 41]);
}

/// Returns the batches received `secs` seconds later.
async fn witness_after(witness: &Witness, secs: u32) -> Vec<u32> {
    sleep(secs * SECOND).await;
    witness.received_ids()
}

#[derive(Clone, Debug)]
enum Op {
    Offer(u32),
    Send(u32),
    Pass(Duration),
}

fn ops() -> impl Strategy<Value = Vec<Op>> {
    let op = prop_oneof![
        2 => (0_u32..20).prop_map(Op::Offer),
        2 => (0_u32..20).prop_map(Op::Send),
        3 => millis(0..80).prop_map(Op::Pass),
    ];
    vec(op, 0..40)
}

proptest! {
    #![proptest_config(Config { cases: 300, source_file: Some(file!()), ..Config::default() })]

    #[test]
    fn accepted_plus_held_items_always_equal_the_sent_items(
        ops in ops(),
        hold in millis(0..200),
        takes in millis(0..30),
        drains in any::<bool>(),
    ) {
        let end = if drains { End::Drain(SECOND) } else { End::DropWithoutDrain };
        let last = runtime().block_on(happen(&ops, hold, takes, end));
        prop_assert!(!drains || last.iter().all(|lost| *lost == 0));
    }
}

/// Runs all operations, and returns the losses of each sink at the end.
async fn happen(ops: &[Op], hold: Duration, takes: Duration, end: End) -> Vec<u64> {
    let (stage, held) = Stage::holding(hold);
    let (sink, _) = FakeSink::scripted("random", [Answer::Take.after(takes)]);
    let (pipeline, ingress) = Pipeline::builder().sink(sink).stage(stage).start();
    let ledger = pipeline.ledger().clone();
    let mut put = 0;
    for (id, op) in (0_u32..).zip(ops) {
        // The numbers are below the bad one, so that the stage does not panic.
        match *op {
            Op::Offer(items) => ingress.try_send_or_drop(batch(id % BAD, items, 4)),
            Op::Send(items) => ingress.send(batch(id % BAD, items, 4)).await,
            Op::Pass(time) => {
                sleep(time).await;
                Ok(())
            }
        }
        .expect("the pipeline is open");
        put += match *op {
            Op::Offer(items) | Op::Send(items) => u64::from(items),
            Op::Pass(_) => 0,
        };
        assert_law(&ledger, put, held.load(Ordering::Relaxed));
    }
    match end {
        End::Drain(within) => drop(pipeline.drain(within + 40 * takes).await),
        End::DropWithoutDrain => drop(pipeline),
    }
    assert_law(&ledger, put, 0);
    ledger
        .snapshot()
        .iter()
        .map(|counts| counts.dropped_items())
        .collect()
}

fn assert_law(ledger: &Ledger, put: u64, held: u64) {
    let counts = &ledger.snapshot()[0];
    let now = clock::now();
    assert_eq!(counts.accepted + held, put, "{counts:?} at {now:?}");
    assert_eq!(
        counts.accepted,
        counts.delivered + counts.dropped_items() + counts.queued,
        "{counts:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn full_sink_does_not_block_held_batches_for_other_sinks() {
    let (stage, _) = Stage::holding(SECOND);
    let (sink, witness) = FakeSink::scripted("quick", [Answer::Take.at_once()]);
    let (hanging, _) = FakeSink::scripted("hanging", [Answer::Hang.at_once()]);
    let config = SinkTaskConfig {
        queue: QueueConfig {
            max_batches: 1,
            ..QueueConfig::default()
        },
        ..SinkTaskConfig::default()
    };
    let (_pipeline, ingress) = Pipeline::builder()
        .config(config)
        .sink(sink)
        .sink(hanging)
        .stage(stage)
        .start();
    for id in [1, 3, 5, 7] {
        send_or_drop(&ingress, batch(id, 1, 4));
        sleep(SECOND / 4).await;
    }
    sleep(2 * SECOND).await;
    assert_eq!(witness.received_ids(), [1, 3, 5, 7]);
}
