//! The recorder that every source uses: it encodes definitions with values as batches of OTLP.
//!
//! Sources record single values; the [`SeriesWriter`](crate::SeriesWriter) of each rank makes cumulative points of them. A full
//! batch is passed to the listener at once, so memory is bounded.

mod attempts;
mod custom;
mod distribution;
mod ends;
mod exemplar;
mod ranks;
mod resume;
mod timezone;

use std::{collections::BTreeMap, sync::Arc};

use pulsetrain_otlp::{
    UnixNanos,
    write::{Attribute, AttributeValue, Encoded, Envelope, LogRecordParts, Severity, SpanLink, SpanParts},
};
use pulsetrain_semconv::{self as semconv, Metric};

pub use self::attempts::AttemptState;
pub use self::custom::MAX_CUSTOM_NAMES;
pub use self::ranks::Rank;
pub use self::timezone::LocalClock;
use self::{custom::CustomNames, ranks::RankState};
use crate::{ParseReport, PreparedSeries, Run, SkipReason, SourcePosition, ids::StepIds};

/// The size at which a batch is sent. It is large enough that the size of the envelope is negligible, small enough for any
/// receiver, and small enough for an L2 cache of half a megabyte to hold the batch twice: while it fills, and in its envelope.
const BATCH_BYTES: usize = 256 << 10;

/// The counts of recorded items.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Records of the input that were parsed.
    pub records: u64,
    /// Points.
    pub points: u64,
    /// Spans.
    pub spans: u64,
    /// Events and log records.
    pub events: u64,
}

impl Counts {
    /// Returns whether the input has records: messages alone are lines of any program.
    pub fn has_items(&self) -> bool {
        self.records + self.points + self.spans > 0
    }

    /// Adds the counts of another source.
    pub fn merge(&mut self, other: Self) {
        self.records += other.records;
        self.points += other.points;
        self.spans += other.spans;
        self.events += other.events;
    }
}

/// Encodes definitions with values into batches.
pub struct Recorder<'a> {
    /// The run with the current rank.
    run: Run,
    step_ids: StepIds,
    /// The state of the current rank.
    current: RankState,
    custom: CustomNames,
    counts: Counts,
    skipped: ParseReport,
    /// The latest recorded time.
    last_unix_nanos: UnixNanos,
    /// The end and the duration of a step whose span has not been recorded yet.
    step_duration: Option<(UnixNanos, f64)>,
    local_clock: Arc<LocalClock>,
    /// The rank of records without one.
    own_rank: i64,
    /// The states of the ranks that are not current.
    ranks: BTreeMap<i64, RankState>,
    /// The ranks with counted records, in the order of their first records.
    recorded_ranks: Vec<i64>,
    listener: Box<dyn FnMut(Encoded) + 'a>,
}

impl<'a> Recorder<'a> {
    /// Creates a recorder for a run; every full batch is passed to `listener`.
    pub fn new(run: Run, listener: impl FnMut(Encoded) + 'a) -> Self {
        let envelope = run.envelope();
        Self::in_envelope(run, envelope, listener)
    }

    /// Creates a recorder for a run whose batches get this envelope.
    pub fn in_envelope(run: Run, envelope: Envelope, listener: impl FnMut(Encoded) + 'a) -> Self {
        Self {
            current: RankState::in_envelope(&run, envelope, ranks::SERIES),
            own_rank: run.rank,
            ranks: BTreeMap::new(),
            recorded_ranks: Vec::new(),
            step_ids: StepIds::new(&run),
            run,
            custom: CustomNames::default(),
            counts: Counts::default(),
            skipped: ParseReport::default(),
            last_unix_nanos: UnixNanos::UNKNOWN,
            step_duration: None,
            local_clock: Arc::default(),
            listener: Box::new(listener),
        }
    }

    /// Returns the run with the current rank: a log may contain several ranks.
    pub fn run(&self) -> &Run {
        &self.run
    }

    /// Returns the trace id of a step, and the id of its span on the current rank.
    pub fn step_ids(&self, step: i64) -> ([u8; 16], [u8; 8]) {
        (self.step_ids.trace(step), self.step_ids.span(step, self.run.rank))
    }

    /// Returns the counts of recorded items so far.
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// Returns the report of skipped input so far.
    pub fn parse_report(&self) -> &ParseReport {
        &self.skipped
    }

    /// Counts a record of the input that was parsed; batches are sent between records.
    pub fn end_of_record(&mut self) {
        self.counts.records += 1;
        self.step_duration = None;
        // In nearly all logs there is only one rank.
        if self.recorded_ranks.last() != Some(&self.run.rank) {
            self.observe_rank();
        }
        self.send_full_batches();
    }

    /// Reports skipped input with its position.
    pub fn report(&mut self, reason: SkipReason, position: SourcePosition, message: impl FnOnce() -> String) {
        self.skipped.add(reason, position, message);
    }

    /// Counts a value that was skipped by a rule.
    pub fn skip_value(&mut self, reason: SkipReason) {
        self.skipped.count(reason);
    }

