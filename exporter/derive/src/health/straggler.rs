//! Straggler scores: how much slower each rank works than the median of the ranks, step by step.
//!
//! `score_r = min(1, median_q clean_q / clean_r)`, the relative performance score of NVIDIA's resiliency extension
//! (nvidia-resiliency-ext, straggler detection) with the median instead of the best rank as reference, so that one lucky rank
//! does not make stragglers of the others; of an even number of ranks the lower of the two in the middle, so that of two ranks
//! the slower is compared with the faster. [`clean_times`] discounts waits for other ranks.
//!
//! A rank is a **chronic** straggler when the median of its last 20 scores is below 0.87 (1.15 times as slow as the median), until
//! it is above 0.92. A rank whose first steps are slow already may have more work than the others, for example a larger stage of a
//! pipeline: the telemetry cannot distinguish this from a slow device. Such a rank is a straggler that **may be intended**, and a fault only
//! once it is below 0.87 times its own first 20 scores. Up to three slow steps in a row between others are **one-off**: a garbage collection, a page fault.
//! Memory: 20 scores for each rank.

use std::collections::BTreeMap;

use super::{align::AlignedStep, clean_time::clean_times, sample::Samples};

/// The score below which a step is slow; 1 / 1.15.
pub(crate) const SLOW: f64 = 0.87;
/// The median score above which a chronic straggler has recovered.
const RECOVERED: f64 = 0.92;
/// The number of steps that decide about a chronic straggler.
pub(crate) const WINDOW: usize = 20;
/// The number of first steps of an attempt that decide whether a rank is slow from the start.
const FIRST: usize = 5;
/// The maximum number of consecutive slow steps that are one event.
const ONE_OFF: u32 = 3;
/// The number of slowest ranks in messages.
const WORST: usize = 3;

/// Keeps the scores of the ranks of a run.
#[derive(Debug, Default)]
pub(crate) struct Stragglers {
    attempt: i64,
    ranks: BTreeMap<i64, Scores>,
}

#[derive(Debug)]
struct Scores {
    newest: Samples,
    /// Whether each of the first steps was slow.
    first: Samples,
    /// The median of the first full window.
    baseline: Option<f64>,
    slow_in_a_row: u32,
}

/// The comparison of the ranks of one step.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Comparison {
    /// Clean step times in seconds: least, median, greatest.
    pub(crate) min: f64,
    pub(crate) median: f64,
    pub(crate) max: f64,
    /// The ranks with their comparison, by rank.
    pub(crate) ranks: Vec<RankScore>,
}

/// The comparison of one rank with the others.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct RankScore {
    pub(crate) rank: i64,
    pub(crate) clean_secs: f64,
    pub(crate) score: f64,
    /// Median score of the window, or `None` before the window is full.
    pub(crate) median_score: Option<f64>,
    /// Whether one slow event of an otherwise fast rank has just ended.
    pub(crate) one_off: bool,
    /// Whether the rank was slow in its first steps already and has not become slower.
    pub(crate) since_start: bool,
}

impl RankScore {
    /// Returns whether the rank is a chronic straggler.
    pub(crate) fn is_slow(&self) -> bool {
        self.median_score.is_some_and(|score| score < SLOW)
    }

    /// Returns whether the rank has recovered.
    pub(crate) fn is_fast(&self) -> bool {
        self.median_score.is_some_and(|score| score > RECOVERED)
    }
}

impl Comparison {
    /// Returns the slowest ranks, the worst first.
    pub(crate) fn worst(&self) -> Vec<RankScore> {
        let mut ranks = self.ranks.clone();
        let key = |rank: &RankScore| rank.median_score.unwrap_or(rank.score);
        ranks.sort_by(|one, other| key(one).total_cmp(&key(other)));
        ranks.truncate(WORST);
        ranks
    }
}

impl Stragglers {
    /// Returns the number of tracked ranks.
    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.ranks.len()
    }

    /// Compares the ranks of a step. Returns `None` if fewer than two reported it.
    pub(crate) fn on_step(&mut self, step: &AlignedStep) -> Option<Comparison> {
        if self.attempt != step.attempt {
            self.ranks.clear();
            self.attempt = step.attempt;
        }
        if step.ranks.len() < 2 {
            return None;
        }
        let clean = clean_times(&step.ranks);
        let mut sorted = clean.clone();
        sorted.sort_unstable_by(f64::total_cmp);
        let middle = sorted
            .get((sorted.len() - 1) / 2)
            .copied()
            .filter(|secs| *secs > 0.0)?;
        let ranks = step.ranks.iter().zip(&clean).map(|(rank, clean)| {
            let score = if *clean > 0.0 {
                (middle / clean).min(1.0)
            } else {
                1.0
            };
            let scores = self.ranks.entry(rank.rank).or_default();
            let one_off = scores.push(score);
            let median_score = scores.newest.median().filter(|_| scores.newest.is_full());
            RankScore {
                rank: rank.rank,
                clean_secs: *clean,
                score,
                median_score,
                one_off,
                since_start: median_score.is_some_and(|score| scores.is_slow_since_start(score)),
            }
        });
        Some(Comparison {
            ranks: ranks.collect(),
            min: sorted.first().copied()?,
            median: middle,
            max: sorted.last().copied()?,
        })
    }
}

