//! Several ranks in one log: each has its own resource, sums and batches.

use pulsetrain_otlp::write::{Encoded, Envelope, LogsWriter, SpansWriter};

use super::{Recorder, attempts::HighestSteps};
use crate::{Run, SeriesLimits, SeriesWriter, ids::StepIds};

/// The limit for the ranks of one log. The values of further ranks count as the run's own.
const RANKS: usize = 4096;

/// The limits for the series of a rank of a log that is not followed: its series do not end.
pub(super) const SERIES: SeriesLimits = SeriesLimits {
    per_metric: 1 << 14,
    ended: 0,
};

/// The rank of a worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rank {
    /// The global rank in the job.
    OfJob(i64),
    /// The rank on its host, which is the global rank if there is only one host.
    OfHost(i64),
}

impl Rank {
    /// Returns the number of the rank.
    pub fn number(self) -> i64 {
        match self {
            Self::OfJob(number) | Self::OfHost(number) => number,
        }
    }
}

/// The state of a rank.
pub(super) struct RankState {
    /// The rank on its host. The run has that of the current rank.
    local_rank: Option<i64>,
    pub(super) envelope: Envelope,
    pub(super) series: SeriesWriter,
    pub(super) spans: SpansWriter,
    pub(super) logs: LogsWriter,
    /// The attempt. The run has that of the current rank.
    pub(super) attempt: i64,
    /// The highest steps of the attempt.
    pub(super) highest_steps: HighestSteps,
}

impl RankState {
    /// Returns the initial state of the rank of a run.
    pub(super) fn in_envelope(run: &Run, envelope: Envelope, limits: SeriesLimits) -> Self {
        let mut series = SeriesWriter::new(limits);
        series.start_at(run.start_unix_nanos);
        Self {
            local_rank: run.local_rank,
            envelope,
            series,
            spans: SpansWriter::default(),
            logs: LogsWriter::default(),
            attempt: run.attempt,
            highest_steps: HighestSteps::default(),
        }
    }

    /// Sends all items, regardless of the size of the batches.
    pub(super) fn flush(&mut self, listener: &mut impl FnMut(Encoded)) {
        let batches = [
            self.series.finish(&self.envelope),
            self.spans.finish(&self.envelope),
            self.logs.finish(&self.envelope),
        ];
        batches.into_iter().flatten().for_each(listener);
    }
}

impl Recorder<'_> {
    /// Sets the rank of the next records; `None` is the run's own rank. Returns `false` if the limit for ranks is reached; the
    /// run's own rank is then current.
    pub fn of_rank(&mut self, rank: Option<Rank>) -> bool {
        let number = rank.map_or(self.own_rank, Rank::number);
        if number != self.run.rank && !self.swap_rank_state(number) {
            self.of_rank(None);
            return false;
        }
        let local_rank = matches!(rank, Some(Rank::OfHost(_))).then_some(number);
        if self.run.local_rank.is_none() && local_rank.is_some() {
            self.run.local_rank = local_rank;
            self.current.envelope = self.run.envelope();
        }
        true
    }

    /// Returns the ranks with counted records.
    pub fn recorded_ranks(&self) -> &[i64] {
        &self.recorded_ranks
    }

    /// Adds the current rank to the recorded ranks.
    pub(super) fn observe_rank(&mut self) {
        if !self.recorded_ranks.contains(&self.run.rank) {
            self.recorded_ranks.push(self.run.rank);
        }
    }

    /// Iterates over the states of all ranks.
    pub(super) fn all_ranks(&mut self) -> impl Iterator<Item = &mut RankState> {
        [&mut self.current].into_iter().chain(self.ranks.values_mut())
    }

    /// Returns the initial state of another rank.
    pub(super) fn begin_rank(&self, rank: i64, attempt: i64) -> RankState {
        let run = Run {
            rank,
            local_rank: None,
            attempt,
            ..self.run.clone()
        };
        RankState::in_envelope(&run, run.envelope(), self.current.series.limits())
    }

    /// Swaps the state of the current rank with that of another rank. Returns `false` if the limit for ranks is reached.
    fn swap_rank_state(&mut self, rank: i64) -> bool {
        let is_known = self.ranks.contains_key(&rank);
        if !is_known && self.ranks.len() >= RANKS {
            return false;
        }
        self.step_duration = None;
        let begun = self.ranks.remove(&rank);
        let state = begun.unwrap_or_else(|| self.begin_rank(rank, self.run.attempt));
        let (local_rank, attempt) = (state.local_rank, state.attempt);
        let mut before = std::mem::replace(&mut self.current, state);
        before.local_rank = std::mem::replace(&mut self.run.local_rank, local_rank);
        before.attempt = self.run.attempt;
        self.ranks
            .insert(std::mem::replace(&mut self.run.rank, rank), before);
        if attempt != self.run.attempt {
            self.run.attempt = attempt;
            self.step_ids = StepIds::new(&self.run);
        }
        true
    }
}
