//! Several ranks that write into one log: each has its own resource, its own sums and its own batches.

use pulsetrain_otlp::write::{Encoded, Envelope, LogsWriter, MetricsWriter, SpansWriter};

use super::{Recorder, series::SeriesTable, state::StateTable, told::Told};
use crate::Run;

/// So many ranks of one log are told apart; what more of them say counts as the run's own.
const RANKS: usize = 4096;

/// What a recorder keeps for a rank whose turn it is not.
pub(super) struct RankState {
    envelope: Envelope,
    metrics: MetricsWriter,
    spans: SpansWriter,
    logs: LogsWriter,
    series: SeriesTable,
    states: StateTable,
    told: Option<Told>,
    sums_start_unix_nanos: u64,
}

impl RankState {
    fn begin(run: &Run, rank: i64, keeps_series: bool) -> Self {
        let run = Run { rank, ..run.clone() };
        Self {
            envelope: run.envelope(),
            metrics: MetricsWriter::default(),
            spans: SpansWriter::default(),
            logs: LogsWriter::default(),
            series: SeriesTable::default(),
            states: StateTable::default(),
            told: keeps_series.then(Told::default),
            sums_start_unix_nanos: run.start_unix_nanos,
        }
    }

    /// Gives out what there is, however little.
    pub(super) fn flush(&mut self, listener: &mut impl FnMut(Encoded)) {
        let batches = [
            self.metrics.finish(&self.envelope),
            self.spans.finish(&self.envelope),
            self.logs.finish(&self.envelope),
        ];
        batches.into_iter().flatten().for_each(listener);
    }

    /// Begins sums and histograms anew.
    pub(super) fn restart_sums(&mut self, start_unix_nanos: u64) {
        self.series = SeriesTable::default();
        self.sums_start_unix_nanos = start_unix_nanos;
    }

    /// Ends every series of the rank, and says how many they were.
    pub(super) fn end_series(&mut self, time_unix_nanos: u64) -> u64 {
        let told = self.told.as_mut();
        told.map_or(0, |told| told.end(time_unix_nanos, &mut self.metrics))
    }
}

impl Recorder<'_> {
    /// What is recorded from now on is of this rank; of the run's own where there is none.
    pub(crate) fn of_rank(&mut self, rank: Option<i64>) {
        let rank = rank.unwrap_or(self.own_rank);
        if rank == self.run.rank {
            return;
        }
        let is_known = self.ranks.contains_key(&rank);
        if !is_known && self.ranks.len() >= RANKS {
            return self.of_rank(None);
        }
        self.step_duration = None;
        let begun = self.ranks.remove(&rank);
        let mut state = begun.unwrap_or_else(|| RankState::begin(&self.run, rank, self.told.is_some()));
        std::mem::swap(&mut self.envelope, &mut state.envelope);
        std::mem::swap(&mut self.metrics, &mut state.metrics);
        std::mem::swap(&mut self.spans, &mut state.spans);
        std::mem::swap(&mut self.logs, &mut state.logs);
        std::mem::swap(&mut self.series, &mut state.series);
        std::mem::swap(&mut self.states, &mut state.states);
        std::mem::swap(&mut self.told, &mut state.told);
        std::mem::swap(&mut self.sums_start_unix_nanos, &mut state.sums_start_unix_nanos);
        self.ranks
            .insert(std::mem::replace(&mut self.run.rank, rank), state);
    }
}
