//! `train.smoothed.loss`, `.throughput` and `.step_time`: exponential moving averages over steps with weight
//! 0.1 for the newest.
//!
//! Source: KempnerForge (`metrics/tracker.py`: EMA, alpha 0.1, updated every step). A value that is not
//! finite is ignored, so that the curve continues after a NaN. `train.smoothed.mfu` is the average of
//! `train.mfu` (`mfu.rs`).

use std::collections::HashMap;

use pulsetrain_semconv::{Metric, metric};

use super::{average::Ema, throughput};
use crate::{
    signals::{Derivation, Signals},
    steps::{RankId, StepFacts},
};

const SENDS: [&Metric; 3] = [
    &metric::TRAIN_SMOOTHED_LOSS,
    &metric::TRAIN_SMOOTHED_THROUGHPUT,
    &metric::TRAIN_SMOOTHED_STEP_TIME,
];

/// Derives smoothed values: the averages of each rank are in the order of [`SENDS`].
#[derive(Debug, Default)]
pub(super) struct Smoothed(HashMap<RankId, [Ema; SENDS.len()]>);

impl Derivation for Smoothed {
    fn sends(&self) -> &'static [&'static Metric] {
        &SENDS
    }

    fn on_step(&mut self, step: &StepFacts, out: &mut Signals) {
        let values = [
            step.value(&metric::TRAIN_LOSS),
            throughput::tokens_per_sec(step),
            step.step_secs(),
        ];
        let averages = self.0.entry(step.rank.id).or_default();
        let rank = out.resource(&step.rank.resource);
        for ((metric, average), value) in SENDS.into_iter().zip(averages).zip(values) {
            if let Some(smoothed) = value.and_then(|value| average.add(value)) {
                rank.record(metric, step.end, smoothed, &[]);
            }
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
    fn loss_step_time_and_throughput_are_smoothed() {
        let mut bench = Bench::new(vec![Box::new(Smoothed::default())]);
        let mut rank = Trainer::new("r", 0, 1);
        for (number, (loss, secs)) in [(4.0, 1.0), (3.0, 2.0), (f64::NAN, 1.0)].into_iter().enumerate() {
            let end = at(number as f64 * 3.0 + 3.0);
            rank.step(number as i64, end, secs)
                .record(&metric::TRAIN_LOSS, end, loss)
                .record(&metric::TRAIN_TOKENS, end, 100.0);
        }
        bench.pass(&mut rank).finish();
        assert_eq!(bench.values(&metric::TRAIN_SMOOTHED_LOSS), [4.0, 3.9, 3.9]);
        assert_eq!(bench.values(&metric::TRAIN_SMOOTHED_STEP_TIME), [1.0, 1.1, 1.09]);
        assert_eq!(
            bench.values(&metric::TRAIN_SMOOTHED_THROUGHPUT),
            [100.0, 95.0, 95.5]
        );
    }
}
