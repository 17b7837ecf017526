//! A random world: sinks with random scripts, random batches at random times, and a random end.

use std::time::Duration;

use proptest::{collection::vec, option, prelude::*};
use pulsetrain_pipeline::{
    GiveUp, Pipeline, PipelineBuilder, PipelineConfig, QueueConfig, Requirement, RetryConfig, SinkTaskConfig,
};
use tokio::runtime::{Builder, Runtime};

use crate::fake_sink::{Answer, FakeSink, Move, Witness};

/// The first backoff of every random world; there is no jitter, so no retry may come earlier.
pub(crate) const FIRST_BACKOFF: Duration = Duration::from_millis(10);

/// The minimum time for finishing.
pub(crate) const GRACE: Duration = Duration::from_millis(50);

#[derive(Clone, Debug)]
pub(crate) struct Scenario {
    pub(crate) sinks: Vec<(Vec<Move>, Requirement)>,
    pub(crate) queue: QueueConfig,
    pub(crate) give_up: GiveUp,
    pub(crate) ops: Vec<Op>,
    pub(crate) end: End,
}

#[derive(Clone, Debug)]
pub(crate) enum Op {
    Offer(Size),
    /// Reserves room at the required sinks, and sends if there is room.
    Push(Size),
    /// Sends in another task, which gives up after its timeout.
    Send(Size, Option<Duration>),
    Pass(Duration),
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Size {
    pub(crate) items: u32,
    pub(crate) bytes: usize,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum End {
    Drain(Duration),
    DropWithoutDrain,
}

impl Scenario {
    /// Returns the builder of the pipeline, with the witnesses of the sinks.
    pub(crate) fn build(&self) -> (PipelineBuilder, Vec<Witness>) {
        let retry = RetryConfig {
            initial: FIRST_BACKOFF,
            max: 5 * FIRST_BACKOFF,
            give_up: self.give_up,
            ..RetryConfig::default()
        };
        let config = PipelineConfig {
            task: SinkTaskConfig {
                queue: self.queue,
                retry: retry.without_jitter(),
                ..SinkTaskConfig::default()
            },
            finish_grace: GRACE,
        };
        let add = |(builder, mut witnesses): (PipelineBuilder, Vec<_>),
                   (script, requirement): &(Vec<Move>, Requirement)| {
            let (sink, witness) = FakeSink::again_and_again("random", script.as_slice());
            witnesses.push(witness);
            (builder.sink_as(sink, *requirement), witnesses)
        };
        self.sinks
            .iter()
            .fold((Pipeline::builder().config(config), Vec::new()), add)
    }
}

/// Returns a runtime with paused time.
pub(crate) fn runtime() -> Runtime {
    Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .expect("a runtime")
}

/// Random scenarios in which many events share a millisecond.
pub(crate) fn scenarios() -> impl Strategy<Value = Scenario> {
    let requirements = prop_oneof![Just(Requirement::Required), Just(Requirement::BestEffort)];
    let sinks = vec((scripts(millis(0..60)), requirements), 1..4);
    let give_up = prop_oneof![
        1 => Just(GiveUp::Never),
        2 => millis(20..200).prop_map(GiveUp::WhenFull),
        2 => millis(20..200).prop_map(GiveUp::AfterOutage),
    ];
    let ends = prop_oneof![
        6 => millis(0..400).prop_map(End::Drain),
        1 => Just(End::DropWithoutDrain),
    ];
    let ops = vec(ops(millis(0..80)), 0..60);
    (sinks, queues(), give_up, ops, ends).prop_map(|(sinks, queue, give_up, ops, end)| Scenario {
        sinks,
        queue,
        give_up,
        ops,
        end,
    })
}

pub(crate) fn scripts(times: impl Strategy<Value = Duration> + Clone) -> impl Strategy<Value = Vec<Move>> {
    let takes = prop_oneof![2 => Just(Duration::ZERO), 1 => times.clone()];
    vec(
        (takes, answers(times)).prop_map(|(takes, answer)| Move { takes, answer }),
        1..8,
    )
}

fn answers(wishes: impl Strategy<Value = Duration>) -> impl Strategy<Value = Answer> {
    prop_oneof![
        12 => Just(Answer::Take),
        2 => (0_u64..30).prop_map(Answer::Reject),
        2 => Just(Answer::Refuse),
        1 => Just(Answer::DoNotSupport),
        8 => option::of(wishes).prop_map(Answer::Retry),
        2 => Just(Answer::Panic),
        1 => Just(Answer::Hang),
    ]
}

pub(crate) fn queues() -> impl Strategy<Value = QueueConfig> {
    (1_usize..6, 20_usize..150).prop_map(|(max_batches, max_bytes)| QueueConfig {
        max_batches,
        max_bytes,
    })
}

fn ops(passes: impl Strategy<Value = Duration> + Clone) -> impl Strategy<Value = Op> {
    prop_oneof![
        3 => sizes().prop_map(Op::Offer),
        2 => sizes().prop_map(Op::Push),
        2 => (sizes(), option::of(passes.clone())).prop_map(|(size, patience)| Op::Send(size, patience)),
        2 => passes.prop_map(Op::Pass),
    ]
}

pub(crate) fn sizes() -> impl Strategy<Value = Size> {
    (0_u32..20, 4_usize..64).prop_map(|(items, bytes)| Size { items, bytes })
}

pub(crate) fn millis(range: std::ops::Range<u64>) -> impl Strategy<Value = Duration> + Clone {
    range.prop_map(Duration::from_millis)
}
