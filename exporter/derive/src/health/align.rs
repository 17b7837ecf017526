//! Alignment of steps across ranks: collects the reports of one step, and closes steps in order.
//!
//! A step closes when every expected rank has reported it, or `wait` after the first report arrived. The wait
//! uses the clock, because event time of one rank may be minutes ahead of another, in batches or from
//! exporters that send once a minute. The expected ranks are those of `train.world_size` without those that
//! missed the newest closed step, so a rank that never reports delays only the first step. Without a world
//! size, the first step waits for `wait`, and later ones for the ranks that have reported. Each attempt has
//! its own ranks, because a restarted job may have fewer. At most [`AlignConfig::max_open`] steps are open.
//! Beyond it the oldest closes, and its ranks are expected in the next step.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use pulsetrain_pipeline::clock::Instant;

use super::{UnixNanos, rank_step::RankStep};

/// The maximum number of ranks of a job.
pub(crate) const MAX_RANKS: usize = 16_384;

/// The limits of the wait for ranks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct AlignConfig {
    /// The wait after the first report, or [`Duration::MAX`] for recordings, whose ranks may arrive one after
    /// the other.
    pub(crate) wait: Duration,
    /// The maximum number of open steps.
    pub(crate) max_open: usize,
}

/// A step of the job with the ranks that reported it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct AlignedStep {
    pub(crate) attempt: i64,
    pub(crate) number: i64,
    /// The reports, by rank; never empty.
    pub(crate) ranks: Vec<RankStep>,
    /// The number of ranks of the job that did not report.
    pub(crate) missing: usize,
}

/// Collects the reports of the ranks.
#[derive(Debug)]
pub(crate) struct Alignment {
    config: AlignConfig,
    open: BTreeMap<(i64, i64), OpenStep>,
    /// The ranks of each attempt, from the one of the newest closed step.
    members: BTreeMap<i64, Members>,
    newest_closed: Option<(i64, i64)>,
}

/// The ranks of an attempt.
#[derive(Debug, Default)]
struct Members {
    world_size: Option<usize>,
    /// The highest number that each rank has reported.
    newest: BTreeMap<i64, i64>,
    /// Ranks that reported before and missed the newest closed step, and ranks that never reported.
    silent: BTreeSet<i64>,
}

#[derive(Debug)]
struct OpenStep {
    /// Boxed, because a map node has space for eleven values even with one rank.
    ranks: BTreeMap<i64, Box<RankStep>>,
    /// The time when the first report arrived.
    since: Instant,
}

impl AlignedStep {
    /// Returns the time when the first rank began the step.
    pub(crate) fn start(&self) -> UnixNanos {
        self.ranks.iter().map(|rank| rank.start).min().unwrap_or_default()
    }

    /// Returns the start of the first step that the reports cover.
    pub(crate) fn covered_start(&self) -> UnixNanos {
        let starts = self.ranks.iter().map(|rank| rank.covered_start);
        starts.min().unwrap_or_default()
    }

    /// Returns the number of steps that the reports cover: the minimum over the ranks.
    pub(crate) fn covered(&self) -> i64 {
        self.ranks.iter().map(|rank| rank.covered).min().unwrap_or(1)
    }

    /// Returns the time when the last rank ended the step.
    pub(crate) fn end(&self) -> UnixNanos {
        self.ranks.iter().map(|rank| rank.end).max().unwrap_or_default()
    }
}

impl Alignment {
    /// Creates an alignment without steps.
    pub(crate) fn new(config: AlignConfig) -> Self {
        Self {
            config,
            open: BTreeMap::new(),
            members: BTreeMap::new(),
            newest_closed: None,
        }
    }

    /// Sets the number of ranks of the job in an attempt.
    pub(crate) fn set_world_size(&mut self, attempt: i64, ranks: i64) {
        if let Ok(ranks) = usize::try_from(ranks)
            && (1..=MAX_RANKS).contains(&ranks)
            && !self.is_over(attempt)
        {
            self.members.entry(attempt).or_default().world_size = Some(ranks);
        }
    }

    /// Adds the report of a rank that arrived at `now`. Reports of closed steps are ignored, because their
    /// statistics are sent.
    pub(crate) fn add(&mut self, attempt: i64, step: RankStep, now: Instant) {
        let rank = step.rank;
        if self.is_over(attempt) {
            return;
        }
        let members = self.members.entry(attempt).or_default();
        if members.newest.len() >= MAX_RANKS && !members.newest.contains_key(&rank) {
            return;
        }
        let newest = members.newest.entry(rank).or_insert(step.number);
        *newest = step.number.max(*newest);
        // A late rank is expected again.
        members.silent.remove(&rank);
        let key = (attempt, step.number);
        if self.newest_closed.is_some_and(|closed| key <= closed) {
            return;
        }
        let open = self.open.entry(key).or_insert_with(|| OpenStep {
            ranks: BTreeMap::new(),
            since: now,
        });
        open.ranks.insert(rank, Box::new(step));
    }

