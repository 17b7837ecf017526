//! Detects restarts that the trainer does not number: its ranks repeat steps within an attempt.
//!
//! A restart belongs to the run. The first rank that repeats a step starts it. Any other rank joins when it
//! repeats a step too, or with its first step that begins later. So a rank that repeats one number by mistake
//! stays with the others.

use std::collections::{BTreeMap, VecDeque};

use super::{UnixNanos, align::MAX_RANKS};

/// The maximum number of restarts whose times are kept. Older ones are only counted.
const MAX_TIMES: usize = 1024;

/// The restarts of a run.
#[derive(Debug, Default)]
pub(crate) struct Restarts {
    /// The start of the first repeated step of each restart, the oldest first.
    began: VecDeque<UnixNanos>,
    /// The number of restarts before those in `began`.
    older: i64,
    ranks: BTreeMap<i64, Rank>,
}

#[derive(Debug)]
struct Rank {
    /// The number of the newest step.
    newest: i64,
    restarts: i64,
}

impl Restarts {
    /// Adds a step of a rank that began at `began`. Returns the number of restarts before the step.
    pub(crate) fn on_step(&mut self, rank: i64, number: i64, began: UnixNanos, is_repeated: bool) -> i64 {
        let by_time = self.older + self.began.partition_point(|time| *time <= began) as i64;
        let newest_restart = self.older + self.began.len() as i64;
        if self.ranks.len() >= MAX_RANKS && !self.ranks.contains_key(&rank) {
            return by_time;
        }
        let state = self.ranks.entry(rank).or_insert(Rank {
            newest: i64::MIN,
            restarts: 0,
        });
        let repeats_a_step = is_repeated && number <= state.newest;
        state.newest = number;
        if by_time > state.restarts {
            state.restarts = by_time;
        } else if repeats_a_step {
            state.restarts += 1;
            if state.restarts > newest_restart {
                self.begin(began);
            }
        }
        self.count(rank)
    }

    /// Returns the number of tracked ranks.
    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.ranks.len()
    }

    /// Returns the number of restarts that a rank has joined.
    pub(crate) fn count(&self, rank: i64) -> i64 {
        self.ranks.get(&rank).map_or(0, |rank| rank.restarts)
    }

    fn begin(&mut self, time: UnixNanos) {
        if self.began.len() >= MAX_TIMES {
            self.began.pop_front();
            self.older += 1;
        }
        let newest = self.began.back().copied().unwrap_or_default();
        self.began.push_back(newest.max(time));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Steps as rank, number, start in seconds, and whether the rank repeats the step.
    fn restarts(steps: &[(i64, i64, u64, bool)]) -> Vec<i64> {
        let mut restarts = Restarts::default();
        let of_step = |(rank, number, began, is_repeated): &(i64, i64, u64, bool)| {
            restarts.on_step(*rank, *number, UnixNanos(*began), *is_repeated)
        };
        steps.iter().map(of_step).collect()
    }

    #[test]
    fn ranks_that_repeat_steps_share_one_restart() {
        let steps = [
            (0, 7, 7, false),
            (1, 7, 7, false),
            // Rank 1 begins slightly earlier than rank 0, whose step arrives first.
            (0, 5, 21, true),
            (1, 5, 20, true),
            (0, 6, 22, true),
            (1, 6, 22, true),
        ];
        assert_eq!(restarts(&steps), [0, 0, 1, 1, 1, 1]);
    }

    #[test]
    fn other_ranks_join_the_restart_of_a_rank_that_repeats_a_step() {
        let steps = [
            (0, 7, 7, false),
            (1, 7, 7, false),
            (0, 7, 8, true),
            (1, 8, 9, false),
            (0, 8, 9, false),
            // A restart of all ranks.
            (1, 3, 20, true),
            (0, 3, 20, true),
        ];
        assert_eq!(restarts(&steps), [0, 0, 1, 1, 1, 2, 2]);
    }

    #[test]
    fn sequentially_imported_ranks_have_the_same_restarts() {
        let one = |rank| {
            [
                (rank, 7, 7, false),
                (rank, 5, 20, true),
                (rank, 6, 21, true),
                (rank, 5, 40, true),
            ]
        };
        let steps: Vec<_> = one(0).into_iter().chain(one(1)).collect();
        assert_eq!(restarts(&steps), [0, 1, 1, 2, 0, 1, 1, 2]);
    }
}
