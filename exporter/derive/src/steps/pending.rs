//! The open steps of one rank, and the conditions for closing them.
//!
//! Spans and points of a step arrive in different batches, and a batch may contain thousands of steps.
//! Therefore the kinds of data that a rank sends are learned. A step is complete when all these kinds have
//! arrived. It closes when it is complete and a later step has begun, or at its deadline.
//!
//! A rank that sends a span of every step may export metrics before the span of the same step, or in the
//! middle of the step. Such a step is held: it has no deadline until its span or a later one arrives, because
//! the spans of earlier steps are still to arrive.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    sync::Arc,
};

use pulsetrain_otlp::UnixNanos;
use pulsetrain_pipeline::{Batch, clock::Instant};
use pulsetrain_run::SeriesTrackers;
use pulsetrain_semconv::Metric;

use super::{Constants, Phase, RankInfo, StepFacts, assembler::handle, draft::Draft, group::Group};

/// The maximum number of child spans of a rank without a known step.
const MAX_ORPHANS: usize = 256;

/// The maximum number of series of a rank. The growth of cumulative ones beyond it is unknown.
const MAX_SERIES: usize = 256;

/// The number of newest steps that are searched for a span without a number.
const RECENT: usize = 64;

/// The maximum number of steps of a rank that are held for their spans. Beyond it spans are not waited for.
const MAX_HELD: usize = 16;

/// A rank with its open steps.
#[derive(Debug)]
pub(crate) struct RankSteps {
    pub(crate) info: Arc<RankInfo>,
    /// The counters and distributions of its steps.
    pub(crate) series: SeriesTrackers,
    /// The newest event time.
    pub(crate) newest: UnixNanos,
    /// The ordinals of the derived metrics that the trainer sends itself.
    suppressed: BTreeSet<u16>,
    open: BTreeMap<i64, Draft>,
    /// Child spans whose step is unknown: trace, phase, seconds.
    orphans: Vec<([u8; 16], Phase, f64)>,
    /// The traces of the newest steps.
    traces: VecDeque<([u8; 16], i64)>,
    /// The time until which the kinds of data of the rank are learned.
    learning_until: Instant,
    sends_spans: bool,
    sends_points: bool,
    sends_durations: bool,
    /// The number of the newest span `train.step`.
    last_span: Option<i64>,
    /// Whether the newest span followed that of the step before, so that spans are not sampled.
    has_all_spans: bool,
    /// The last closed step: number and end.
    last: Option<(i64, UnixNanos)>,
    /// The last closed step that had points.
    last_with_points: Option<(i64, UnixNanos)>,
    /// Points of the last step that arrived after it had closed. They belong to the next one.
    late: Option<Group>,
    /// The highest number of a closed step.
    highest_closed: Option<i64>,
    /// The highest number of any step.
    highest: i64,
    /// The end of the last step before a restart that closed the open steps.
    restarted: UnixNanos,
}

/// A span `train.step`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StepSpan {
    pub(crate) number: Option<i64>,
    pub(crate) trace: Option<[u8; 16]>,
    pub(crate) start: UnixNanos,
    pub(crate) end: UnixNanos,
}

impl RankSteps {
    /// Returns a rank without steps.
    pub(crate) fn new(info: Arc<RankInfo>, newest: UnixNanos, learning_until: Instant) -> Self {
        Self {
            info,
            series: SeriesTrackers::new(MAX_SERIES),
            newest,
            suppressed: BTreeSet::new(),
            open: BTreeMap::new(),
            orphans: Vec::new(),
            traces: VecDeque::new(),
            learning_until,
            sends_spans: false,
            sends_points: false,
            sends_durations: false,
            last_span: None,
            has_all_spans: false,
            last: None,
            last_with_points: None,
            late: None,
            highest_closed: None,
            highest: i64::MIN,
            restarted: UnixNanos::default(),
        }
    }

    /// Returns the number of open steps.
    pub(crate) fn len(&self) -> usize {
        self.open.len()
    }

    /// Returns the deadline of an open step.
    pub(crate) fn deadline(&self, number: i64) -> Option<Instant> {
        self.open.get(&number).map(|draft| draft.deadline)
    }

    /// Records that the rank sends a derived metric itself. Returns whether that is new.
    pub(crate) fn suppress(&mut self, metric: &Metric) -> bool {
        self.suppressed.insert(metric.ordinal)
    }

    /// Returns whether points belong to a repeated step after all open steps.
    pub(crate) fn points_repeat_a_step(&self, group: &Group) -> bool {
        let time = group.time_unix_nanos;
        let start = match group.duration_secs {
            Some(secs) => time.minus_secs(secs),
            None if self.sends_spans || self.sends_durations => return false,
            None => time,
        };
        // An exporter may send the newest number again.
        let is_newest = self.open.last_key_value().map(|(number, _)| *number) == group.number;
        !is_newest && self.repeats_a_step(group.number, start)
    }