    /// Returns the next step that is complete, or whose first report arrived `wait` before `now`.
    pub(crate) fn next_closed(&mut self, now: Instant, wait: Duration) -> Option<AlignedStep> {
        let (key, step) = self.open.first_key_value()?;
        let waited = now.saturating_duration_since(step.since) >= wait;
        if waited || self.is_complete(*key, step) {
            return self.close(true);
        }
        if self.open.len() > self.config.max_open {
            return self.close(false);
        }
        None
    }

    /// Returns the oldest open step, complete or not.
    pub(crate) fn close_first(&mut self) -> Option<AlignedStep> {
        self.close(true)
    }

    /// Closes the oldest open step. Ranks that missed it are silent if they `had_time` to report it.
    fn close(&mut self, had_time: bool) -> Option<AlignedStep> {
        let ((attempt, number), step) = self.open.pop_first()?;
        self.newest_closed = Some((attempt, number));
        self.members = self.members.split_off(&attempt);
        let members = self.members.entry(attempt).or_default();
        let absent = members.all().filter(|rank| !step.ranks.contains_key(rank));
        let absent: Vec<i64> = absent.collect();
        if had_time {
            for rank in &absent {
                if !members.has_later(*rank, number) {
                    members.silent.insert(*rank);
                }
            }
        }
        Some(AlignedStep {
            attempt,
            number,
            missing: absent.len(),
            ranks: step.ranks.into_values().map(|step| *step).collect(),
        })
    }

    /// Returns whether every expected rank has reported the step or a later one.
    fn is_complete(&self, key: (i64, i64), step: &OpenStep) -> bool {
        let Some(members) = self.members.get(&key.0) else {
            return false;
        };
        let is_first = self.newest_closed.is_none_or(|(attempt, _)| attempt != key.0);
        if members.world_size.is_none() && is_first {
            return false;
        }
        // The counts are compared first, so that a report is cheap in a large job.
        let expected = members.world_size.unwrap_or(members.newest.len());
        if step.ranks.len() >= expected {
            return true;
        }
        let is_newest = self.open.len() == 1;
        if is_newest && step.ranks.len() + members.silent.len() < expected {
            return false;
        }
        members.all().all(|rank| {
            step.ranks.contains_key(&rank) || members.silent.contains(&rank) || members.has_later(rank, key.1)
        })
    }

    /// Returns whether a step of a later attempt has closed.
    fn is_over(&self, attempt: i64) -> bool {
        self.newest_closed.is_some_and(|(newest, _)| attempt < newest)
    }
}

impl Members {
    /// Returns whether a rank has reported a later step.
    fn has_later(&self, rank: i64, number: i64) -> bool {
        self.newest.get(&rank).is_some_and(|newest| *newest > number)
    }

    /// Returns the ranks that belong to the job.
    fn all(&self) -> impl Iterator<Item = i64> {
        let size = self.world_size.unwrap_or_default() as i64;
        (0..size).chain(self.newest.range(size..).map(|(rank, _)| *rank))
    }
}

#[cfg(test)]
mod tests {
    use pulsetrain_pipeline::clock;

    use super::*;

    const WAIT: Duration = Duration::from_secs(10);
    const LIVE: AlignConfig = AlignConfig {
        wait: WAIT,
        max_open: 4,
    };

    /// An alignment and the time of the clock.
    struct AlignmentWithClock {
        alignment: Alignment,
        now: Instant,
    }

    impl AlignmentWithClock {
        fn new(config: AlignConfig) -> Self {
            Self {
                alignment: Alignment::new(config),
                now: clock::now(),
            }
        }
    }

    fn report(alignment: &mut AlignmentWithClock, attempt: i64, number: i64, rank: i64, end_secs: u64) {
        let end = UnixNanos(end_secs * 1_000_000_000);
        let step = RankStep::new(rank, number, UnixNanos(end.0 - 1), end);
        alignment.alignment.add(attempt, step, alignment.now);
    }

    fn closed(alignment: &mut AlignmentWithClock) -> Vec<(i64, usize, usize)> {
        let AlignmentWithClock { alignment, now } = alignment;
        let wait = alignment.config.wait;
        std::iter::from_fn(|| alignment.next_closed(*now, wait))
            .map(|step| (step.number, step.ranks.len(), step.missing))
            .collect()
    }

    #[test]
    fn step_closes_when_all_ranks_reported_it() {
        let mut alignment = AlignmentWithClock::new(LIVE);
        alignment.alignment.set_world_size(0, 2);
        report(&mut alignment, 0, 1, 0, 1);
        assert_eq!(closed(&mut alignment), []);
        report(&mut alignment, 0, 1, 1, 1);
        assert_eq!(closed(&mut alignment), [(1, 2, 0)]);
    }

