//! Tests of sinks that receive some sources only, in random worlds: a batch reaches exactly the sinks that are routed to
//! its source, even while routes change.

use std::{
    slice,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::Duration,
};

use proptest::{collection::vec, prelude::*, test_runner::TestRunner};
use pulsetrain_otlp::Signals;
use pulsetrain_pipeline::{
    Ingress, Pipeline, Requirement, SinkReport, SinkRoute, SinkTaskConfig, SourceId, SourceSet,
};
use tokio::time::sleep;

use crate::{
    fake_sink::{Answer, FakeSink, Witness, batch},
    scenario::runtime,
};

const MINUTE: Duration = Duration::from_secs(60);
const SOURCES: [&str; 3] = ["a", "b", "c"];

#[derive(Clone, Debug)]
enum Op {
    /// Offers a batch of the source at this index; an index past the end means no source.
    Offer(usize),
    Push(usize),
    Send(usize),
    /// Replaces the sink by one that receives these sources; an empty list means all sources.
    Route(Vec<usize>),
    Pass(u64),
}

fn ops() -> impl Strategy<Value = Vec<Op>> {
    let source = || 0..=SOURCES.len();
    let op = prop_oneof![
        3 => source().prop_map(Op::Offer),
        3 => source().prop_map(Op::Push),
        3 => source().prop_map(Op::Send),
        1 => vec(0..SOURCES.len(), 0..3).prop_map(Op::Route),
        1 => (1..30u64).prop_map(Op::Pass),
    ];
    vec(op, 1..40)
}

/// The sink whose route changes, with every sink of its name so far.
struct Routed {
    sources: SourceSet,
    witnesses: Vec<Witness>,
    expected: Vec<u32>,
}

impl Routed {
    /// Replaces the sink by one that receives `sources`, and returns the report of the replaced one.
    fn replace(
        &mut self,
        pipeline: &mut Pipeline,
        sources: SourceSet,
    ) -> Option<impl Future<Output = SinkReport> + use<>> {
        let route = SinkRoute {
            signals: Signals::ALL,
            sources: sources.clone(),
            requirement: Requirement::Required,
        };
        let leaving = pipeline.expect_sink("routed", route, SinkTaskConfig::default(), MINUTE);
        let slow = Answer::Take.after(Duration::from_millis(5));
        let (sink, witness) = FakeSink::again_and_again("routed", [slow]);
        assert!(pipeline.open_sink(sink).is_ok(), "it is expected");
        self.sources = sources;
        self.witnesses.push(witness);
        leaving
    }
}

fn ingress_of(ingress: &Ingress, source: usize) -> Ingress {
    SOURCES
        .get(source)
        .map_or_else(|| ingress.clone(), |name| ingress.of_source(name))
}

async fn put(op: &Op, id: u32, source: usize, ingress: &Ingress) {
    let (ingress, batch) = (ingress_of(ingress, source), batch(id, 2, 8));
    let put = match op {
        Op::Push(_) => {
            let mut reserved = ingress
                .try_reserve(slice::from_ref(&batch))
                .expect("there is room");
            ingress.send_reserved(batch, &mut reserved)
        }
        Op::Send(_) => ingress.send(batch).await,
        _ => ingress.try_send_or_drop(batch),
    };
    put.expect("the pipeline is open");
}

