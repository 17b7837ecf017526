//! The last steps of a run: the time of each rank in each phase.
//!
//! A step consists of its span and the child spans, in any order of arrival. For a trainer without spans it
//! consists of points.

use std::collections::VecDeque;

use pulsetrain_otlp::UnixNanos;

use super::events::bounded;

/// The maximum number of stored ranks of one step.
const MAX_RANKS: usize = 4_096;

/// The maximum number of spans of one rank in one step.
const MAX_PARTS: usize = 64;

/// The maximum number of spans of one run that wait for the span of their step.
const MAX_WAITING: usize = 4_096;

/// The steps of a run, the oldest first.
#[derive(Debug, Default)]
pub(super) struct StepWindow {
    steps: VecDeque<Step>,
    /// Spans whose step is unknown. An SDK exports a child at its end, which is before its parent ends.
    waiting: VecDeque<OrphanSpan>,
    /// The names of phases, by index.
    phases: Vec<Box<str>>,
    /// Counts changes, so that the stream detects them.
    pub(super) revision: u64,
    pub(super) streamed: u64,
}

/// One step of one attempt.
#[derive(Debug)]
pub(super) struct Step {
    pub(super) number: i64,
    pub(super) attempt: i64,
    pub(super) end_nanos: UnixNanos,
    pub(super) ranks: Vec<RankStep>,
    pub(super) revision: u64,
}

/// The time of one rank in a step.
#[derive(Debug)]
pub(super) struct RankStep {
    pub(super) rank: i64,
    /// The id of its span, or 0.
    span: u64,
    trace: u128,
    /// The duration in seconds, or NaN while it is unknown.
    pub(super) duration: f32,
    parts: Vec<Part>,
}

/// A child span, or a phase that a point reports.
#[derive(Debug)]
struct Part {
    /// The id of its span, or 0 for a point.
    span: u64,
    parent: u64,
    phase: u16,
    seconds: f32,
}

/// A span without a step number that arrived before the span of its step.
#[derive(Debug)]
struct OrphanSpan {
    trace: u128,
    attempt: i64,
    rank: i64,
    span: u64,
    parent: u64,
    name: Box<str>,
    seconds: f32,
}

/// The key of a step.
#[derive(Clone, Copy, Debug)]
pub(super) struct StepKey {
    pub(super) number: i64,
    pub(super) attempt: i64,
    pub(super) rank: i64,
}

/// The ids of a span.
#[derive(Clone, Copy, Debug)]
pub(super) struct SpanIds<'a> {
    pub(super) trace: &'a [u8],
    pub(super) span: &'a [u8],
    pub(super) parent: &'a [u8],
}

/// Returns the id of a span as a number, or 0 for an invalid length.
fn span_id(bytes: &[u8]) -> u64 {
    bytes.try_into().map_or(0, u64::from_be_bytes)
}

/// Returns the id of a trace as a number, or 0 for an invalid length.
fn trace_id(bytes: &[u8]) -> u128 {
    bytes.try_into().map_or(0, u128::from_be_bytes)
}

impl StepWindow {
    /// Adds the span of a step.
    pub(super) fn step(
        &mut self,
        key: StepKey,
        ids: SpanIds<'_>,
        start: UnixNanos,
        end: UnixNanos,
        most: usize,
    ) {
        let Some(step) = self.entry(key, most) else { return };
        step.end_nanos = step.end_nanos.max(end);
        let Some(rank) = step.rank(key.rank) else { return };
        rank.trace = trace_id(ids.trace);
        rank.span = span_id(ids.span);
        rank.duration = seconds(start, end);
        self.add_waiting(trace_id(ids.trace), key.number, most);
    }

    /// Stores a span without a step number until the span of its step arrives. At the limit, the oldest is
    /// evicted.
    pub(super) fn wait(
        &mut self,
        (attempt, rank): (i64, i64),
        ids: SpanIds<'_>,
        name: &str,
        start: UnixNanos,
        end: UnixNanos,
    ) {
        if trace_id(ids.trace) == 0 {
            return;
        }
        if self.waiting.len() >= MAX_WAITING {
            self.waiting.pop_front();
        }
        self.waiting.push_back(OrphanSpan {
            trace: trace_id(ids.trace),
            attempt,
            rank,
            span: span_id(ids.span),
            parent: span_id(ids.parent),
            name: bounded(name),
            seconds: seconds(start, end),
        });
    }

    /// Adds the spans of a trace that waited for this step.
    fn add_waiting(&mut self, trace: u128, number: i64, most: usize) {
        if trace == 0 || self.waiting.iter().all(|span| span.trace != trace) {
            return;
        }
        let (found, others) = std::mem::take(&mut self.waiting)
            .into_iter()
            .partition(|span| span.trace == trace);
        self.waiting = others;
        let found: VecDeque<OrphanSpan> = found;
        for span in found {
            let part = Part {
                span: span.span,
                parent: span.parent,
                phase: self.phase_id(&span.name),
                seconds: span.seconds,
            };
            let key = StepKey {
                number,
                attempt: span.attempt,
                rank: span.rank,
            };
            if let Some(rank) = self.entry(key, most).and_then(|step| step.rank(key.rank)) {
                rank.add(part);
            }
        }
    }

