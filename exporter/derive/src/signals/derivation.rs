//! The interface of a derived signal: callbacks for facts, and an output.

use std::sync::Arc;

use pulsetrain_otlp::{
    UnixNanos,
    view::{KeyValue, LogRecord, Repeated},
};
use pulsetrain_run::{RunOrigin, SeriesPoint};
use pulsetrain_semconv::{Event, Metric};

use super::Signals;
use crate::steps::{LifecycleFacts, RankId, RankInfo, StepFacts};

/// A derived signal, or several related ones, in one file with the formula and its source.
///
/// Facts of one rank arrive in the order of its steps. Ranks are independent of each other. Points, events
/// and intervals arrive as they pass, so a step that ended before a point may close after it. Memory is
/// bounded by ranks and runs: state of a rank is dropped in [`forget`](Self::forget).
pub(crate) trait Derivation: Send {
    /// Returns the metrics that it sends. If the trainer sends one of them for a resource, ours is
    /// suppressed.
    fn sends(&self) -> &'static [&'static Metric];

    /// Returns the metrics whose points it receives in [`on_point`](Self::on_point).
    fn points(&self) -> &'static [&'static Metric] {
        &[]
    }

    /// Returns the events that it receives in [`on_event`](Self::on_event).
    fn events(&self) -> &'static [&'static Event] {
        &[]
    }

    /// Receives a closed step.
    fn on_step(&mut self, step: &StepFacts, out: &mut Signals) {
        let _ = (step, out);
    }

    /// Receives an interval outside of steps: a checkpoint, an evaluation, ...
    fn on_lifecycle(&mut self, interval: &LifecycleFacts, out: &mut Signals) {
        let _ = (interval, out);
    }

    /// Receives a point of one of [`points`](Self::points).
    fn on_point(&mut self, point: &PointFacts<'_>, out: &mut Signals) {
        let _ = (point, out);
    }

    /// Receives an event of one of [`events`](Self::events).
    fn on_event(&mut self, event: &EventFacts<'_>, out: &mut Signals) {
        let _ = (event, out);
    }

    /// Receives the new event time, the newest time of any point, span or event. It is called once a batch,
    /// after its facts, and only if the time increased.
    fn on_watermark(&mut self, time: UnixNanos, out: &mut Signals) {
        let _ = (time, out);
    }

    /// Returns whether the passing of time alone changes the state. [`on_watermark`](Self::on_watermark) is then
    /// called with the clock while no telemetry arrives.
    fn needs_idle_ticks(&self) -> bool {
        false
    }

    /// Receives the end of a rank: its source ended the series of its steps, and its last step is closed.
    fn on_rank_end(&mut self, rank: &Arc<RankInfo>, time: UnixNanos, out: &mut Signals) {
        let _ = (rank, time, out);
    }

    /// Called at the end of the input.
    fn on_finish(&mut self, out: &mut Signals) {
        let _ = out;
    }

    /// Drops the state of a rank, which was evicted as the rank that was silent for the longest time.
    fn forget(&mut self, rank: RankId) {
        let _ = rank;
    }
}

/// A passing point.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PointFacts<'a> {
    /// Its metric.
    pub(crate) metric: &'static Metric,
    /// The run, rank and host of its resource.
    pub(crate) origin: &'a RunOrigin,
    /// The encoded `Resource` message.
    pub(crate) resource: &'a [u8],
    /// The rank of the resource, or `None` for that of a host or of a run.
    pub(crate) rank: Option<&'a Arc<RankInfo>>,
    /// Its attributes.
    pub(crate) attributes: Repeated<'a, KeyValue<'a>>,
    /// The time of the measurement.
    pub(crate) time: UnixNanos,
    /// The value, or the sum of a distribution. NaN is a value.
    pub(crate) value: f64,
    /// The value as a point of its series, for a [`SeriesTracker`](pulsetrain_run::SeriesTracker).
    pub(crate) series: SeriesPoint,
    /// Whether the point only marks the end of its series (`NO_RECORDED_VALUE`).
    pub(crate) is_end: bool,
}

/// A passing event.
#[derive(Clone, Copy, Debug)]
pub(crate) struct EventFacts<'a> {
    /// The run, rank and host of its resource.
    pub(crate) origin: &'a RunOrigin,
    /// The encoded `Resource` message.
    pub(crate) resource: &'a [u8],
    /// The time of the event.
    pub(crate) time: UnixNanos,
    /// The record with its attributes.
    pub(crate) record: &'a LogRecord<'a>,
}