impl Scores {
    /// Adds a score. Returns whether it ends a one-off event.
    fn push(&mut self, score: f64) -> bool {
        self.newest.push(score);
        if !self.first.is_full() {
            self.first.push(score);
        }
        if score < SLOW {
            self.slow_in_a_row += 1;
            return false;
        }
        let slow = std::mem::take(&mut self.slow_in_a_row);
        (1..=ONE_OFF).contains(&slow)
    }

    /// Returns whether the first steps were slow already and a median score is near that of the first window.
    fn is_slow_since_start(&mut self, median_score: f64) -> bool {
        let baseline = *self.baseline.get_or_insert(median_score);
        let was_slow = self.first.median().is_some_and(|score| score < SLOW);
        was_slow && median_score >= SLOW * baseline
    }
}

impl Default for Scores {
    fn default() -> Self {
        Self {
            newest: Samples::new(WINDOW),
            first: Samples::new(FIRST),
            baseline: None,
            slow_in_a_row: 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::health::{UnixNanos, rank_step::RankStep};

    /// Returns a step of four ranks with these forward times in seconds. All ranks end together.
    fn step(number: i64, forward: [f64; 4]) -> AlignedStep {
        let last = forward.iter().copied().fold(0.0, f64::max);
        let ranks = forward.iter().zip(0..).map(|(forward, rank)| RankStep {
            data: Some(0.0),
            forward: Some(*forward),
            backward: Some(last * 3.0 - forward),
            ..RankStep::new(rank, number, UnixNanos(0), UnixNanos((last * 3e9) as u64))
        });
        AlignedStep {
            attempt: 0,
            number,
            ranks: ranks.collect(),
            missing: 0,
        }
    }

    #[test]
    fn straggler_score_is_median_clean_time_divided_by_own_clean_time() {
        let mut stragglers = Stragglers::default();
        let compared = stragglers.on_step(&step(1, [1.0, 1.0, 1.5, 1.0])).unwrap();
        let scores: Vec<f64> = compared
            .ranks
            .iter()
            .map(|rank| (rank.score * 1e6).round() / 1e6)
            .collect();
        assert_eq!(scores, [1.0, 1.0, 0.666_667, 1.0]);
        assert_eq!((compared.min, compared.median, compared.max), (3.0, 3.0, 4.5));
        assert_eq!(compared.worst()[0].rank, 2);
    }

    #[test]
    fn straggler_is_chronic_when_most_of_twenty_steps_are_slow() {
        let mut stragglers = Stragglers::default();
        let mut slow_since = None;
        for number in 0..60 {
            let rank_2 = if number >= 30 { 1.3 } else { 1.0 };
            let compared = stragglers
                .on_step(&step(number, [1.0, 1.0, rank_2, 1.0]))
                .unwrap();
            let slow: Vec<i64> = compared
                .ranks
                .iter()
                .filter(|rank| rank.is_slow())
                .map(|rank| rank.rank)
                .collect();
            if !slow.is_empty() {
                assert_eq!(slow, [2]);
                slow_since.get_or_insert(number);
            }
        }
        assert_eq!(slow_since, Some(40), "eleven of twenty steps are slow");
    }

    #[test]
    fn few_slow_steps_are_one_event() {
        let mut stragglers = Stragglers::default();
        let slow = [5, 6, 20, 40];
        let mut events = Vec::new();
        for number in 0..60 {
            let rank_1 = if slow.contains(&number) { 2.0 } else { 1.0 };
            let compared = stragglers
                .on_step(&step(number, [1.0, rank_1, 1.0, 1.0]))
                .unwrap();
            events.extend(
                compared
                    .ranks
                    .iter()
                    .filter(|rank| rank.one_off)
                    .map(|rank| (number, rank.rank)),
            );
            assert!(!compared.ranks.iter().any(RankScore::is_slow));
        }
        assert_eq!(events, [(7, 1), (21, 1), (41, 1)]);
    }

    #[test]
    fn single_rank_is_not_compared() {
        let mut one = step(1, [1.0; 4]);
        one.ranks.truncate(1);
        assert_eq!(Stragglers::default().on_step(&one), None);
    }

    #[test]
    fn rank_slow_since_its_first_step_is_flagged_until_it_slows_further() {
        let mut stragglers = Stragglers::default();
        for number in 0..100 {
            // Rank 3 is the last stage of a pipeline, and its device is slow from step 50 on. Rank 1 is slow
            // from step 6 on.
            let rank_3 = if number >= 50 { 1.8 } else { 1.3 };
            let rank_1 = if number >= 6 { 1.3 } else { 1.0 };
            let compared = stragglers
                .on_step(&step(number, [1.0, rank_1, 1.0, rank_3]))
                .unwrap();
            let (rank_1, rank_3) = (&compared.ranks[1], &compared.ranks[3]);
            assert!(!rank_1.since_start, "{number}");
            assert_eq!(
                rank_3.since_start,
                (19..59).contains(&number),
                "{number}: {rank_3:?}"
            );
            assert_eq!(rank_3.is_slow(), number >= 19, "{number}");
        }
    }
}