    /// Adds a span of a phase.
    pub(super) fn phase(
        &mut self,
        key: StepKey,
        ids: SpanIds<'_>,
        name: &str,
        start: UnixNanos,
        end: UnixNanos,
        most: usize,
    ) {
        let part = Part {
            span: span_id(ids.span),
            parent: span_id(ids.parent),
            phase: self.phase_id(name),
            seconds: seconds(start, end),
        };
        let Some(rank) = self.entry(key, most).and_then(|step| step.rank(key.rank)) else {
            return;
        };
        rank.add(part);
    }

    /// Adds a point of a step: the duration of a phase, or of the step without a `phase`.
    pub(super) fn point(
        &mut self,
        key: StepKey,
        phase: Option<&str>,
        seconds: f64,
        time_nanos: UnixNanos,
        most: usize,
    ) {
        let phase = phase.map(|name| self.phase_id(name));
        let Some(step) = self.entry(key, most) else { return };
        step.end_nanos = step.end_nanos.max(time_nanos);
        let Some(rank) = step.rank(key.rank) else { return };
        match phase {
            None if rank.span == 0 => rank.duration = seconds as f32,
            None => {}
            Some(phase) => rank.add(Part {
                span: 0,
                parent: 0,
                phase,
                seconds: seconds as f32,
            }),
        }
    }

    /// Returns the step of a rank's trace.
    pub(super) fn of_trace(&self, trace: &[u8], rank: i64) -> Option<i64> {
        let trace = trace_id(trace);
        let is_it = |step: &&Step| {
            let place = step.ranks.binary_search_by_key(&rank, |entry| entry.rank);
            place.is_ok_and(|place| step.ranks[place].trace == trace)
        };
        if trace == 0 {
            return None;
        }
        self.steps.iter().rev().find(is_it).map(|step| step.number)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Step> {
        self.steps.iter()
    }

    pub(super) fn phases(&self) -> &[Box<str>] {
        &self.phases
    }

    /// Evicts all but the newest steps.
    pub(super) fn shrink(&mut self, most: usize) {
        while self.steps.len() > most {
            self.steps.pop_front();
        }
    }

    pub(super) fn bytes(&self) -> usize {
        let of_rank = |rank: &RankStep| size_of::<RankStep>() + rank.parts.capacity() * size_of::<Part>();
        let of_step = |step: &Step| size_of::<Step>() + step.ranks.iter().map(of_rank).sum::<usize>();
        let of_waiting = |span: &OrphanSpan| size_of::<OrphanSpan>() + span.name.len();
        self.steps.iter().map(of_step).sum::<usize>()
            + self.waiting.iter().map(of_waiting).sum::<usize>()
            + self.phases.iter().map(|phase| phase.len() + 16).sum::<usize>()
    }

    /// Returns the step of a key. Creates it unless it is older than all stored steps.
    fn entry(&mut self, key: StepKey, most: usize) -> Option<&mut Step> {
        self.revision += 1;
        let revision = self.revision;
        let order = (key.attempt, key.number);
        let place = self
            .steps
            .iter()
            .rposition(|step| (step.attempt, step.number) <= order);
        let place = match place {
            Some(place) if (self.steps[place].attempt, self.steps[place].number) == order => place,
            None if self.steps.len() >= most => return None,
            place => {
                let place = place.map_or(0, |place| place + 1);
                self.steps.insert(place, Step::new(key));
                if self.steps.len() > most {
                    self.steps.pop_front();
                    place - 1
                } else {
                    place
                }
            }
        };
        let step = self.steps.get_mut(place)?;
        step.revision = revision;
        Some(step)
    }

    fn phase_id(&mut self, name: &str) -> u16 {
        let known = self.phases.iter().position(|phase| **phase == *name);
        let id = known.unwrap_or_else(|| {
            // Span names have low cardinality. A name beyond the limit shares the last index.
            if self.phases.len() < 255 {
                self.phases.push(name.into());
            }
            self.phases.len() - 1
        });
        id as u16
    }
}

impl Step {
    fn new(key: StepKey) -> Self {
        Self {
            number: key.number,
            attempt: key.attempt,
            end_nanos: UnixNanos::UNKNOWN,
            ranks: Vec::new(),
            revision: 0,
        }
    }

    fn rank(&mut self, rank: i64) -> Option<&mut RankStep> {
        let place = match self.ranks.binary_search_by_key(&rank, |entry| entry.rank) {
            Ok(place) => place,
            Err(_) if self.ranks.len() >= MAX_RANKS => return None,
            Err(place) => {
                self.ranks.insert(place, RankStep::new(rank));
                place
            }
        };
        self.ranks.get_mut(place)
    }
}

impl RankStep {
    fn new(rank: i64) -> Self {
        Self {
            rank,
            span: 0,
            trace: 0,
            duration: f32::NAN,
            parts: Vec::new(),
        }
    }

