//! The wall time of a run by its use, from its first telemetry to its newest, across restarts.
//!
//! The account only moves forward, in integer nanoseconds. Each moment between the start and `settled`
//! belongs to exactly one [`Use`], so the totals add up to the wall time by construction. A closed step
//! settles the time up to its end:
//!
//! - inside the step: compilation, evaluation and restores with a span, then the exposed waits for data and
//!   for samples. The rest is productive, or wasted if an earlier attempt has done the step already. A save
//!   inside a step runs in the background.
//! - inside a record of every n-th step, before the step itself: everything with a span, saves included,
//!   because they may be between the steps that are not recorded. The rest is as in a step.
//! - between steps: lifecycle spans (initialization, compilation, checkpoints, evaluation). The time from the
//!   end of one attempt to the first telemetry of the next is recovery. The rest is `other`, or a stall if it
//!   is as long as one.
//!
//! The first step of an attempt often compiles. Its time beyond the median of the seven steps after it is
//! program startup, so an attempt's first step is settled together with these.
//!
//! Differences to Google's ml-goodput-measurement 0.2.3 (`goodput.py`), which computes once, over all
//! records: There, a step lasts until the next one starts. Lost steps are those of the disrupted attempt
//! (here the repeated ones, because a counter cannot decrease). The first step's excess is over the mean of
//! all steps, and waits for data inside steps are productive.

use std::collections::BTreeMap;

use super::{UnixNanos, sample::median};

/// The number of steps of an attempt from which the duration of its first step without startup is estimated.
const STARTUP_STEPS: usize = 8;
/// The maximum number of lifecycle intervals that wait to be settled. Beyond it the oldest are dropped.
const MAX_INTERVALS: usize = 4096;

/// A use of wall time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Use {
    /// Steps that count.
    Productive,
    /// Starting the devices.
    DeviceInitialization,
    /// Building the model, its data and its state.
    TrainingPreparation,
    /// Compilation, and the excess of first steps.
    ProgramStartup,
    /// Saving checkpoints between steps.
    CheckpointSave,
    /// Restoring checkpoints.
    CheckpointRestore,
    /// Evaluation between steps.
    Evaluation,
    /// Waiting for data.
    DataWait,
    /// Waiting for samples of inference or rollout.
    DispatchWait,
    /// No progress although the job runs.
    Stall,
    /// Steps done again after a restart.
    Repeated,
    /// From the last telemetry of an attempt to the first of the next.
    Recovery,
    /// Anything else between steps.
    Other,
}

impl Use {
    /// All uses.
    pub(crate) const ALL: [Self; 13] = [
        Self::Productive,
        Self::DeviceInitialization,
        Self::TrainingPreparation,
        Self::ProgramStartup,
        Self::CheckpointSave,
        Self::CheckpointRestore,
        Self::Evaluation,
        Self::DataWait,
        Self::DispatchWait,
        Self::Stall,
        Self::Repeated,
        Self::Recovery,
        Self::Other,
    ];
}

/// A span of the run outside its steps.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Interval {
    pub(crate) used_for: Use,
    pub(crate) attempt: i64,
    pub(crate) start: UnixNanos,
    pub(crate) end: UnixNanos,
}

/// A step of the run, over its ranks.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct RunStep {
    pub(crate) attempt: i64,
    pub(crate) number: i64,
    /// The start of the first step that this record covers, or `start` if every step is recorded.
    pub(crate) covered_start: UnixNanos,
    pub(crate) start: UnixNanos,
    pub(crate) end: UnixNanos,
    /// Exposed wait for data in all covered steps, in seconds.
    pub(crate) data_secs: f64,
    /// Exposed wait for samples in all covered steps, in seconds.
    pub(crate) dispatch_secs: f64,
}

/// The account of one run.
#[derive(Debug, Default)]
pub(crate) struct Timeline {
    started: Option<UnixNanos>,
    settled: UnixNanos,
    newest: UnixNanos,
    totals: BTreeMap<Use, u64>,
    intervals: Vec<Interval>,
    /// The first steps of the attempt, until there are enough.
    first_steps: Vec<RunStep>,
    attempt: Option<i64>,
    is_started: bool,
    highest_of_attempt: i64,
    /// The highest step of all earlier attempts.
    highest_before: Option<i64>,
    /// The minimum gap that is a stall, in seconds.
    stall_secs: f64,
}

impl Timeline {
    /// Creates an account without time.
    pub(crate) fn new() -> Self {
        Self {
            stall_secs: f64::INFINITY,
            ..Self::default()
        }
    }

    /// Sets the minimum gap that is a stall.
    pub(crate) fn set_stall_secs(&mut self, secs: f64) {
        self.stall_secs = secs;
    }

