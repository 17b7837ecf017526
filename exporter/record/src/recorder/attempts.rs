//! Attempts of a run within one log: a restarted run appends to its log, or truncates it and starts again.
//!
//! Steps increase within an attempt. Lines of several writers may swap two steps, so a step starts a new attempt if it is
//! below the two highest steps before it. A new attempt has its own resource, sums and trace ids.

use serde::{Deserialize, Serialize};

use pulsetrain_otlp::UnixNanos;

use super::Recorder;
use crate::ids::StepIds;

/// The two highest steps of an attempt.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq, Serialize)]
pub(super) struct HighestSteps {
    highest: Option<i64>,
    second: Option<i64>,
}

impl HighestSteps {
    /// Adds a step; returns whether it starts a new attempt.
    fn record(&mut self, step: i64) -> bool {
        if self.second.is_some_and(|second| step < second) {
            *self = Self {
                highest: Some(step),
                second: None,
            };
            return true;
        }
        if self.highest < Some(step) {
            self.second = self.highest.replace(step);
        }
        false
    }

    /// Makes the next step start a new attempt unless it is above the highest.
    fn expect_restart(&mut self) {
        self.second = self.highest.and_then(|highest| highest.checked_add(1));
    }
}

/// The current attempt of a rank.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq, Serialize)]
pub struct AttemptState {
    rank: i64,
    /// The number of the attempt; the first is 0.
    pub attempt: i64,
    steps: HighestSteps,
}

impl Recorder<'_> {
    /// Adds a training step, before any of its values are recorded. Returns whether it starts a new attempt.
    pub fn observe_step(&mut self, step: i64) -> bool {
        let is_restart = self.current.highest_steps.record(step);
        if is_restart {
            self.begin_attempt();
        }
        is_restart
    }

    /// Returns the highest step of the current attempt of the current rank.
    pub fn highest_step(&self) -> Option<i64> {
        self.current.highest_steps.highest
    }

    /// Handles the truncation of the log in place: the run was restarted unless its steps continue.
    pub fn expect_restart(&mut self) {
        for rank in self.all_ranks() {
            rank.highest_steps.expect_restart();
        }
    }

    /// Returns the current attempt of each rank.
    pub fn attempts(&self) -> Vec<AttemptState> {
        let own = (self.run.rank, self.run.attempt, self.current.highest_steps);
        let others = self.ranks.iter();
        let others = others.map(|(rank, state)| (*rank, state.attempt, state.highest_steps));
        let state = |(rank, attempt, steps)| AttemptState { rank, attempt, steps };
        [own].into_iter().chain(others).map(state).collect()
    }

    /// Restores the attempts of an earlier recorder, before anything is recorded.
    pub fn restore_attempts(&mut self, attempts: &[AttemptState]) {
        for state in attempts {
            if state.rank == self.run.rank {
                self.current.highest_steps = state.steps;
                self.set_attempt(state.attempt);
                continue;
            }
            let mut rank = self.begin_rank(state.rank, state.attempt);
            rank.highest_steps = state.steps;
            self.ranks.insert(state.rank, rank);
        }
    }

    /// Sends the items of the attempt, ends its series, and begins the next attempt.
    fn begin_attempt(&mut self) {
        self.end_own_series();
        self.current.flush(&mut self.listener);
        self.current.series.restart_states();
        self.current.series.restart_sums(UnixNanos::UNKNOWN);
        self.step_duration = None;
        self.set_attempt(self.run.attempt + 1);
    }

    /// Sets the attempt of the current rank.
    fn set_attempt(&mut self, attempt: i64) {
        if attempt != self.run.attempt {
            self.run.attempt = attempt;
            self.current.envelope = self.run.envelope();
            self.step_ids = StepIds::new(&self.run);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Run, recorder::Rank::OfJob};

    #[test]
    fn attempts_are_tracked_per_rank_and_restored_by_the_next_recorder() {
        let mut recorder = Recorder::new(Run::default(), |_| {});
        for step in [1, 2, 3] {
            for rank in [0, 1] {
                recorder.of_rank(Some(OfJob(rank)));
                assert!(!recorder.observe_step(step));
            }
        }
        recorder.of_rank(Some(OfJob(1)));
        assert!(recorder.observe_step(1));
        let of_second = recorder.step_ids(1);
        recorder.of_rank(Some(OfJob(0)));
        assert_eq!(recorder.run().attempt, 0);
        assert_ne!(recorder.step_ids(1).0, of_second.0);
        let mut next = Recorder::new(Run::default(), |_| {});
        next.restore_attempts(&recorder.attempts());
        next.of_rank(Some(OfJob(1)));
        assert_eq!((next.run().attempt, next.step_ids(1)), (1, of_second));
        next.of_rank(Some(OfJob(0)));
        assert!(next.observe_step(1));
        assert_eq!(
            next.step_ids(1).0,
            of_second.0,
            "the ranks of an attempt share the trace"
        );
    }

    fn restarts(steps: &[i64]) -> Vec<i64> {
        let mut highest = HighestSteps::default();
        let restarts = steps.iter().filter(|step| highest.record(**step));
        restarts.copied().collect()
    }

    #[test]
    fn a_step_below_the_two_highest_starts_a_new_attempt() {
        assert_eq!(restarts(&[1, 2, 3, 1, 2, 3, 4, 2]), [1, 2]);
        assert_eq!(restarts(&[100, 200, 300, 150, 200]), [150]);
    }

    #[test]
    fn increasing_repeated_or_swapped_steps_stay_in_one_attempt() {
        for steps in [
            [1, 2, 3, 4, 5, 6],
            [1, 1, 2, 2, 3, 3],
            [1, 2, 1, 3, 2, 4],
            [10, 10, 20, 10, 20, 30],
        ] {
            assert_eq!(restarts(&steps), [0; 0], "{steps:?}");
        }
    }

    #[test]
    fn after_a_truncation_a_repeated_step_starts_a_new_attempt_and_a_higher_one_does_not() {
        let after = |step| {
            let mut highest = HighestSteps::default();
            highest.record(7);
            highest.expect_restart();
            highest.record(step)
        };
        assert_eq!([6, 7, 8].map(after), [true, true, false]);
    }
}
