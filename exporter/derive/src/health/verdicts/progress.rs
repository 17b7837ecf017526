//! `stalled` and `collective_hang`: no step ends although the run is not finished.
//!
//! The stall time is the greatest of 30 s, 20 times the median time between step ends, and 3 times the
//! longest such time of the last 512 steps (which includes the usual checkpoints and evaluations). After a
//! step at which the run usually saves a checkpoint, it is at least 20 times the usual save, because a slow
//! checkpoint ends by itself. Before the fifth step there is no stall time. The lag of steps relative to
//! other telemetry, such as GPU readings, is added, so a trainer that exports once a minute does not stall
//! every minute.
//!
//! A GPU that spins in a collective is busy at low power (requested by operators, nebius/soperator#796). If
//! at least half of the GPUs have a utilization of 90 % or more at no more than 70 % of their power in steps,
//! the run hangs, otherwise it is stalled.

use super::super::{UnixNanos, sample::Samples};

const MIN_SECS: f64 = 30.0;
const MEDIANS: f64 = 20.0;
const LONGEST: f64 = 3.0;
const SAVES: f64 = 20.0;
const WINDOW: usize = 512;
const MIN_STEPS: u32 = 5;
/// The share of the greatest lag that remains after each further step.
const LAG_DECAY: f64 = 0.99;

/// The kind of missing progress.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StallKind {
    /// The GPUs are idle, or unknown.
    Idle,
    /// The GPUs spin.
    Busy,
}

/// Watches the progress of a run.
#[derive(Debug)]
pub(crate) struct StallDetector {
    intervals: Samples,
    attempt: i64,
    steps: u32,
    newest: Option<(i64, UnixNanos)>,
    /// The end of the newest checkpoint, evaluation, ...
    activity: UnixNanos,
    planned: Option<i64>,
    is_over: bool,
    /// The time by which steps arrive later than other telemetry.
    lag_secs: f64,
    /// The steps of the last two saves.
    saves: [Option<i64>; 2],
}

impl Default for StallDetector {
    fn default() -> Self {
        Self {
            intervals: Samples::new(WINDOW),
            attempt: 0,
            steps: 0,
            newest: None,
            activity: UnixNanos::default(),
            planned: None,
            is_over: false,
            lag_secs: 0.0,
            saves: [None; 2],
        }
    }
}

impl StallDetector {
    /// Adds the end of a step of any rank. `was_stalled` is whether a verdict was open until now.
    pub(crate) fn on_step(&mut self, attempt: i64, number: i64, end: UnixNanos, was_stalled: bool) {
        if attempt != self.attempt {
            self.attempt = attempt;
            self.newest = None;
            self.saves = [None; 2];
        }
        self.is_over = false;
        match &mut self.newest {
            Some((newest, newest_end)) if number <= *newest => {
                *newest_end = (*newest_end).max(end);
                return;
            }
            Some((_, newest_end)) if !was_stalled => self.intervals.push(end.secs_since(*newest_end)),
            _ => {}
        }
        self.steps = self.steps.saturating_add(1);
        self.newest = Some((number, end));
    }

    /// Records by how much event time a step arrived later than other telemetry.
    pub(crate) fn on_lag(&mut self, secs: f64) {
        self.lag_secs = (self.lag_secs * LAG_DECAY).max(secs);
    }

    /// Adds the end of another activity: a checkpoint, an evaluation.
    pub(crate) fn on_activity(&mut self, end: UnixNanos) {
        self.activity = self.activity.max(end);
    }

    /// Adds a checkpoint.
    pub(crate) fn on_save(&mut self, step: Option<i64>) {
        if step.is_some() && step != self.saves[1] {
            self.saves = [self.saves[1], step];
        }
    }

    /// Sets the planned number of steps.
    pub(crate) fn set_planned(&mut self, steps: Option<i64>) {
        self.planned = steps;
    }

    /// Returns whether the planned number of steps is known.
    pub(crate) fn has_plan(&self) -> bool {
        self.planned.is_some()
    }

    /// Ends the run. A finished run does not stall.
    pub(crate) fn end(&mut self) {
        self.is_over = true;
    }

    /// Returns the newest step and its end.
    pub(crate) fn newest(&self) -> Option<(i64, UnixNanos)> {
        self.newest
    }