    /// Adds an interval outside steps. Time that is settled already keeps its use.
    pub(crate) fn add_interval(&mut self, interval: Interval) {
        if interval.end <= interval.start {
            return;
        }
        self.begin(interval.start);
        self.newest = self.newest.max(interval.end);
        if self.intervals.len() >= MAX_INTERVALS {
            self.intervals.remove(0);
        }
        self.intervals.push(interval);
    }

    /// Adds a closed step. Steps arrive in order.
    pub(crate) fn add_step(&mut self, step: RunStep) {
        self.begin(step.covered_start);
        self.newest = self.newest.max(step.end);
        if self.attempt != Some(step.attempt) {
            self.settle_first_steps();
            self.begin_attempt(&step);
        }
        if self.is_started {
            self.settle_step(&step, 0);
            return;
        }
        self.first_steps.push(step);
        if self.first_steps.len() >= STARTUP_STEPS {
            self.settle_first_steps();
        }
    }

    /// Counts the time until `now` as a stall, because it has no other explanation.
    pub(crate) fn stall_until(&mut self, now: UnixNanos) {
        if self.started.is_none() || now <= self.settled {
            return;
        }
        self.settle_first_steps();
        self.newest = self.newest.max(now);
        self.settle_gap(now, Use::Stall);
    }

    /// Settles everything up to the newest telemetry, `now` included.
    pub(crate) fn finish(&mut self, now: UnixNanos) {
        if self.started.is_none() {
            return;
        }
        self.settle_first_steps();
        self.newest = self.newest.max(now);
        let rest = self.gap_use(self.newest);
        self.settle_gap(self.newest, rest);
    }

    /// Returns the start of the run.
    pub(crate) fn started(&self) -> Option<UnixNanos> {
        self.started
    }

    /// Returns the time until which the account is settled.
    pub(crate) fn settled(&self) -> UnixNanos {
        self.settled
    }

    /// Returns the uses with their seconds.
    pub(crate) fn totals(&self) -> impl Iterator<Item = (Use, f64)> {
        self.totals
            .iter()
            .map(|(used_for, nanos)| (*used_for, *nanos as f64 / 1e9))
    }

    /// Returns the productive share of the wall time, or `None` before any time is settled.
    pub(crate) fn goodput(&self) -> Option<f64> {
        let productive = self.totals.get(&Use::Productive).copied().unwrap_or_default();
        let wall: u64 = self.totals.values().sum();
        (wall > 0).then(|| productive as f64 / wall as f64)
    }

    fn begin(&mut self, start: UnixNanos) {
        if self.started.is_none() {
            self.started = Some(start);
            self.settled = start;
            self.newest = start;
        }
        // Ranks report in any order, so the start of the run may move back while nothing is settled.
        if self.totals.is_empty() && Some(start) < self.started {
            self.started = Some(start);
            self.settled = start;
        }
    }

    fn begin_attempt(&mut self, first: &RunStep) {
        if self.attempt.is_some() {
            let highest = self
                .highest_before
                .unwrap_or(i64::MIN)
                .max(self.highest_of_attempt);
            self.highest_before = Some(highest);
        }
        self.attempt = Some(first.attempt);
        self.highest_of_attempt = i64::MIN;
        self.is_started = false;
        if self.highest_before.is_some() {
            self.recover(first);
        }
    }

    /// Settles the time from the end of the last attempt until the first telemetry of this one.
    fn recover(&mut self, first: &RunStep) {
        let of_attempt = self
            .intervals
            .iter()
            .filter(|interval| interval.attempt == first.attempt);
        let began = of_attempt.map(|interval| interval.start).min();
        self.settle_gap(
            began.map_or(first.covered_start, |began| began.min(first.covered_start)),
            Use::Recovery,
        );
    }

    fn settle_first_steps(&mut self) {
        let steps = std::mem::take(&mut self.first_steps);
        let (Some(first), rest) = (steps.first(), steps.iter().skip(1)) else {
            return;
        };
        self.is_started = true;
        let usual = median(rest.map(|step| step.end.secs_since(step.start)));
        let excess = usual.map_or(0.0, |usual| first.end.secs_since(first.start) - usual);
        for (index, step) in steps.iter().enumerate() {
            let startup = if index == 0 { nanos(excess) } else { 0 };
            self.settle_step(step, startup);
        }
    }

