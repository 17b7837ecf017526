//! Throughput: work of a record divided by the time that it covers.
//!
//! - `train.throughput.tokens` = tokens of the record / seconds, over all devices
//! - `train.throughput.tokens_per_device` = the same / devices (`run.devices`, else `train.world_size`)
//! - `train.throughput.samples` = samples of the record (else `train.batch_size` times its steps) / seconds
//! - `train.flops_per_step` = `train.flops_per_token`, all parts added up, times the tokens of one step
//! - `train.throughput.flops_per_device` = operations of one step / seconds of one step / devices
//!
//! The seconds are the duration of the step, or the time since the previous record if it covers several
//! steps. The functions are also the input of MFU, speed of light and smoothing. A value of the trainer has
//! precedence. Formulas: torchtitan `components/metrics.py` (tps, tflops); Surogate (`tps = 1000 *
//! step_tokens / duration_ms`).

use pulsetrain_semconv::{Metric, metric};

use crate::{
    signals::{Derivation, Signals},
    steps::StepFacts,
};

/// Derives throughput.
#[derive(Debug)]
pub(super) struct Throughput;

impl Derivation for Throughput {
    fn sends(&self) -> &'static [&'static Metric] {
        &[
            &metric::TRAIN_THROUGHPUT_TOKENS,
            &metric::TRAIN_THROUGHPUT_TOKENS_PER_DEVICE,
            &metric::TRAIN_THROUGHPUT_SAMPLES,
            &metric::TRAIN_THROUGHPUT_FLOPS_PER_DEVICE,
            &metric::TRAIN_FLOPS_PER_STEP,
        ]
    }

    fn on_step(&mut self, step: &StepFacts, out: &mut Signals) {
        let rank = out.resource(&step.rank.resource);
        let mut send = |metric, value: Option<f64>| {
            if let Some(value) = value {
                rank.record(metric, step.end, value, &[]);
            }
        };
        let tokens = tokens_per_sec(step);
        send(&metric::TRAIN_THROUGHPUT_TOKENS, tokens);
        send(
            &metric::TRAIN_THROUGHPUT_TOKENS_PER_DEVICE,
            tokens
                .zip(devices(step))
                .map(|(tokens, devices)| tokens / devices),
        );
        send(&metric::TRAIN_THROUGHPUT_SAMPLES, samples_per_sec(step));
        send(&metric::TRAIN_FLOPS_PER_STEP, flops_per_step(step));
        send(&metric::TRAIN_THROUGHPUT_FLOPS_PER_DEVICE, flops_per_device(step));
    }
}

/// Returns whether the rank reports the progress of the job, and not only its own times.
pub(super) fn is_reporter(step: &StepFacts) -> bool {
    const REPORTS: [&Metric; 3] = [&metric::TRAIN_LOSS, &metric::TRAIN_TOKENS, &metric::TRAIN_SAMPLES];
    REPORTS.into_iter().any(|metric| step.value(metric).is_some())
}

/// Returns the number of devices of the job, or `None` if neither devices nor ranks are known.
pub(super) fn devices(step: &StepFacts) -> Option<f64> {
    let world_size = step.rank.world_size.map(|size| size as f64);
    let devices = step.constants.devices.or(world_size);
    devices.filter(|devices| *devices > 0.0)
}

/// Returns the tokens a second over all devices.
pub(super) fn tokens_per_sec(step: &StepFacts) -> Option<f64> {
    let given = step.value(&metric::TRAIN_THROUGHPUT_TOKENS);
    let per_device = || Some(step.value(&metric::TRAIN_THROUGHPUT_TOKENS_PER_DEVICE)? * devices(step)?);
    let derived = || Some(step.value(&metric::TRAIN_TOKENS)? / step.covered_secs()?);
    given
        .or_else(per_device)
        .or_else(derived)
        .filter(|rate| rate.is_finite())
}

/// Returns the samples a second over all devices.
fn samples_per_sec(step: &StepFacts) -> Option<f64> {
    let samples = step.value(&metric::TRAIN_SAMPLES).or_else(|| {
        let steps = step.covered.unwrap_or(1) as f64;
        step.constants
            .batch_size
            .filter(|_| is_reporter(step))
            .map(|size| size * steps)
    });
    Some(samples? / step.covered_secs()?)
}

/// Returns the operations of one step over all devices.
fn flops_per_step(step: &StepFacts) -> Option<f64> {
    let per_device = || Some(step.value(&metric::TRAIN_FLOPS_PER_STEP_PER_DEVICE)? * devices(step)?);
    let by_tokens = || {
        let tokens = step.value(&metric::TRAIN_TOKENS)? / step.covered.unwrap_or(1) as f64;
        Some(step.constants.flops_per_token()? * tokens)
    };
    let constant = step.constants.flops_per_step.filter(|_| is_reporter(step));
    constant.or_else(per_device).or_else(by_tokens)
}

