//! `train.anomalies`: the number of anomalous steps by type. Each type is sent as 0 with the first record, so
//! that a rate detects the first anomaly.
//!
//! | type | rule | source |
//! |---|---|---|
//! | `nonfinite` | loss or gradient norm is NaN or infinite | |
//! | `grad_norm_spike` | norm > 5 × moving average, the norm itself included, from the 10th value | Surogate, `!` |
//! | `loss_spike` | loss − average > 6 × mean absolute deviation and > 20 % of the average, from the 21st value | ours |
//! | `throughput_drop` | tokens a second < half of their average, from the 11th record | ours |
//!
//! The average of the norm is Surogate's: the mean of the first hundred, then exponential with weight 0.1.
//! The others are exponential with weight 0.1 and do not include the judged value. Anomalous values enter the
//! average, so a lasting level is anomalous only once.

use std::collections::HashMap;

use pulsetrain_otlp::write::AttributeValue;
use pulsetrain_semconv::{Metric, attribute, metric};

use super::{
    average::{Ema, SurogateAverage},
    throughput,
};
use crate::{
    signals::{Derivation, Signals},
    steps::{RankId, StepFacts},
};

/// Counts anomalous steps.
#[derive(Debug, Default)]
pub(super) struct Anomalies(HashMap<RankId, History>);

/// The types, with the values of `train.anomaly.type`.
const TYPES: [&str; 4] = ["nonfinite", "grad_norm_spike", "loss_spike", "throughput_drop"];

#[derive(Debug, Default)]
struct History {
    is_announced: bool,
    norm: SurogateAverage,
    loss: Level,
    throughput: Level,
}

/// An average with the mean absolute deviation from it.
#[derive(Debug, Default)]
struct Level {
    count: u32,
    mean: Ema,
    deviation: Ema,
    now: f64,
    spread: f64,
}

impl Level {
    /// Adds a value. A value that is not finite is ignored.
    fn add(&mut self, value: f64) {
        if !value.is_finite() {
            return;
        }
        if self.count > 0 {
            self.spread = self
                .deviation
                .add((value - self.now).abs())
                .unwrap_or(self.spread);
        }
        self.count = self.count.saturating_add(1);
        self.now = self.mean.add(value).unwrap_or(self.now);
    }
}

/// The factor of a norm spike over its average, and the minimum number of values in the average.
const NORM_FACTOR: f64 = 5.0;
const NORM_AFTER: u32 = 10;

/// The limits of a loss spike over the average, in deviations and as a share, and the minimum number of
/// values in the average.
const LOSS_DEVIATIONS: f64 = 6.0;
const LOSS_SHARE: f64 = 0.2;
const LOSS_AFTER: u32 = 20;

/// The share of its average below which a throughput is a drop, and the minimum number of records.
const DROP_SHARE: f64 = 0.5;
const DROP_AFTER: u32 = 10;

impl History {
    /// Returns for each of [`TYPES`] whether a step is one.
    fn judge(&mut self, step: &StepFacts) -> [bool; TYPES.len()] {
        let loss = step.value(&metric::TRAIN_LOSS);
        let norm = step.value(&metric::TRAIN_GRAD_NORM);
        let tokens = throughput::tokens_per_sec(step);
        let is_nonfinite = [loss, norm].into_iter().flatten().any(|value| !value.is_finite());
        [
            is_nonfinite,
            norm.is_some_and(|norm| self.is_norm_spike(norm)),
            loss.is_some_and(|loss| self.is_loss_spike(loss)),
            tokens.is_some_and(|tokens| self.is_drop(tokens)),
        ]
    }

    fn is_norm_spike(&mut self, norm: f64) -> bool {
        self.norm.add(norm);
        let average = &self.norm;
        norm.is_finite() && average.count >= NORM_AFTER && norm > NORM_FACTOR * average.mean
    }

    fn is_loss_spike(&mut self, loss: f64) -> bool {
        let level = &mut self.loss;
        let above = loss - level.now;
        let is_spike = loss.is_finite()
            && level.count >= LOSS_AFTER
            && above > LOSS_DEVIATIONS * level.spread
            && above > LOSS_SHARE * level.now.abs();
        level.add(loss);
        is_spike
    }

    fn is_drop(&mut self, tokens: f64) -> bool {
        let level = &mut self.throughput;
        let is_drop = level.count >= DROP_AFTER && tokens < DROP_SHARE * level.now;
        level.add(tokens);
        is_drop
    }
}