    fn settle_step(&mut self, step: &RunStep, startup: u64) {
        self.settle_gap(step.covered_start, self.gap_use(step.covered_start));
        let start = step.start.clamp(self.settled, step.end.max(self.settled));
        let before = self.totals.get(&Use::ProgramStartup).copied().unwrap_or_default();
        let named = self.count_intervals(self.settled, start, |_| true)
            + self.count_intervals(start, step.end, interrupts_steps);
        let compiled = self.totals.get(&Use::ProgramStartup).copied().unwrap_or_default() - before;
        let left = step.end.0.saturating_sub(self.settled.0);
        let mut left = left.saturating_sub(named);
        let mut count = |used_for: Use, amount: u64, totals: &mut BTreeMap<Use, u64>| {
            let amount = amount.min(left);
            left -= amount;
            if amount > 0 {
                *totals.entry(used_for).or_default() += amount;
            }
        };
        let totals = &mut self.totals;
        // The excess of a first step includes the time with a compilation span.
        count(Use::ProgramStartup, startup.saturating_sub(compiled), totals);
        count(Use::DataWait, nanos(step.data_secs), totals);
        count(Use::DispatchWait, nanos(step.dispatch_secs), totals);
        let is_repeated = self.highest_before.is_some_and(|highest| step.number <= highest);
        let rest = if is_repeated {
            Use::Repeated
        } else {
            Use::Productive
        };
        count(rest, u64::MAX, totals);
        self.settled = self.settled.max(step.end);
        self.highest_of_attempt = self.highest_of_attempt.max(step.number);
        let settled = self.settled;
        self.intervals.retain(|interval| interval.end > settled);
    }

    /// Returns the use of a gap until `until` without intervals.
    fn gap_use(&self, until: UnixNanos) -> Use {
        if until.secs_since(self.settled) >= self.stall_secs {
            Use::Stall
        } else {
            Use::Other
        }
    }

    /// Settles the time until `until` by intervals, and the rest as `rest`.
    fn settle_gap(&mut self, until: UnixNanos, rest: Use) {
        if until <= self.settled {
            return;
        }
        let named = self.count_intervals(self.settled, until, |_| true);
        let unnamed = (until.0 - self.settled.0).saturating_sub(named);
        if unnamed > 0 {
            *self.totals.entry(rest).or_default() += unnamed;
        }
        self.settled = until;
        self.intervals.retain(|interval| interval.end > until);
    }

    /// Counts the time of intervals between `from` and `until`, each moment once. Returns its nanoseconds.
    fn count_intervals(&mut self, from: UnixNanos, until: UnixNanos, wanted: impl Fn(Use) -> bool) -> u64 {
        let clip = |interval: &Interval| {
            let (start, end) = (interval.start.max(from), interval.end.min(until));
            (wanted(interval.used_for) && start < end).then_some((interval.used_for, start.0, end.0))
        };
        let mut parts: Vec<(Use, u64, u64)> = self.intervals.iter().filter_map(clip).collect();
        // The more specific use wins in an overlap: compilation inside the preparation, a restore inside it.
        parts.sort_by_key(|(used_for, start, _)| (priority(*used_for), *start));
        let (mut covered, mut named) = (Vec::<(u64, u64)>::new(), 0);
        for (used_for, start, end) in parts {
            let fresh = uncovered(&covered, start, end);
            let amount: u64 = fresh.iter().map(|(start, end)| end - start).sum();
            if amount > 0 {
                *self.totals.entry(used_for).or_default() += amount;
                named += amount;
                covered.extend(fresh);
                covered.sort_unstable();
            }
        }
        named
    }
}

/// Returns whether no step can run during an interval of this use.
fn interrupts_steps(used_for: Use) -> bool {
    matches!(
        used_for,
        Use::ProgramStartup | Use::CheckpointRestore | Use::Evaluation
    )
}

/// Returns the precedence of a use in overlaps.
fn priority(used_for: Use) -> u8 {
    match used_for {
        Use::ProgramStartup => 0,
        Use::CheckpointRestore => 1,
        Use::CheckpointSave => 2,
        Use::Evaluation => 3,
        Use::DataWait => 4,
        Use::DeviceInitialization => 5,
        Use::TrainingPreparation => 6,
        _ => 7,
    }
}

/// Returns the parts of an interval that no other covers. `covered` is sorted without overlaps.
fn uncovered(covered: &[(u64, u64)], start: u64, end: u64) -> Vec<(u64, u64)> {
    let (mut parts, mut from) = (Vec::new(), start);
    for (other_start, other_end) in covered.iter().copied() {
        if other_end <= from || other_start >= end {
            continue;
        }
        if other_start > from {
            parts.push((from, other_start));
        }
        from = from.max(other_end);
    }
    if from < end {
        parts.push((from, end));
    }
    parts
}

fn nanos(secs: f64) -> u64 {
    (secs.max(0.0) * 1e9).round() as u64
}

#[cfg(test)]
mod google;
#[cfg(test)]
mod tests;