/// Returns the operations a second on one device.
pub(super) fn flops_per_device(step: &StepFacts) -> Option<f64> {
    let given = step.value(&metric::TRAIN_THROUGHPUT_FLOPS_PER_DEVICE);
    let by_step = || {
        let secs = step.covered_secs()? / step.covered.unwrap_or(1) as f64;
        Some(flops_per_step(step)? / secs / devices(step)?)
    };
    // A trainer that reports the rate and not the tokens.
    let by_rate = || Some(step.constants.flops_per_token()? * tokens_per_sec(step)? / devices(step)?);
    given
        .or_else(by_step)
        .or_else(by_rate)
        .filter(|rate| rate.is_finite())
}

#[cfg(test)]
mod tests {
    use pulsetrain_otlp::write::AttributeValue;
    use pulsetrain_semconv::attribute;

    use super::*;
    use crate::test_trainer::{Bench, Trainer, at};

    /// Four devices, 8192 tokens and 16 samples in half a second, 3 + 2 GFLOP a token.
    fn trainer() -> Trainer {
        let mut rank = Trainer::new("r", 0, 4);
        for (part, flops) in [("blocks", 3e9), ("attention", 2e9)] {
            let part = [(&attribute::TRAIN_FLOPS_PART, AttributeValue::Text(part))];
            rank.record_with(&metric::TRAIN_FLOPS_PER_TOKEN, at(0.0), flops, &part);
        }
        rank
    }

    #[test]
    fn step_values_yield_the_expected_throughput_rates() {
        let mut bench = Bench::new(vec![Box::new(Throughput)]);
        let mut rank = trainer();
        for number in 1..=2 {
            let end = at(number as f64);
            rank.step(number, end, 0.5);
            rank.record(&metric::TRAIN_TOKENS, end, 8192.0)
                .record(&metric::TRAIN_SAMPLES, end, 16.0);
        }
        bench.pass(&mut rank).finish();
        for (metric, value) in [
            (&metric::TRAIN_THROUGHPUT_TOKENS, 16_384.0),
            (&metric::TRAIN_THROUGHPUT_TOKENS_PER_DEVICE, 4096.0),
            (&metric::TRAIN_THROUGHPUT_SAMPLES, 32.0),
            (&metric::TRAIN_FLOPS_PER_STEP, 5e9 * 8192.0),
            (&metric::TRAIN_THROUGHPUT_FLOPS_PER_DEVICE, 5e9 * 4096.0),
        ] {
            assert_eq!(bench.values(metric), [value, value], "{}", metric.name);
        }
    }

    #[test]
    fn record_of_ten_steps_uses_the_time_since_the_previous_record() {
        let mut bench = Bench::new(vec![Box::new(Throughput)]);
        let mut rank = trainer();
        for (number, end) in [(10, 10.0), (20, 14.0)] {
            rank.record(&metric::TRAIN_GLOBAL_STEP, at(end), number as f64)
                .record(&metric::TRAIN_TOKENS, at(end), 81_920.0);
        }
        bench.pass(&mut rank).finish();
        // The number of steps that the first record covers is unknown.
        assert_eq!(bench.values(&metric::TRAIN_THROUGHPUT_TOKENS), [20_480.0]);
        assert_eq!(bench.values(&metric::TRAIN_FLOPS_PER_STEP), [5e9 * 8192.0]);
        assert_eq!(
            bench.values(&metric::TRAIN_THROUGHPUT_FLOPS_PER_DEVICE),
            [5e9 * 5120.0]
        );
    }

    #[test]
    fn sample_throughput_uses_batch_size_of_the_reporting_rank_only() {
        let mut bench = Bench::new(vec![Box::new(Throughput)]);
        for rank in 0..2 {
            let mut trainer = Trainer::new("r", rank, 2);
            if rank == 0 {
                trainer.record(&metric::TRAIN_BATCH_SIZE, at(0.0), 64.0);
                trainer.record(&metric::TRAIN_LOSS, at(2.0), 1.0);
            }
            trainer.step(1, at(2.0), 2.0);
            bench.pass(&mut trainer);
        }
        bench.finish();
        let points = bench.points(&metric::TRAIN_THROUGHPUT_SAMPLES);
        let points: Vec<_> = points
            .iter()
            .map(|point| (point.instance.as_str(), point.value))
            .collect();
        assert_eq!(points, [("r/0", 32.0)]);
    }
}