    /// Counts several values that were skipped by one rule.
    pub fn skip_values(&mut self, reason: SkipReason, count: u64) {
        self.skipped.count_many(reason, count);
    }

    /// Records a value: the current value of a gauge or an up-down counter, a counter's increment, or a histogram's
    /// observation.
    #[inline]
    pub fn record(
        &mut self,
        metric: &'static Metric,
        time_unix_nanos: UnixNanos,
        value: f64,
        attributes: &[Attribute<'_>],
    ) {
        self.last_unix_nanos = self.last_unix_nanos.max(time_unix_nanos);
        let series = &mut self.current.series;
        let written = series.record(metric, time_unix_nanos, value, attributes);
        self.count_point(written, metric, time_unix_nanos, value);
    }

    /// Records a value of a series, as [`record`](Self::record) does with its metric and its attributes.
    #[inline]
    pub fn record_prepared(&mut self, series: &mut PreparedSeries, time_unix_nanos: UnixNanos, value: f64) {
        self.last_unix_nanos = self.last_unix_nanos.max(time_unix_nanos);
        let written = self
            .current
            .series
            .record_prepared(series, time_unix_nanos, value);
        self.count_point(written, series.metric(), time_unix_nanos, value);
    }

    /// Records the current state of a state set: a point for each state at every change, and again at an interval so that the
    /// series does not go stale.
    pub fn record_state(
        &mut self,
        metric: &'static Metric,
        attribute: &'static semconv::Attribute,
        time_unix_nanos: UnixNanos,
        current: &str,
        attributes: &[Attribute<'_>],
    ) {
        self.last_unix_nanos = self.last_unix_nanos.max(time_unix_nanos);
        let series = &mut self.current.series;
        match series.record_state(metric, attribute, time_unix_nanos, current, attributes) {
            Ok(points) => self.counts.points += points,
            Err(reason) => self.skipped.count(reason),
        }
    }

    /// Records an event.
    pub fn record_event(
        &mut self,
        event: &'static semconv::Event,
        time_unix_nanos: UnixNanos,
        body: Option<AttributeValue<'_>>,
        attributes: &[Attribute<'_>],
    ) {
        let times = (time_unix_nanos, time_unix_nanos);
        self.record_message(event, Severity::default(), times, body, attributes);
    }

    /// Records an event with its severity and its own time, which can be unknown, and the time at which it was observed.
    pub fn record_message(
        &mut self,
        event: &'static semconv::Event,
        severity: Severity,
        (time_unix_nanos, observed_unix_nanos): (UnixNanos, UnixNanos),
        body: Option<AttributeValue<'_>>,
        attributes: &[Attribute<'_>],
    ) {
        self.current.logs.record(&LogRecordParts {
            event_name: event.name,
            time_unix_nanos,
            observed_unix_nanos,
            severity,
            body,
            attributes,
        });
        self.counts.events += 1;
    }

    /// Records a span.
    pub fn record_span(&mut self, span: &SpanParts<'_>) {
        self.record_linked_span(span, &[]);
    }

    /// Records a span with links.
    pub fn record_linked_span(&mut self, span: &SpanParts<'_>, links: &[SpanLink]) {
        self.current.spans.linked_span(span, links);
        self.counts.spans += 1;
        if span.span.name == semconv::span::TRAIN_STEP.name {
            self.link_exemplar_to_step(span);
        }
    }

    /// Sends all items of all ranks, regardless of the size of the batches.
    pub fn flush(&mut self) {
        self.current.flush(&mut self.listener);
        for rank in self.ranks.values_mut() {
            rank.flush(&mut self.listener);
        }
    }

    /// Flushes, and returns the counts of recorded and skipped items.
    pub fn finish(mut self) -> (Counts, ParseReport) {
        self.flush();
        (self.counts, self.skipped)
    }

    /// Counts a point, or the reason that it was not written. Stores the duration of a step until its span is recorded.
    #[inline]
    fn count_point(
        &mut self,
        written: Result<(), SkipReason>,
        metric: &Metric,
        time_unix_nanos: UnixNanos,
        value: f64,
    ) {
        if let Err(reason) = written {
            return self.skipped.count(reason);
        }
        self.counts.points += 1;
        if metric.ordinal == semconv::metric::TRAIN_STEP_DURATION.ordinal {
            self.step_duration = Some((time_unix_nanos, value));
        }
    }

    /// Sends every batch of the current rank that is full. Records do so at their end.
    pub fn send_full_batches(&mut self) {
        let RankState {
            series: metrics,
            spans,
            logs,
            envelope,
            ..
        } = &mut self.current;
        if metrics.len().max(spans.len()).max(logs.len()) < BATCH_BYTES {
            return;
        }
        let is_full = |size: usize| size >= BATCH_BYTES;
        let metrics = is_full(metrics.len()).then(|| metrics.finish(envelope));
        let spans = is_full(spans.len()).then(|| spans.finish(envelope));
        let logs = is_full(logs.len()).then(|| logs.finish(envelope));
        let batches = [metrics, spans, logs].into_iter().flatten().flatten();
        batches.for_each(&mut self.listener);
    }
}

#[cfg(test)]
mod tests;