impl Derivation for Anomalies {
    fn sends(&self) -> &'static [&'static Metric] {
        &[&metric::TRAIN_ANOMALIES]
    }

    fn on_step(&mut self, step: &StepFacts, out: &mut Signals) {
        let is_judged = throughput::is_reporter(step) || step.value(&metric::TRAIN_GRAD_NORM).is_some();
        if !is_judged {
            return;
        }
        let history = self.0.entry(step.rank.id).or_default();
        let odd = history.judge(step);
        let is_first = !std::mem::replace(&mut history.is_announced, true);
        let rank = out.resource(&step.rank.resource);
        for (kind, is_odd) in TYPES.into_iter().zip(odd) {
            if is_odd || is_first {
                let attributes = [(&attribute::TRAIN_ANOMALY_TYPE, AttributeValue::Text(kind))];
                let growth = f64::from(u8::from(is_odd));
                rank.record(&metric::TRAIN_ANOMALIES, step.end, growth, &attributes);
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
    use crate::test_trainer::{Bench, START, Trainer, at};

    /// Returns the numbers of the steps at which a type was counted.
    fn counted(values: &[(f64, f64, f64)], kind: &str) -> Vec<usize> {
        let mut bench = Bench::new(vec![Box::new(Anomalies::default())]);
        let mut rank = Trainer::new("r", 0, 1);
        for (number, (loss, norm, secs)) in values.iter().enumerate() {
            let end = at(number as f64 * 10.0 + 10.0);
            rank.step(number as i64, end, *secs)
                .record(&metric::TRAIN_LOSS, end, *loss)
                .record(&metric::TRAIN_GRAD_NORM, end, *norm)
                .record(&metric::TRAIN_TOKENS, end, 1000.0);
        }
        bench.pass(&mut rank).finish();
        let wanted = format!("train.anomaly.type={kind}");
        let points = bench.points(&metric::TRAIN_ANOMALIES);
        let points: Vec<_> = points
            .iter()
            .filter(|point| point.attributes == [wanted.as_str()])
            .collect();
        assert_eq!(points[0].time, at(10.0), "sent with the first record");
        let grown = points.windows(2).filter(|pair| pair[1].value > pair[0].value);
        let late = grown.map(|pair| pair[1].time);
        let first = (points[0].value > 0.0).then_some(points[0].time);
        first
            .into_iter()
            .chain(late)
            .map(|time| ((time - START) / 10_000_000_000) as usize - 1)
            .collect()
    }

    fn steady(count: usize) -> Vec<(f64, f64, f64)> {
        // Deterministic noise.
        (0..count)
            .map(|step| {
                let noise = ((step * 7919) % 13) as f64 / 13.0 - 0.5;
                (
                    3.0 - step as f64 * 0.01 + noise * 0.1,
                    1.0 + noise * 0.4,
                    1.0 + noise * 0.1,
                )
            })
            .collect()
    }

    #[test]
    fn steady_training_has_no_anomaly() {
        for kind in TYPES {
            assert_eq!(counted(&steady(120), kind), [0; 0], "{kind}");
        }
    }

    #[test]
    fn anomalies_are_counted_by_type_at_their_step() {
        let mut values = steady(120);
        values[40].0 = f64::NAN;
        values[50].1 = f64::INFINITY;
        values[60].1 = 20.0;
        values[70].0 = 8.0;
        values[80].2 = 3.0;
        for (kind, steps) in [
            ("nonfinite", &[40, 50][..]),
            ("grad_norm_spike", &[60]),
            ("loss_spike", &[70]),
            ("throughput_drop", &[80]),
        ] {
            assert_eq!(counted(&values, kind), steps, "{kind}");
        }
    }

    #[test]
    fn gradient_norm_is_checked_from_the_tenth_value_against_an_average_with_itself() {
        let norms = |at: usize, norm: f64| -> Vec<(f64, f64, f64)> {
            (0..12)
                .map(|step| (1.0, if step == at { norm } else { 1.0 }, 1.0))
                .collect()
        };
        assert_eq!(counted(&norms(8, 50.0), "grad_norm_spike"), [0; 0], "the ninth");
        assert_eq!(
            counted(&norms(9, 50.0), "grad_norm_spike"),
            [9],
            "the tenth: 50 > 5 * 59 / 10"
        );
        // The average of ten ones and x is (10 + x) / 11: x is a spike from 50 / 6 on.
        assert_eq!(counted(&norms(10, 8.3), "grad_norm_spike"), [0; 0]);
        assert_eq!(counted(&norms(10, 8.4), "grad_norm_spike"), [10]);
    }
}
