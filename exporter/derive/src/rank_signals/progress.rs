//! `train.progress` and `train.eta`: the completed share of the planned training, and the remaining time.
//!
//! progress = step / `train.planned_steps`, at most 1. The trainer's own value has precedence. eta = (1 −
//! progress) / pace, where pace is the progress a second over the last hundred records. The wall time between
//! records counts, so checkpoints and evaluations do too. tqdm and Surogate use the mean since the start
//! (`remaining_tokens / (done_tokens / elapsed)`), which stays wrong for a long time after a change of pace.

use std::collections::{HashMap, VecDeque};

use pulsetrain_otlp::UnixNanos;
use pulsetrain_semconv::{Metric, metric};

use super::throughput;
use crate::{
    signals::{Derivation, Signals},
    steps::{RankId, StepFacts},
};

/// The number of records over which the pace is computed.
const WINDOW: usize = 100;

/// Derives progress and ETA.
#[derive(Debug, Default)]
pub(super) struct StepProgress(HashMap<RankId, VecDeque<(UnixNanos, f64)>>);

impl Derivation for StepProgress {
    fn sends(&self) -> &'static [&'static Metric] {
        &[&metric::TRAIN_PROGRESS, &metric::TRAIN_ETA]
    }

    fn on_step(&mut self, step: &StepFacts, out: &mut Signals) {
        if !throughput::is_reporter(step) {
            return;
        }
        let planned = || {
            let planned = step.constants.planned_steps?;
            Some((step.number as f64 / planned).clamp(0.0, 1.0))
        };
        let Some(progress) = step.value(&metric::TRAIN_PROGRESS).or_else(planned) else {
            return;
        };
        let rank = out.resource(&step.rank.resource);
        rank.record(&metric::TRAIN_PROGRESS, step.end, progress, &[]);
        let window = self.0.entry(step.rank.id).or_default();
        if window.back().is_some_and(|(_, before)| progress < *before) {
            window.clear();
        }
        if window.len() > WINDOW {
            window.pop_front();
        }
        window.push_back((step.end, progress));
        if let Some(eta) = eta(window) {
            rank.record(&metric::TRAIN_ETA, step.end, eta, &[]);
        }
    }

    fn forget(&mut self, rank: RankId) {
        self.0.remove(&rank);
    }
}

/// Returns the seconds until the progress is 1, or `None` while the pace is unknown.
fn eta(window: &VecDeque<(UnixNanos, f64)>) -> Option<f64> {
    let ((since, from), (now, progress)) = (window.front()?, window.back()?);
    let pace = (progress - from) / now.secs_since(*since);
    Some((1.0 - progress) / pace).filter(|eta| eta.is_finite() && *eta >= 0.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_trainer::{Bench, Trainer, at};

    #[test]
    fn progress_and_eta_follow_planned_steps_and_current_pace() {
        let mut bench = Bench::new(vec![Box::new(StepProgress::default())]);
        let mut rank = Trainer::new("r", 0, 1);
        rank.record(&metric::TRAIN_PLANNED_STEPS, at(0.0), 1000.0);
        // Two seconds a step. Half a second of it is outside the step's own duration.
        for number in 1..=250 {
            let end = at(number as f64 * 2.0);
            rank.step(number, end, 1.5).record(&metric::TRAIN_LOSS, end, 1.0);
        }
        bench.pass(&mut rank).finish();
        let progress = bench.values(&metric::TRAIN_PROGRESS);
        assert_eq!((progress.len(), progress[249]), (250, 0.25));
        let eta = bench.values(&metric::TRAIN_ETA);
        assert_eq!(eta.len(), 249, "one record has no pace");
        assert!((eta[248] - 1500.0).abs() < 1e-6, "{}", eta[248]);
    }

    #[test]
    fn pace_uses_recent_steps_only() {
        let mut bench = Bench::new(vec![Box::new(StepProgress::default())]);
        let mut rank = Trainer::new("r", 0, 1);
        let mut end = 0.0;
        for number in 0..400 {
            end += if number < 200 { 10.0 } else { 1.0 };
            rank.step(number, at(end), 1.0)
                .record(&metric::TRAIN_LOSS, at(end), 1.0)
                .record(&metric::TRAIN_PROGRESS, at(end), number as f64 / 1000.0);
        }
        bench.pass(&mut rank).finish();
        assert_eq!(
            bench.values(&metric::TRAIN_PROGRESS),
            [0.0; 0],
            "the trainer gives it"
        );
        let eta = bench.values(&metric::TRAIN_ETA);
        assert!((eta.last().unwrap() - 601.0).abs() < 1e-6, "{:?}", eta.last());
    }
}
