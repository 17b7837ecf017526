//! Several ranks in one log: each has its own resource, sums and batches.

use pulsetrain_otlp::{
    UnixNanos,
    write::{Encoded, Envelope, LogsWriter, MetricsWriter, SpansWriter},
};

use super::{
    Recorder, active_series::ActiveSeries, attempts::HighestSteps, series::SeriesTable, state::StateTable,
};
use crate::{Run, ids::StepIds};

/// The limit for the ranks of one log. The values of further ranks count as the run's own.
const RANKS: usize = 4096;

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

/// The state that a recorder keeps for a rank that is not current.
pub(super) struct RankState {
    local_rank: Option<i64>,
    envelope: Envelope,
    metrics: MetricsWriter,
    spans: SpansWriter,
    logs: LogsWriter,
    series: SeriesTable,
    states: StateTable,
    pub(super) active: Option<ActiveSeries>,
    pub(super) attempt: i64,
    pub(super) highest_steps: HighestSteps,
    sums_start_unix_nanos: UnixNanos,
}

impl RankState {
    /// Returns the initial state of a rank.
    pub(super) fn begin(run: &Run, (rank, attempt): (i64, i64), tracks_series: bool) -> Self {
        let run = Run {
            rank,
            local_rank: None,
            attempt,
            ..run.clone()
        };
        Self {
            local_rank: None,
            envelope: run.envelope(),
            metrics: MetricsWriter::default(),
            spans: SpansWriter::default(),
            logs: LogsWriter::default(),
            series: SeriesTable::default(),
            states: StateTable::default(),
            active: tracks_series.then(ActiveSeries::default),
            attempt,
            highest_steps: HighestSteps::default(),
            sums_start_unix_nanos: run.start_unix_nanos,
        }
    }

    /// Sends all items, regardless of the size of the batches.
    pub(super) fn flush(&mut self, listener: &mut impl FnMut(Encoded)) {
        let batches = [
            self.metrics.finish(&self.envelope),
            self.spans.finish(&self.envelope),
            self.logs.finish(&self.envelope),
        ];
        batches.into_iter().flatten().for_each(listener);
    }

    /// Resets sums and histograms.
    pub(super) fn restart_sums(&mut self, start_unix_nanos: UnixNanos) {
        self.series = SeriesTable::default();
        self.sums_start_unix_nanos = start_unix_nanos;
    }

    /// Ends every series of the rank; returns the same as [`ActiveSeries::end`].
    pub(super) fn end_series(&mut self, time_unix_nanos: UnixNanos) -> (u64, u64) {
        let active = self.active.as_mut();
        active.map_or((0, 0), |active| active.end(time_unix_nanos, &mut self.metrics))
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
            self.envelope = self.run.envelope();
        }
        true
    }

    /// Returns the ranks with counted records.
    pub fn recorded_ranks(&self) -> &[i64] {
        &self.recorded_ranks
    }

    /// Adds the current rank to the recorded ranks.
    pub(super) fn note_rank(&mut self) {
        if !self.recorded_ranks.contains(&self.run.rank) {
            self.recorded_ranks.push(self.run.rank);
        }
    }

    /// Swaps the state of the current rank with that of another rank. Returns `false` if the limit for ranks is reached.
    fn swap_rank_state(&mut self, rank: i64) -> bool {
        let is_known = self.ranks.contains_key(&rank);
        if !is_known && self.ranks.len() >= RANKS {
            return false;
        }
        self.step_duration = None;
        let begun = self.ranks.remove(&rank);
        let new = (rank, self.run.attempt);
        let mut state = begun.unwrap_or_else(|| RankState::begin(&self.run, new, self.active.is_some()));
        std::mem::swap(&mut self.run.local_rank, &mut state.local_rank);
        std::mem::swap(&mut self.envelope, &mut state.envelope);
        std::mem::swap(&mut self.metrics, &mut state.metrics);
        std::mem::swap(&mut self.spans, &mut state.spans);
        std::mem::swap(&mut self.logs, &mut state.logs);
        std::mem::swap(&mut self.series, &mut state.series);
        std::mem::swap(&mut self.states, &mut state.states);
        std::mem::swap(&mut self.active, &mut state.active);
        std::mem::swap(&mut self.highest_steps, &mut state.highest_steps);
        std::mem::swap(&mut self.sums_start_unix_nanos, &mut state.sums_start_unix_nanos);
        let attempt = std::mem::replace(&mut state.attempt, self.run.attempt);
        self.ranks
            .insert(std::mem::replace(&mut self.run.rank, rank), state);
        if attempt != self.run.attempt {
            self.run.attempt = attempt;
            self.step_ids = StepIds::of(&self.run);
        }
        true
    }
}
