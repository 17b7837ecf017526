//! `eval.gap` and `eval.throughput.tokens`.
//!
//! gap = loss on held-out data − mean training loss of the steps since the previous evaluation. throughput =
//! tokens evaluated / duration of the evaluation. Source: Surogate (`gap = eval_loss - mean(train loss since
//! last eval)`, `tps` of its `eval` line).
//!
//! Steps close after evaluations pass, so an evaluation waits until a step closes that ended later, or the
//! stage ends.

use std::{
    collections::{HashMap, VecDeque},
    sync::Arc,
};

use pulsetrain_otlp::UnixNanos;
use pulsetrain_run::SeriesTracker;
use pulsetrain_semconv::{Metric, metric};

use crate::{
    signals::{Derivation, PointFacts, Signals},
    steps::{RankId, StepFacts},
};

/// The maximum number of evaluations of a rank that wait for their steps. Beyond it the oldest is dropped.
const MAX_WAITING: usize = 4096;

/// Derives the gap and the throughput of evaluations.
#[derive(Debug, Default)]
pub(super) struct Evaluation(HashMap<RankId, Evaluations>);

#[derive(Debug, Default)]
struct Evaluations {
    resource: Option<Arc<[u8]>>,
    waiting: VecDeque<Record>,
    /// The training loss since the previous evaluation: sum and number of steps.
    train_loss: (f64, u32),
    tokens: SeriesTracker,
    durations: SeriesTracker,
}

/// The values of an evaluation at one time.
#[derive(Clone, Copy, Debug, Default)]
struct Record {
    time: UnixNanos,
    loss: Option<f64>,
    tokens: Option<f64>,
    secs: Option<f64>,
}

impl Evaluations {
    /// Returns the record of a time.
    fn at(&mut self, time: UnixNanos) -> &mut Record {
        let place = self.waiting.partition_point(|record| record.time < time);
        if self.waiting.get(place).is_none_or(|record| record.time != time) {
            let record = Record {
                time,
                ..Record::default()
            };
            self.waiting.insert(place, record);
        }
        &mut self.waiting[place]
    }

    /// Adds a point.
    fn take(&mut self, point: &PointFacts<'_>) {
        let is = |metric: &Metric| point.metric.ordinal == metric.ordinal;
        if is(&metric::EVAL_LOSS) {
            self.at(point.time).loss = Some(point.value);
        } else if is(&metric::EVAL_TOKENS) {
            if let Some(increase) = self.tokens.observe(&point.series) {
                self.at(point.time).tokens = Some(increase.sum);
            }
        } else if point.series.count.is_some()
            && let Some(increase) = self.durations.observe(&point.series)
            && increase.count == 1
        {
            self.at(point.time).secs = Some(increase.sum);
        }
        if self.waiting.len() > MAX_WAITING {
            self.waiting.pop_front();
        }
    }

    /// Sends the evaluations before `time`, or all for `None`.
    fn settle(&mut self, time: Option<UnixNanos>, out: &mut Signals) {
        while let Some(record) = self.waiting.front().copied()
            && time.is_none_or(|time| record.time < time)
        {
            self.waiting.pop_front();
            let rank = out.resource(self.resource.as_deref().unwrap_or_default());
            let (sum, steps) = std::mem::take(&mut self.train_loss);
            if let Some(loss) = record.loss
                && steps > 0
            {
                let gap = loss - sum / f64::from(steps);
                rank.record(&metric::EVAL_GAP, record.time, gap, &[]);
            } else if record.loss.is_none() {
                self.train_loss = (sum, steps);
            }
            let rate = record.tokens.zip(record.secs).map(|(tokens, secs)| tokens / secs);
            if let Some(rate) = rate.filter(|rate| rate.is_finite() && *rate > 0.0) {
                rank.record(&metric::EVAL_THROUGHPUT_TOKENS, record.time, rate, &[]);
            }
        }
    }
}

impl Derivation for Evaluation {
    fn sends(&self) -> &'static [&'static Metric] {
        &[&metric::EVAL_GAP, &metric::EVAL_THROUGHPUT_TOKENS]
    }

    fn points(&self) -> &'static [&'static Metric] {
        &[&metric::EVAL_LOSS, &metric::EVAL_TOKENS, &metric::EVAL_DURATION]
    }

    fn on_point(&mut self, point: &PointFacts<'_>, _: &mut Signals) {
        // Points with attributes are about one of several data sets.
        let Some(rank) = point
            .rank
            .filter(|_| point.attributes.is_empty() && !point.is_end)
        else {
            return;
        };
        let evaluations = self.0.entry(rank.id).or_default();
        evaluations
            .resource
            .get_or_insert_with(|| Arc::clone(&rank.resource));
        evaluations.take(point);
    }

    fn on_step(&mut self, step: &StepFacts, out: &mut Signals) {
        let Some(loss) = step.value(&metric::TRAIN_LOSS) else {
            return;
        };
        let evaluations = self.0.entry(step.rank.id).or_default();
        evaluations.settle(Some(step.end), out);
        let (sum, steps) = &mut evaluations.train_loss;
        *sum += loss;
        *steps += 1;
    }

    fn on_finish(&mut self, out: &mut Signals) {
        let mut all: Vec<_> = self.0.iter_mut().collect();
        all.sort_unstable_by_key(|(rank, _)| **rank);
        for (_, evaluations) in all {
            evaluations.settle(None, out);
        }
    }

    fn forget(&mut self, rank: RankId) {
        self.0.remove(&rank);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_trainer::{Bench, Trainer, at};

    #[test]
    fn evaluation_gap_uses_the_mean_loss_since_the_previous_evaluation() {
        let mut bench = Bench::new(vec![Box::new(Evaluation::default())]);
        let mut rank = Trainer::new("r", 0, 1);
        let mut step = |number: i64, loss: f64| {
            let end = at(number as f64);
            rank.step(number, end, 1.0).record(&metric::TRAIN_LOSS, end, loss);
            if number % 2 == 0 {
                let end = at(number as f64 + 0.5);
                rank.record(&metric::EVAL_LOSS, end, 2.0)
                    .record(&metric::EVAL_TOKENS, end, 1000.0)
                    .record(&metric::EVAL_DURATION, end, 0.25);
            }
        };
        [5.0, 3.0, 2.0, 1.0]
            .into_iter()
            .zip(1..)
            .for_each(|(loss, number)| step(number, loss));
        bench.pass(&mut rank).finish();
        assert_eq!(bench.values(&metric::EVAL_GAP), [2.0 - 4.0, 2.0 - 1.5]);
        assert_eq!(bench.values(&metric::EVAL_THROUGHPUT_TOKENS), [4000.0, 4000.0]);
        let times: Vec<_> = bench
            .points(&metric::EVAL_GAP)
            .iter()
            .map(|point| point.time)
            .collect();
        assert_eq!(times, [at(2.5), at(4.5)]);
    }

    #[test]
    fn evaluation_gap_of_a_diverged_run_is_nan() {
        let mut bench = Bench::new(vec![Box::new(Evaluation::default())]);
        let mut rank = Trainer::new("r", 0, 1);
        rank.step(1, at(1.0), 1.0)
            .record(&metric::TRAIN_LOSS, at(1.0), f64::NAN);
        rank.record(&metric::EVAL_LOSS, at(1.5), 2.0);
        bench.pass(&mut rank).finish();
        assert!(
            bench.values(&metric::EVAL_GAP)[0].is_nan(),
            "as Surogate shows it"
        );
    }
}
