//! What a derived signal implements: callbacks for facts, and a place for its output.

use std::sync::Arc;

use pulsetrain_otlp::view::{KeyValue, LogRecord, Repeated};
use pulsetrain_semconv::{Event, Metric};

use super::Signals;
use crate::{
    origin::Origin,
    steps::{LifecycleFacts, RankId, RankInfo, StepFacts},
    unix_nanos::UnixNanos,
};

/// A derived signal, or a few that belong together. One file each, with the formula and its source.
///
/// Facts of one rank come in the order of its steps; ranks are independent of each other. Points, events and intervals come
/// as they pass, so a step that ended before a point may close after it. Memory is bounded by ranks and runs: state of a
/// rank is dropped in [`forget`](Self::forget).
pub(crate) trait Derivation: Send {
    /// The metrics that it sends. Of these, a metric that the trainer sends itself for a resource is not sent by us.
    fn sends(&self) -> &'static [&'static Metric];

    /// The metrics whose points it wants in [`on_point`](Self::on_point).
    fn points(&self) -> &'static [&'static Metric] {
        &[]
    }

    /// The events that it wants in [`on_event`](Self::on_event).
    fn events(&self) -> &'static [&'static Event] {
        &[]
    }

    /// Takes a closed step.
    fn on_step(&mut self, step: &StepFacts, out: &mut Signals) {
        let _ = (step, out);
    }

    /// Takes an interval outside of steps: a checkpoint, an evaluation, ...
    fn on_lifecycle(&mut self, interval: &LifecycleFacts, out: &mut Signals) {
        let _ = (interval, out);
    }

    /// Takes a point of one of [`points`](Self::points).
    fn on_point(&mut self, point: &PointFacts<'_>, out: &mut Signals) {
        let _ = (point, out);
    }

    /// Takes an event of one of [`events`](Self::events).
    fn on_event(&mut self, event: &EventFacts<'_>, out: &mut Signals) {
        let _ = (event, out);
    }

    /// Learns that event time has come to `time`, the newest time of any point, span or event. Called once a batch, after
    /// its facts, and only when the time grew.
    fn on_watermark(&mut self, time: UnixNanos, out: &mut Signals) {
        let _ = (time, out);
    }

    /// Returns whether time alone brings news: while nothing comes, [`on_watermark`](Self::on_watermark) is then called as the
    /// clock goes on.
    fn wants_time(&self) -> bool {
        false
    }

    /// Takes the end of a rank: its source ended the series of its steps, and its last step is closed.
    fn on_rank_end(&mut self, rank: &Arc<RankInfo>, time: UnixNanos, out: &mut Signals) {
        let _ = (rank, time, out);
    }

    /// Learns that nothing comes any more.
    fn on_finish(&mut self, out: &mut Signals) {
        let _ = out;
    }

    /// Drops the state of a rank: it was silent for the longest time when another rank needed its place.
    fn forget(&mut self, rank: RankId) {
        let _ = rank;
    }
}

/// A point as it passes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PointFacts<'a> {
    /// Its metric.
    pub(crate) metric: &'static Metric,
    /// The run, rank and host of its resource.
    pub(crate) origin: &'a Origin,
    /// The encoded `Resource` message.
    pub(crate) resource: &'a [u8],
    /// The rank of the resource; `None` for that of a host or of a run.
    pub(crate) rank: Option<&'a Arc<RankInfo>>,
    /// Its attributes.
    pub(crate) attributes: Repeated<'a, KeyValue<'a>>,
    /// When it was measured.
    pub(crate) time: UnixNanos,
    /// The value; of a histogram its sum. NaN is a value.
    pub(crate) value: f64,
    /// The observations of a histogram.
    pub(crate) count: Option<u64>,
    /// Whether the value is the growth since the point before (delta temporality), and not the total.
    pub(crate) is_delta: bool,
    /// Whether the point only marks the end of its series (`NO_RECORDED_VALUE`).
    pub(crate) is_end: bool,
}

/// An event as it passes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct EventFacts<'a> {
    /// The run, rank and host of its resource.
    pub(crate) origin: &'a Origin,
    /// The encoded `Resource` message.
    pub(crate) resource: &'a [u8],
    /// When it happened.
    pub(crate) time: UnixNanos,
    /// The record with its attributes.
    pub(crate) record: &'a LogRecord<'a>,
}