    /// Returns the seconds without a step after which the run is stalled, or `None` if it cannot be.
    pub(crate) fn stall_secs(&self, usual_save_secs: Option<f64>) -> Option<f64> {
        let (number, _) = self.newest?;
        let is_done = self
            .planned
            .is_some_and(|planned| number.saturating_add(1) >= planned);
        if self.is_over || is_done || self.steps < MIN_STEPS {
            return None;
        }
        let by_median = MEDIANS * self.intervals.median()?;
        let by_longest = LONGEST * self.intervals.max()?;
        let by_save = usual_save_secs
            .filter(|_| self.may_be_saving(number))
            .map_or(0.0, |secs| SAVES * secs);
        Some(MIN_SECS.max(by_median).max(by_longest).max(by_save) + self.lag_secs)
    }

    /// Returns the start and the seconds of a time without progress, if that is a stall.
    pub(crate) fn stalled_for(
        &self,
        now: UnixNanos,
        usual_save_secs: Option<f64>,
    ) -> Option<(UnixNanos, f64)> {
        let (_, end) = self.newest?;
        let end = end.max(self.activity);
        let secs = now.secs_since(end);
        // The exact time is computed only if it may have passed.
        (secs >= MIN_SECS && secs >= self.stall_secs(usual_save_secs)?).then_some((end, secs))
    }

    /// Returns whether a checkpoint is due at this step, by the distance of the last two. The step of a save may be
    /// counted from 0 or 1.
    fn may_be_saving(&self, number: i64) -> bool {
        let [Some(one), Some(other)] = self.saves else {
            return false;
        };
        let period = other.saturating_sub(one).max(1);
        let distance = number.saturating_sub(other).rem_euclid(period);
        distance <= 1 || distance == period - 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(secs: u64) -> UnixNanos {
        UnixNanos(secs * 1_000_000_000)
    }

    fn run(steps: i64) -> StallDetector {
        let mut progress = StallDetector::default();
        (0..steps).for_each(|number| progress.on_step(0, number, at(number as u64), false));
        progress
    }

    #[test]
    fn stall_timeout_scales_with_step_duration() {
        let progress = run(101);
        assert_eq!(progress.stalled_for(at(129), None), None);
        assert_eq!(progress.stalled_for(at(130), None), Some((at(100), 30.0)));
        let mut slow = StallDetector::default();
        (0..10).for_each(|number| slow.on_step(0, number, at(number as u64 * 20), false));
        assert_eq!(slow.stall_secs(None), Some(400.0));
    }

    #[test]
    fn previously_seen_pauses_are_not_a_stall() {
        let mut progress = run(101);
        progress.on_step(0, 101, at(120), false);
        assert_eq!(
            progress.stall_secs(None),
            Some(60.0),
            "a pause of 20 s was seen before"
        );
        progress.on_step(0, 102, at(1000), true);
        assert_eq!(progress.stall_secs(None), Some(60.0), "a stall is no usual pause");
    }

    #[test]
    fn step_with_a_checkpoint_may_take_longer() {
        let mut progress = run(101);
        progress.on_save(Some(50));
        progress.on_save(Some(100));
        assert_eq!(progress.stall_secs(Some(4.0)), Some(80.0));
        (101..130).for_each(|number| progress.on_step(0, number, at(number as u64), false));
        assert_eq!(progress.stall_secs(Some(4.0)), Some(30.0));
    }

    #[test]
    fn extreme_step_numbers_do_not_overflow() {
        let mut progress = run(101);
        progress.on_save(Some(i64::MIN));
        progress.on_save(Some(i64::MAX));
        progress.set_planned(Some(i64::MAX));
        progress.on_step(0, i64::MAX, at(101), false);
        assert_eq!(progress.stall_secs(Some(4.0)), None, "the run has done its steps");
        progress.set_planned(None);
        assert_eq!(progress.stall_secs(Some(4.0)), Some(80.0));
    }

    #[test]
    fn finished_or_just_started_run_does_not_stall() {
        let mut progress = run(101);
        progress.set_planned(Some(101));
        assert_eq!(progress.stall_secs(None), None);
        let mut ended = run(101);
        ended.end();
        assert_eq!(ended.stall_secs(None), None);
        assert_eq!(run(4).stall_secs(None), None);
    }
}
