//! `telemetry_lost`: a rank that stopped sending steps while others continue.
//!
//! Ranks synchronize in every step, so a dead rank stops the others too. If these continue, only the rank's
//! telemetry is lost. The condition is established when the others are 20 steps and 10 seconds of event time
//! ahead and no telemetry of the rank has arrived for 10 seconds, or for twice its export interval
//! (`arrivals.rs`). It is resolved when the rank reports a step again, or by a restart. A gap that is found
//! only after the rank is back is established and resolved at once. In recordings, where ranks may arrive one
//! after the other, only such gaps are found.

use std::{collections::BTreeMap, time::Duration};

use pulsetrain_pipeline::clock::Instant;

use super::super::{
    UnixNanos,
    arrivals::Arrivals,
    rank_step::RankStep,
    verdict::{Board, Span, Subject, VerdictKind},
};

const STEPS: i64 = 20;
const MIN_SILENCE: Duration = Duration::from_secs(10);

/// Watches whether the ranks of a run report.
#[derive(Debug)]
pub(crate) struct SilentRanks {
    wait: Duration,
    attempt: i64,
    newest_step: i64,
    newest: UnixNanos,
    ranks: BTreeMap<i64, Seen>,
    checked: i64,
}

/// The newest step of a rank.
#[derive(Clone, Copy, Debug)]
struct Seen {
    number: i64,
    end: UnixNanos,
    /// The distance to the step before, because a trainer may log every n-th step. `None` for the first step.
    stride: Option<i64>,
}

impl SilentRanks {
    /// Returns a detector in which a rank is not silent within `wait` after its last telemetry.
    pub(crate) fn new(wait: Duration) -> Self {
        Self {
            wait,
            attempt: 0,
            newest_step: i64::MIN,
            newest: UnixNanos::default(),
            ranks: BTreeMap::new(),
            checked: i64::MIN,
        }
    }

    /// Returns the number of tracked ranks.
    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.ranks.len()
    }

    /// Adds a step of a rank that arrived at `now`.
    pub(crate) fn on_rank_step(
        &mut self,
        attempt: i64,
        step: &RankStep,
        (arrivals, now): (&Arrivals, Instant),
        board: &mut Board,
    ) {
        if self.attempt != attempt {
            board.resolve_all(&[VerdictKind::TelemetryLost], step.end);
            *self = Self {
                attempt,
                ..Self::new(self.wait)
            };
        }
        self.newest_step = self.newest_step.max(step.number);
        self.newest = self.newest.max(step.end);
        self.record(step, board);
        board.resolve(VerdictKind::TelemetryLost, &Subject::Rank(step.rank), step.end);
        // One check a step is enough.
        if self.newest_step > self.checked {
            self.checked = self.newest_step;
            self.check(arrivals, now, board);
        }
    }

    /// Records the newest step of a rank, and a gap before it.
    fn record(&mut self, step: &RankStep, board: &mut Board) {
        let before = self.ranks.get(&step.rank).copied();
        let stride = before.map(|before| step.number.saturating_sub(before.number).max(1));
        let seen = Seen {
            number: step.number,
            end: step.end,
            stride,
        };
        self.ranks.insert(step.rank, seen);
        if let Some(before) = before.filter(|before| {
            let usual = before
                .stride
                .map_or(i64::MAX, |usual| STEPS.saturating_mul(usual));
            stride > Some(usual) && step.end >= before.end.saturating_add(MIN_SILENCE)
        }) {
            let since = before.end.saturating_add(MIN_SILENCE);
            board.open(
                VerdictKind::TelemetryLost,
                Subject::Rank(step.rank),
                since,
                || {
                    format!(
                        "Rank {} reported nothing between step {} and step {}, for {}.",
                        step.rank,
                        before.number,
                        step.number,
                        Span(step.end.secs_since(before.end)),
                    )
                },
            );
        }
    }

    fn check(&self, arrivals: &Arrivals, now: Instant, board: &mut Board) {
        let wait = arrivals.wait(self.wait);
        for (rank, seen) in &self.ranks {
            let Some(stride) = seen.stride else { continue };
            let behind = self.newest_step.saturating_sub(seen.number);
            let is_behind =
                behind >= STEPS.saturating_mul(stride) && self.newest >= seen.end.saturating_add(MIN_SILENCE);
            if !is_behind || arrivals.silence(*rank, now) < wait {
                continue;
            }
            board.open(
                VerdictKind::TelemetryLost,
                Subject::Rank(*rank),
                self.newest,
                || {
                    format!(
                        "Rank {rank} reported step {} last, {} ago; the others are at step {}.",
                        seen.number,
                        Span(self.newest.secs_since(seen.end)),
                        self.newest_step
                    )
                },
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use pulsetrain_pipeline::clock;

    use super::*;

    /// Runs steps of a second each. `arrives` returns the second at which a step of a rank arrives.
    fn opened(wait: Duration, arrives: impl Fn(i64, i64) -> Option<u64>) -> Vec<(Subject, bool, u64)> {
        let (mut silent, mut board) = (SilentRanks::new(wait), Board::default());
        let (mut arrivals, start) = (Arrivals::default(), clock::now());
        let mut steps: Vec<(u64, i64, i64)> = (0..200)
            .flat_map(|number| (0..3).map(move |rank| (number, rank)))
            .filter_map(|(number, rank)| Some((arrives(rank, number)?, number, rank)))
            .collect();
        steps.sort_by_key(|(at, ..)| *at);
        for (at, number, rank) in steps {
            let (time, now) = (
                UnixNanos(number as u64 * 1_000_000_000),
                start + Duration::from_secs(at),
            );
            arrivals.on_step(rank, now);
            silent.on_rank_step(
                0,
                &RankStep::new(rank, number, time, time),
                (&arrivals, now),
                &mut board,
            );
        }
        board.map_changes(|change| (change.subject, change.is_open, change.time.0 / 1_000_000_000))
    }

    #[test]
    fn silent_rank_is_reported_until_it_returns() {
        let back =
            |rank: i64, number: i64| (rank != 2 || !(50..100).contains(&number)).then_some(number as u64);
        let expected = [(Subject::Rank(2), true, 69), (Subject::Rank(2), false, 100)];
        assert_eq!(opened(Duration::from_secs(10), back), expected);
    }

    #[test]
    fn trainer_that_logs_every_n_th_step_is_not_silent() {
        let hundredth =
            |rank: i64, number: i64| (number % 50 == 0).then_some(number as u64 + 20 * rank as u64);
        assert_eq!(opened(Duration::from_secs(10), hundredth), []);
        let of_rank_zero_alone =
            |rank: i64, number: i64| (rank == 0 || number % 50 == 0).then_some(number as u64);
        assert_eq!(opened(Duration::from_secs(10), of_rank_zero_alone), []);
    }

    #[test]
    fn silence_in_sequentially_imported_ranks_is_detected_by_step() {
        assert_eq!(opened(Duration::MAX, |rank, _| (rank == 0).then_some(0)), []);
        let one_by_one =
            |rank: i64, number: i64| (rank != 2 || !(50..=99).contains(&number)).then_some(rank as u64);
        let expected = [(Subject::Rank(2), true, 59), (Subject::Rank(2), false, 100)];
        assert_eq!(opened(Duration::MAX, one_by_one), expected);
    }

    #[test]
    fn ranks_that_export_once_a_minute_at_their_own_times_are_not_silent() {
        let export = |rank: i64, number: i64| Some((number as u64 / 60 + 1) * 60 + 20 * rank as u64);
        assert_eq!(opened(Duration::from_secs(10), export), []);
    }
}