    /// Adds a part. A repeated span counts once, because a sender retries.
    fn add(&mut self, part: Part) {
        let is_same = |other: &&mut Part| other.phase == part.phase && other.span == part.span;
        let count = self.parts.len();
        match self.parts.iter_mut().find(is_same) {
            Some(same) => *same = part,
            None if count < MAX_PARTS => self.parts.push(part),
            None => {}
        }
    }

    /// Returns the seconds of each phase: from child spans, or from points if there are none.
    pub(super) fn phases(&self) -> impl Iterator<Item = (u16, f32)> {
        let is_child = |part: &&Part| part.parent != 0 && part.parent == self.span;
        let has_children = self.parts.iter().any(|part| is_child(&part));
        let shown = self.parts.iter().filter(move |part| {
            if has_children {
                is_child(part)
            } else {
                part.span == 0
            }
        });
        shown.map(|part| (part.phase, part.seconds))
    }
}

fn seconds(start: UnixNanos, end: UnixNanos) -> f32 {
    (end.nanos_since(start) as f64 / 1e9) as f32
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: UnixNanos = UnixNanos(0);
    const AFTER_1_S: UnixNanos = UnixNanos(1_000_000_000);
    const AFTER_3_S: UnixNanos = UnixNanos(3_000_000_000);

    fn key(number: i64, rank: i64) -> StepKey {
        StepKey {
            number,
            attempt: 0,
            rank,
        }
    }

    fn ids<'a>(span: &'a [u8; 8], parent: &'a [u8]) -> SpanIds<'a> {
        SpanIds {
            trace: b"0123456789abcdef",
            span,
            parent,
        }
    }

    #[test]
    fn phases_are_the_spans_directly_under_the_step_in_any_order() {
        let mut window = StepWindow::default();
        window.phase(
            key(1, 0),
            ids(b"forward_", b"the_step"),
            "forward",
            START,
            AFTER_1_S,
            10,
        );
        window.phase(
            key(1, 0),
            ids(b"inner___", b"forward_"),
            "layer",
            START,
            AFTER_1_S,
            10,
        );
        window.step(key(1, 0), ids(b"the_step", b""), START, AFTER_3_S, 10);
        for _ in 0..2 {
            window.phase(
                key(1, 0),
                ids(b"backward", b"the_step"),
                "backward",
                AFTER_1_S,
                AFTER_3_S,
                10,
            );
        }
        let step = window.iter().next().unwrap();
        assert_eq!(step.ranks[0].duration, 3.0);
        let phases: Vec<_> = step.ranks[0]
            .phases()
            .map(|(phase, seconds)| (&*window.phases()[phase as usize], seconds))
            .collect();
        assert_eq!(phases, [("forward", 1.0), ("backward", 2.0)]);
        assert_eq!(window.of_trace(b"0123456789abcdef", 0), Some(1));
    }

    #[test]
    fn spans_without_a_step_number_wait_for_the_span_of_their_step() {
        let mut window = StepWindow::default();
        for rank in [0, 1] {
            window.wait(
                (0, rank),
                ids(b"forward_", b"the_step"),
                "forward",
                START,
                AFTER_1_S,
            );
        }
        assert_eq!(window.iter().count(), 0);
        for rank in [0, 1] {
            window.step(key(7, rank), ids(b"the_step", b""), START, AFTER_3_S, 10);
        }
        let step = window.iter().next().unwrap();
        assert_eq!(step.number, 7);
        for rank in &step.ranks {
            assert_eq!(rank.phases().collect::<Vec<_>>(), [(0, 1.0)]);
        }
        assert!(window.waiting.is_empty());
    }

    #[test]
    fn waiting_spans_are_limited_and_the_newest_are_kept() {
        let mut window = StepWindow::default();
        let name = |number: usize| format!("span_{number}");
        for number in 0..MAX_WAITING + 10 {
            window.wait(
                (0, 0),
                ids(b"forward_", b"no_step_"),
                &name(number),
                START,
                AFTER_1_S,
            );
        }
        assert_eq!(window.waiting.len(), MAX_WAITING);
        assert_eq!(*window.waiting[0].name, *name(10));
    }

    #[test]
    fn durations_come_from_points_if_there_are_no_spans() {
        let mut window = StepWindow::default();
        window.point(key(1, 0), None, 2.0, AFTER_1_S, 10);
        window.point(key(1, 0), Some("data"), 0.5, AFTER_1_S, 10);
        let rank = &window.iter().next().unwrap().ranks[0];
        assert_eq!(
            (rank.duration, rank.phases().collect::<Vec<_>>()),
            (2.0, vec![(0, 0.5)])
        );
    }

    #[test]
    fn newest_steps_are_kept_for_any_arrival_order_of_the_ranks() {
        let mut window = StepWindow::default();
        for number in [1, 2, 3, 4, 2, 5, 1] {
            for rank in [7, 3] {
                window.step(key(number, rank), ids(b"the_step", b""), START, AFTER_1_S, 3);
            }
        }
        let numbers: Vec<_> = window.iter().map(|step| step.number).collect();
        assert_eq!(numbers, [3, 4, 5]);
        assert!(
            window
                .iter()
                .all(|step| step.ranks.iter().map(|rank| rank.rank).eq([3, 7]))
        );
    }
}
