//! Tests that need real threads: blocking readers, and snapshots during concurrent counts.

use std::{thread, time::Duration};

use pulsetrain_pipeline::{
    DropReason, Ingress, Ledger, Pipeline, PipelineError, QueueConfig, Sink, SinkTaskConfig, clock,
};
use tokio::runtime::{Builder, Runtime};

use crate::fake_sink::{Answer, FakeSink, batch};

const LONG: Duration = Duration::from_secs(60);

fn runtime() -> Runtime {
    Builder::new_multi_thread()
        .worker_threads(2)
        .enable_time()
        .build()
        .expect("a runtime")
}

/// Starts a pipeline whose queue holds one batch.
fn start(runtime: &Runtime, sink: Box<dyn Sink>) -> (Pipeline, Ingress) {
    let config = SinkTaskConfig {
        queue: QueueConfig {
            max_batches: 1,
            max_bytes: 1000,
        },
        ..SinkTaskConfig::default()
    };
    runtime.block_on(async { Pipeline::builder().config(config).sink(sink).start() })
}

/// Waits until the first sink of the ledger has this many queued items.
fn wait_until_queued(ledger: &Ledger, items: u64) {
    let deadline = clock::later(clock::now(), LONG);
    while ledger.snapshot()[0].queued != items {
        assert!(clock::now() < deadline, "{items} items were awaited in vain");
        thread::yield_now();
    }
}

#[test]
fn blocking_readers_wait_for_queue_space_and_lose_nothing() {
    let runtime = runtime();
    let (sink, witness) = FakeSink::scripted("quick", [Answer::Take.at_once()]);
    let (pipeline, ingress) = start(&runtime, sink);
    let reader = |first: u32| {
        let ingress = ingress.clone();
        thread::spawn(move || (first..first + 500).try_for_each(|id| ingress.blocking_send(batch(id, 1, 10))))
    };
    for reader in [reader(0), reader(1000)] {
        reader
            .join()
            .expect("the reader does not panic")
            .expect("the pipeline is open");
    }
    let reports = runtime.block_on(pipeline.drain(LONG));
    assert_eq!(
        (reports[0].counts.delivered, reports[0].counts.dropped_items()),
        (1000, 0)
    );
    let (low, high): (Vec<u32>, Vec<u32>) = witness.received_ids().into_iter().partition(|id| *id < 1000);
    assert_eq!(
        (low, high),
        (Vec::from_iter(0..500), Vec::from_iter(1000..1500)),
        "each reader's order is kept"
    );
}

#[test]
fn drain_wakes_a_blocked_reader() {
    let runtime = runtime();
    let (sink, _) = FakeSink::scripted("hanging", [Answer::Hang.at_once()]);
    let (pipeline, ingress) = start(&runtime, sink);
    let ledger = pipeline.ledger().clone();
    let reader = thread::spawn(move || (0..).try_for_each(|id| ingress.blocking_send(batch(id, 3, 10))));
    wait_until_queued(&ledger, 6);
    let reports = runtime.block_on(pipeline.drain(Duration::ZERO));
    assert_eq!(
        reader.join().expect("the reader does not panic"),
        Err(PipelineError::Closed)
    );
    assert_eq!(reports[0].counts.dropped_for(DropReason::DrainDeadline), 3);
    assert_eq!(ledger.snapshot()[0].dropped_for(DropReason::Closed), 3);
}

#[test]
fn end_of_the_runtime_wakes_a_blocked_reader() {
    let runtime = runtime();
    let (sink, _) = FakeSink::scripted("hanging", [Answer::Hang.at_once()]);
    let (pipeline, ingress) = start(&runtime, sink);
    let ledger = pipeline.ledger().clone();
    let reader = thread::spawn(move || (0..).try_for_each(|id| ingress.blocking_send(batch(id, 1, 10))));
    wait_until_queued(&ledger, 2);
    drop(runtime);
    assert_eq!(
        reader.join().expect("the reader does not panic"),
        Err(PipelineError::Closed)
    );
    let counts = ledger.snapshot().remove(0);
    assert_eq!((counts.queued, counts.dropped_items()), (0, counts.accepted));
    drop(pipeline);
}

#[test]
fn every_ledger_snapshot_is_consistent_under_concurrent_updates() {
    let runtime = runtime();
    let (sink, _) = FakeSink::again_and_again(
        "fickle",
        [Answer::Take, Answer::Refuse, Answer::Reject(2)].map(Answer::at_once),
    );
    let (pipeline, ingress) = start(&runtime, sink);
    let readers = [(); 2].map(|()| {
        let ingress = ingress.clone();
        thread::spawn(move || (0..2000).try_for_each(|id| ingress.blocking_send(batch(id, 7, 10))))
    });
    let mut seen_on_the_way = false;
    while !readers.iter().all(thread::JoinHandle::is_finished) {
        let counts = pipeline.ledger().snapshot().remove(0);
        assert_eq!(
            counts.accepted,
            counts.delivered + counts.dropped_items() + counts.queued,
            "{counts:?}"
        );
        seen_on_the_way |= counts.queued > 0;
    }
    assert!(
        seen_on_the_way,
        "the snapshots were taken while something was going on"
    );
    let counts = runtime.block_on(pipeline.drain(LONG)).remove(0).counts;
    assert_eq!((counts.accepted, counts.queued), (28_000, 0));
}
