//! The invariant with a disk queue, in random worlds with kills, drains and replays: accepted = delivered + dropped +
//! queued + on disk at every moment, and everything that was acknowledged arrives or is counted as dropped.

use std::{collections::BTreeSet, fs, path::Path, time::Duration};

use proptest::{collection::vec, prelude::*};
use pulsetrain_pipeline::{
    Ingress, Ledger, Pipeline, Requirement,
    disk::{DiskQueueConfig, SyncPolicy},
};
use tokio::{runtime::Builder, time::sleep};

use crate::{
    disk::{builder, open, push, task, until},
    fake_sink::{Answer, FakeSink, Move, Witness, batch},
    scenario::{millis, scripts},
};

#[derive(Clone, Debug)]
struct Life {
    script: Vec<Move>,
    ops: Vec<Op>,
    end: End,
}

#[derive(Clone, Copy, Debug)]
enum Op {
    /// Pushes a batch of these items and bytes, and waits until it is acknowledged.
    Push(u32, usize),
    /// Sends without waiting.
    Offer(u32, usize),
    Pass(Duration),
}

#[derive(Clone, Copy, Debug)]
enum End {
    /// Copies the folder while the pipeline works; the next life begins with the copy.
    Kill,
    Drain(Duration),
    DropWithoutDrain,
}

/// The state that all lives share.
#[derive(Default)]
struct World {
    next: u32,
    /// The batches that were acknowledged and are not known to have ended.
    due: BTreeSet<u32>,
    copies: u32,
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, ..ProptestConfig::default() })]
    #[test]
    fn every_acknowledged_item_is_delivered_or_counted_as_lost(
        lives in vec(lives(), 1..5),
        sync in prop_oneof![
            Just(SyncPolicy::Always),
            Just(SyncPolicy::Never),
            Just(SyncPolicy::Interval(Duration::from_millis(3))),
        ],
    ) {
        let runtime = Builder::new_current_thread().enable_time().build().expect("a runtime");
        runtime.block_on(live(lives, sync));
    }
}

fn lives() -> impl Strategy<Value = Life> {
    let sizes = || (0_u32..20, 4_usize..3000);
    let ops = prop_oneof![
        4 => sizes().prop_map(|(items, bytes)| Op::Push(items, bytes)),
        2 => sizes().prop_map(|(items, bytes)| Op::Offer(items, bytes)),
        1 => millis(0..4).prop_map(Op::Pass),
    ];
    let ends = prop_oneof![
        3 => Just(End::Kill),
        2 => millis(0..20).prop_map(End::Drain),
        1 => Just(End::DropWithoutDrain),
    ];
    (scripts(millis(0..6)), vec(ops, 0..40), ends).prop_map(|(script, ops, end)| Life { script, ops, end })
}

async fn live(lives: Vec<Life>, sync: SyncPolicy) {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let mut world = World::default();
    let mut config = DiskQueueConfig {
        max_bytes: 100_000,
        sync,
        ..DiskQueueConfig::new(folder.path().join("queue"))
    };
    for life in lives {
        let (sink, witness) = FakeSink::again_and_again("random", life.script);
        let (pipeline, ingress) = start(&config, sink).await;
        let ledger = pipeline.ledger().clone();
        for op in life.ops {
            world.step(&ingress, op).await;
            check(&ledger);
        }
        match life.end {
            End::Kill => {
                // A batch that ends after the copy was made is also due in the next life.
                world.record_ended(&witness);
                let left = folder.path().join(format!("left-{}", world.copies));
                world.copies += 1;
                copy(&config, &left);
                drop(pipeline);
                config.folder = left;
            }
            End::Drain(within) => {
                let report = pipeline.drain(within).await.remove(0);
                assert_eq!(report.finished, Ok(()));
                assert_eq!(report.counts.queued, 0);
                check(&ledger);
                world.record_ended(&witness);
            }
            End::DropWithoutDrain => {
                drop(pipeline);
                world.record_ended(&witness);
            }
        }
    }
    let (sink, witness) = FakeSink::scripted("healthy", [Answer::Take.at_once()]);
    let (pipeline, _ingress) = start(&config, sink).await;
    let ledger = pipeline.ledger().clone();
    until("nothing is left on the disk", || {
        check(&ledger);
        ledger.snapshot()[0].on_disk_items() == 0 && ledger.snapshot()[0].queued == 0
    })
    .await;
    let counts = pipeline.drain(Duration::from_secs(20)).await.remove(0).counts;
    assert_eq!(counts.accepted, counts.delivered, "{counts:?}");
    world.record_ended(&witness);
    assert_eq!(world.due, BTreeSet::new(), "acknowledged and lost");
}

async fn start(config: &DiskQueueConfig, sink: Box<dyn pulsetrain_pipeline::Sink>) -> (Pipeline, Ingress) {
    let task = task(open(config).await);
    builder().sink_with(sink, Requirement::Required, task).start()
}

impl World {
    async fn step(&mut self, ingress: &Ingress, op: Op) {
        let id = self.next;
        match op {
            Op::Push(items, bytes) => {
                self.next += 1;
                if push(ingress, batch(id, items, bytes)).await.is_ok() {
                    self.due.insert(id);
                }
            }
            Op::Offer(items, bytes) => {
                self.next += 1;
                ingress
                    .try_send_or_drop(batch(id, items, bytes))
                    .expect("the pipeline is open");
            }
            Op::Pass(time) => sleep(time).await,
        }
    }

    /// Removes the batches that were delivered, or lost for a reason that the ledger counts.
    fn record_ended(&mut self, witness: &Witness) {
        for attempt in &witness.books().attempts {
            if let Some((_, answer)) = attempt.answered
                && !matches!(answer, Answer::Retry(_) | Answer::Hang)
            {
                self.due.remove(&attempt.id);
            }
        }
    }
}

fn check(ledger: &Ledger) {
    for counts in ledger.snapshot() {
        assert_eq!(
            counts.accepted,
            counts.delivered + counts.dropped_items() + counts.queued + counts.on_disk_items(),
            "{counts:?}"
        );
    }
}

/// Copies the files while they are in use, until nothing was deleted in the meantime: that is preceded by a new cursor.
/// Segments are copied last, because a cursor must not be newer than the segments.
fn copy(config: &DiskQueueConfig, to: &Path) {
    let cursor = || fs::read(config.folder.join("cursor")).ok();
    loop {
        let before = cursor();
        fs::create_dir_all(to).expect("a folder can be made");
        let mut files: Vec<_> = fs::read_dir(&config.folder)
            .expect("it is there")
            .map(|entry| entry.expect("it is there").path())
            .collect();
        files.sort_by_key(|path| path.extension().is_some());
        for path in files {
            let _ = fs::copy(&path, to.join(path.file_name().expect("a file has a name")));
        }
        if cursor() == before {
            return;
        }
        fs::remove_dir_all(to).expect("it was made");
    }
}