    /// Returns whether a step that began at `start` is repeated after all open steps.
    pub(crate) fn repeats_a_step(&self, number: Option<i64>, start: UnixNanos) -> bool {
        let Some((highest, draft)) = self.open.last_key_value() else {
            return false;
        };
        let end = draft.window().1;
        end > UnixNanos::default() && number.is_some_and(|number| number <= *highest) && start >= end
    }

    /// Records a restart: the open steps are about to close, and later parts of them are ignored.
    pub(crate) fn restart(&mut self) {
        if let Some((_, draft)) = self.open.last_key_value() {
            self.restarted = draft.window().1;
        }
    }

    /// Adds points that were recorded together. Returns the number of a step that they opened.
    pub(crate) fn add_points(&mut self, group: &Group, batch: &Batch, deadline: Instant) -> Option<i64> {
        let time = group.time_unix_nanos;
        self.newest = self.newest.max(time);
        if !group.is_step() {
            // Values alone belong to the open step.
            if let Some(mut draft) = self.open.last_entry() {
                draft.get_mut().add_points(group);
            }
            return None;
        }
        // An exporter that sends once a minute repeats the newest number. That is the same step, unless its
        // span is sent again.
        let is_after_restart = |last: i64| self.open.last_key_value().is_some_and(|(open, _)| *open < last);
        let is_newest = self
            .last
            .is_some_and(|(last, _)| group.number == Some(last) && !is_after_restart(last));
        let start = group.duration_secs.filter(|_| !is_newest);
        let start = start.map(|secs| time.minus_secs(secs));
        self.sends_durations |= group.duration_secs.is_some();
        let start = start.or_else(|| self.start_of_repeated(group, time));
        let number = group.number.or_else(|| self.number_by_end(time));
        let number = number.unwrap_or_else(|| self.next_number());
        let Some((draft, opened)) = self.draft(number, start, batch, deadline) else {
            // Its counters cover steps all the same.
            self.late = Some(group.clone()).filter(|_| is_newest);
            return None;
        };
        draft.add_points(group);
        self.sends_points = true;
        opened.then_some(number)
    }

    /// Adds a span `train.step`. Returns the draft, and the number of the step if the span opened it.
    pub(crate) fn add_span(
        &mut self,
        span: StepSpan,
        batch: &Batch,
        deadline: Instant,
    ) -> Option<(&mut Draft, Option<i64>)> {
        self.newest = self.newest.max(span.end);
        if span.end <= self.restarted {
            return None;
        }
        let number = span.number.or_else(|| self.number_by_end(span.end));
        let number = number.unwrap_or_else(|| self.next_number());
        self.observe_span(number);
        if let Some(trace) = span.trace {
            self.traces.truncate(RECENT - 1);
            self.traces.push_front((trace, number));
        }
        let trace = span.trace;
        let mut orphans = std::mem::take(&mut self.orphans);
        let found = self.draft(number, Some(span.start), batch, deadline);
        let found = found.map(|(draft, opened)| {
            draft.span = Some((span.start, span.end));
            orphans.retain(|(of, phase, secs)| {
                let is_mine = Some(*of) == trace;
                if is_mine {
                    draft.phases.add_span(*phase, *secs);
                }
                !is_mine
            });
            opened
        });
        self.orphans = orphans;
        let opened = found?;
        Some((self.open.get_mut(&number)?, opened.then_some(number)))
    }

    /// Adds a child span of a step, found by its number or by its trace. Returns the number of a step that it
    /// opened.
    pub(crate) fn add_child(
        &mut self,
        phase: Phase,
        span: StepSpan,
        batch: &Batch,
        deadline: Instant,
    ) -> Option<i64> {
        self.newest = self.newest.max(span.end);
        if span.end <= self.restarted {
            return None;
        }
        let secs = span.end.secs_since(span.start);
        let by_trace = || {
            let mut traces = self.traces.iter();
            traces
                .find(|(trace, _)| Some(*trace) == span.trace)
                .map(|(_, number)| *number)
        };
        match (span.number.or_else(by_trace), span.trace) {
            (Some(number), _) => {
                let (draft, opened) = self.draft(number, Some(span.start), batch, deadline)?;
                draft.phases.add_span(phase, secs);
                opened.then_some(number)
            }
            (None, Some(trace)) if self.orphans.len() < MAX_ORPHANS => {
                self.orphans.push((trace, phase, secs));
                None
            }
            _ => None,
        }
    }

    /// Closes the steps that are complete or past their deadline, in the order of their numbers.
    pub(crate) fn close(&mut self, now: Instant, constants: &Constants, out: &mut Vec<StepFacts>) {
        self.release_excess_held();
        let Some(until) = self.closed_until(now) else {
            return;
        };
        while let Some(first) = self.open.first_entry() {
            if *first.key() > until {
                break;
            }
            let (number, draft) = first.remove_entry();
            out.extend(self.facts(number, draft, constants));
        }
    }