async fn happen(ops: &[Op]) {
    let (all, all_saw) = FakeSink::scripted("all", [Answer::Take.at_once()]);
    let (mut pipeline, ingress) = Pipeline::builder().sink(all).start();
    let mut routed = Routed {
        sources: SourceSet::All,
        witnesses: Vec::new(),
        expected: Vec::new(),
    };
    let mut left = Vec::from_iter(routed.replace(&mut pipeline, SourceSet::named(["a"])));
    let mut sent = Vec::new();
    for (id, op) in (0..).zip(ops) {
        match op {
            Op::Offer(source) | Op::Push(source) | Op::Send(source) => {
                put(op, id, *source, &ingress).await;
                let source = SOURCES
                    .get(*source)
                    .map_or(SourceId::NONE, |name| SourceId::new(name));
                sent.push(id);
                routed
                    .expected
                    .extend(routed.sources.contains(source).then_some(id));
            }
            Op::Route(sources) => {
                let names = sources.iter().map(|source| SOURCES[*source]);
                let sources = if sources.is_empty() {
                    SourceSet::All
                } else {
                    SourceSet::named(names)
                };
                left.extend(routed.replace(&mut pipeline, sources));
            }
            Op::Pass(millis) => sleep(Duration::from_millis(*millis)).await,
        }
    }
    let mut reports = pipeline.drain(MINUTE).await;
    for leaving in left {
        reports.push(leaving.await);
    }
    let of_sink = |name: &str| {
        let accounts = reports.iter().filter(|report| report.counts.name == name);
        accounts.fold((0, 0, 0), |sums, SinkReport { counts, .. }| {
            let ended = counts.delivered + counts.dropped_items() + counts.queued;
            assert_eq!(counts.accepted, ended, "{counts:?}");
            (
                sums.0 + counts.accepted,
                sums.1 + counts.delivered,
                sums.2 + counts.lost_items(),
            )
        })
    };
    let items = |ids: &[u32]| 2 * ids.len() as u64;
    assert_eq!(of_sink("all"), (items(&sent), items(&sent), 0));
    assert_eq!(
        of_sink("routed"),
        (items(&routed.expected), items(&routed.expected), 0)
    );
    assert_eq!(all_saw.received_ids(), sent);
    let mut received: Vec<u32> = routed.witnesses.iter().flat_map(Witness::received_ids).collect();
    received.sort_unstable();
    assert_eq!(received, routed.expected);
}

#[test]
fn batch_reaches_only_the_sinks_routed_to_its_source_and_no_other_counts_it() {
    TestRunner::new(ProptestConfig {
        cases: 300,
        source_file: Some(file!()),
        ..ProptestConfig::default()
    })
    .run(&ops(), |ops| {
        runtime().block_on(happen(&ops));
        Ok(())
    })
    .unwrap_or_else(|failure| panic!("{failure}"));
}

/// A source moves from one sink to another: no batch reaches both, or neither.
#[test]
fn several_sink_changes_are_applied_atomically_for_every_batch() {
    const MOVES: usize = 200;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_time()
        .build()
        .expect("a runtime can be made");
    let _entered = runtime.enter();
    let (mut pipeline, ingress) = Pipeline::builder().start();
    let (mut witnesses, mut leaving) = (Vec::new(), Vec::new());
    let mut route = |pipeline: &mut Pipeline, name: &str, source: &str| {
        let route = SinkRoute {
            signals: Signals::ALL,
            sources: SourceSet::named([source]),
            requirement: Requirement::Required,
        };
        leaving.extend(pipeline.expect_sink(name, route, SinkTaskConfig::default(), MINUTE));
        let (sink, witness) = FakeSink::again_and_again(name, [Answer::Take.at_once()]);
        assert!(pipeline.open_sink(sink).is_ok(), "it is expected");
        witnesses.push(witness);
    };
    route(&mut pipeline, "one", "a");
    route(&mut pipeline, "two", "b");
    let is_over = Arc::new(AtomicBool::new(false));
    let (source, ended) = (ingress.of_source("a"), Arc::clone(&is_over));
    let sender = thread::spawn(move || {
        let mut ids = Vec::new();
        for id in 0.. {
            source
                .try_send_or_drop(batch(id, 2, 8))
                .expect("the pipeline is open");
            ids.push(id);
            if ended.load(Ordering::SeqCst) {
                return ids;
            }
            thread::yield_now();
        }
        ids
    });
    for count in 0..MOVES {
        let (of_one, of_two) = if count % 2 == 0 { ("b", "a") } else { ("a", "b") };
        let changes = pipeline.changes();
        let _one_change = changes.begin();
        route(&mut pipeline, "one", of_one);
        thread::yield_now();
        route(&mut pipeline, "two", of_two);
    }
    is_over.store(true, Ordering::SeqCst);
    let sent = sender.join().expect("the sender ends");
    runtime.block_on(async {
        pipeline.drain(MINUTE).await;
        for leaving in leaving {
            leaving.await;
        }
    });
    let mut received: Vec<u32> = witnesses.iter().flat_map(Witness::received_ids).collect();
    received.sort_unstable();
    assert_eq!(received, sent);
}