    #[test]
    fn missing_rank_delays_one_step_and_is_counted() {
        let mut alignment = AlignmentWithClock::new(LIVE);
        alignment.alignment.set_world_size(0, 2);
        report(&mut alignment, 0, 1, 0, 1);
        report(&mut alignment, 0, 2, 0, 2);
        alignment.now += WAIT - Duration::from_nanos(1);
        assert_eq!(closed(&mut alignment), []);
        alignment.now += Duration::from_nanos(1);
        assert_eq!(closed(&mut alignment), [(1, 1, 1), (2, 1, 1)]);
        report(&mut alignment, 0, 3, 1, 3);
        assert_eq!(
            closed(&mut alignment),
            [],
            "the rank is back, so rank 0 is expected"
        );
        report(&mut alignment, 0, 3, 0, 3);
        assert_eq!(closed(&mut alignment), [(3, 2, 0)]);
    }

    #[test]
    fn rank_that_skipped_a_step_does_not_delay_it() {
        let mut alignment = AlignmentWithClock::new(LIVE);
        alignment.alignment.set_world_size(0, 2);
        report(&mut alignment, 0, 1, 0, 1);
        report(&mut alignment, 0, 2, 1, 2);
        assert_eq!(closed(&mut alignment), [(1, 1, 1)]);
    }

    #[test]
    fn ranks_in_consecutive_batches_realign_after_an_early_close() {
        let mut alignment = AlignmentWithClock::new(LIVE);
        alignment.alignment.set_world_size(0, 2);
        report(&mut alignment, 0, 1, 0, 1);
        alignment.now += WAIT;
        assert_eq!(closed(&mut alignment), [(1, 1, 1)]);
        report(&mut alignment, 0, 1, 1, 1);
        for rank in 0..2 {
            for number in 2..5 {
                report(&mut alignment, 0, number, rank, 1000 * number as u64);
            }
        }
        assert_eq!(closed(&mut alignment), [(2, 2, 0), (3, 2, 0), (4, 2, 0)]);
    }

    #[test]
    fn without_world_size_the_first_step_waits() {
        let mut alignment = AlignmentWithClock::new(LIVE);
        report(&mut alignment, 0, 1, 0, 1);
        report(&mut alignment, 0, 1, 1, 1);
        assert_eq!(closed(&mut alignment), []);
        alignment.now += WAIT;
        assert_eq!(closed(&mut alignment), [(1, 2, 0)]);
        report(&mut alignment, 0, 2, 0, 12);
        report(&mut alignment, 0, 2, 1, 12);
        assert_eq!(closed(&mut alignment), [(2, 2, 0)]);
    }

    #[test]
    fn restarted_job_with_fewer_ranks_reports_none_missing() {
        let mut alignment = AlignmentWithClock::new(LIVE);
        for (attempt, ranks) in [(0, 8), (1, 6)] {
            alignment.alignment.set_world_size(attempt, ranks);
            for number in 1..=2 {
                for rank in 0..ranks {
                    report(&mut alignment, attempt, number, rank, 1);
                }
            }
        }
        assert_eq!(
            closed(&mut alignment),
            [(1, 8, 0), (2, 8, 0), (1, 6, 0), (2, 6, 0)]
        );
    }

    #[test]
    fn open_steps_are_bounded_and_only_the_oldest_closes_early() {
        let offline = AlignConfig {
            wait: Duration::MAX,
            ..LIVE
        };
        let mut alignment = AlignmentWithClock::new(offline);
        alignment.alignment.set_world_size(0, 2);
        for number in 1..=5 {
            report(&mut alignment, 0, number, 0, number as u64);
        }
        report(&mut alignment, 1, 3, 0, 9);
        assert_eq!(closed(&mut alignment), [(1, 1, 1), (2, 1, 1)]);
        for number in 3..=5 {
            report(&mut alignment, 0, number, 1, number as u64);
        }
        assert_eq!(closed(&mut alignment), [(3, 2, 0), (4, 2, 0), (5, 2, 0)]);
    }

    #[test]
    fn rank_that_skipped_a_step_is_expected_in_the_next() {
        let mut alignment = AlignmentWithClock::new(LIVE);
        alignment.alignment.set_world_size(0, 2);
        report(&mut alignment, 0, 1, 0, 1);
        report(&mut alignment, 0, 2, 1, 2);
        assert_eq!(closed(&mut alignment), [(1, 1, 1)]);
        report(&mut alignment, 0, 2, 0, 2);
        assert_eq!(closed(&mut alignment), [(2, 2, 0)]);
        report(&mut alignment, 0, 3, 0, 3);
        assert_eq!(closed(&mut alignment), [], "rank 1 is not silent");
    }
}