    /// Closes the first open step.
    pub(crate) fn close_first(&mut self, constants: &Constants, out: &mut Vec<StepFacts>) {
        if let Some((number, draft)) = self.open.pop_first() {
            out.extend(self.facts(number, draft, constants));
        }
    }

    /// Returns the time of points that show a restart of a rank that sends only numbers: a number lower than
    /// the last, after the last step.
    fn start_of_repeated(&self, group: &Group, time: UnixNanos) -> Option<UnixNanos> {
        let (last, end) = self.last?;
        let is_repeated = group.number.is_some_and(|number| number < last) && time > end;
        (is_repeated && !self.sends_spans && !self.sends_durations).then_some(time)
    }

    fn observe_span(&mut self, number: i64) {
        self.sends_spans = true;
        if let Some(next) = self.last_span.map(|last| last.saturating_add(1))
            && number >= next
        {
            self.has_all_spans = number == next;
        }
        self.last_span = Some(number);
    }

    /// Returns whether a step waits for its span without a deadline.
    fn is_held(&self, number: i64, draft: &Draft) -> bool {
        self.has_all_spans && draft.span.is_none() && Some(number) > self.last_span
    }

    /// Stops holding steps at the limit, because their spans do not seem to arrive.
    fn release_excess_held(&mut self) {
        if self.open.len() > MAX_HELD {
            let held = self
                .open
                .iter()
                .filter(|(number, draft)| self.is_held(**number, draft));
            self.has_all_spans &= held.count() <= MAX_HELD;
        }
    }

    /// Returns the highest number of a step that can close.
    fn closed_until(&self, now: Instant) -> Option<i64> {
        let is_learning = now < self.learning_until && !(self.sends_spans && self.sends_points);
        let is_complete = |draft: &Draft| {
            !is_learning
                && (draft.span.is_some() || !self.sends_spans)
                && (draft.points.is_some() || !self.sends_points)
        };
        let mut later = self.open.iter().rev();
        // The newest step may get more data.
        let newest_late = later
            .next()
            .filter(|(number, draft)| draft.deadline <= now && !self.is_held(**number, draft))
            .map(|(number, _)| *number);
        newest_late.or_else(|| {
            later
                .filter(|(number, draft)| !self.is_held(**number, draft))
                .find(|(_, draft)| is_complete(draft) || draft.deadline <= now)
                .map(|(number, _)| *number)
        })
    }

    /// Returns the open step of a number, or `None` if it has closed already.
    fn draft(
        &mut self,
        number: i64,
        start: Option<UnixNanos>,
        batch: &Batch,
        deadline: Instant,
    ) -> Option<(&mut Draft, bool)> {
        let is_open = self.open.contains_key(&number);
        if !is_open && let Some((last, end)) = self.last {
            // A repeated number is a repeated step only if it began after the last one ended.
            let is_repeated = start.is_some_and(|start| start >= end);
            if number <= last && !is_repeated {
                return None;
            }
        }
        self.highest = self.highest.max(number);
        let late = if is_open { None } else { self.late.take() };
        let draft = self
            .open
            .entry(number)
            .or_insert_with(|| Draft::new(batch, deadline));
        if let Some(late) = late {
            draft.add_points(&late);
        }
        if !draft.batch.can_share_batch_with(batch) {
            draft.batch = handle(batch);
        }
        Some((draft, !is_open))
    }

    /// Returns the open step whose span or observation ended at a time.
    fn number_by_end(&self, end: UnixNanos) -> Option<i64> {
        let mut open = self.open.iter().rev().take(RECENT);
        let is_it = |draft: &Draft| draft.points == Some(end) || draft.span.is_some_and(|(_, at)| at == end);
        open.find(|(_, draft)| is_it(draft)).map(|(number, _)| *number)
    }

    /// Returns the number for a step of a trainer that does not number its steps.
    fn next_number(&self) -> i64 {
        self.highest.max(0).saturating_add(1)
    }

    fn facts(&mut self, number: i64, draft: Draft, constants: &Constants) -> Option<StepFacts> {
        // Child spans alone are no step, because its end is unknown.
        draft.span.or(draft.points.map(|at| (at, at)))?;
        let (start, end) = draft.window();
        let last = self.last.replace((number, end));
        let since = match draft.points {
            Some(_) => self.last_with_points.replace((number, end)),
            None => last,
        };
        let is_repeated = self.highest_closed.is_some_and(|highest| number <= highest);
        self.highest_closed = self.highest_closed.max(Some(number));
        let mut values = draft.span_values;
        values.merge(&draft.values);
        Some(StepFacts {
            rank: Arc::clone(&self.info),
            number,
            done: last.map(|(last, _)| number.saturating_sub(last).max(1)),
            covered: since.map(|(last, _)| number.saturating_sub(last).max(1)),
            start,
            end,
            previous_end: since.map(|(_, end)| end),
            is_repeated,
            phases: draft.phases,
            values,
            constants: *constants,
            batch: draft.batch,
        })
    }
}
