//! `train.sol`, speed of light: the ratio of the ideal time of a step at the hardware's peak to its actual
//! time.
//!
//! sol = tokens a second / `train.expected_throughput`, which is the tokens a second at the peak over all
//! devices. Source: Surogate (`sol% = 100 * (ns_per_token * step_tokens / 1e6) / duration_ms`). Its console
//! truncates the expected milliseconds to an integer, so it may show up to 1 ms / duration less.

use pulsetrain_semconv::{Metric, metric};

use super::throughput;
use crate::{
    signals::{Derivation, Signals},
    steps::StepFacts,
};

/// Derives `train.sol`.
#[derive(Debug)]
pub(super) struct Sol;

impl Derivation for Sol {
    fn sends(&self) -> &'static [&'static Metric] {
        &[&metric::TRAIN_SOL]
    }

    fn on_step(&mut self, step: &StepFacts, out: &mut Signals) {
        let expected = step.constants.expected_throughput;
        if let Some((tokens, expected)) = throughput::tokens_per_sec(step).zip(expected) {
            out.resource(&step.rank.resource)
                .record(&metric::TRAIN_SOL, step.end, tokens / expected, &[]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_trainer::{Bench, Trainer, at};

    /// Step 0 of tests/corpus/surogate/console_dense.log: 16,384 tokens in 123 ms at 189,789 tokens a second
    /// of the peak are 70.2 %. The console shows 69.9 % (86 of 123 ms, where 86.3 is truncated to 86).
    #[test]
    fn sol_matches_the_recorded_surogate_step() {
        let mut bench = Bench::new(vec![Box::new(Sol)]);
        let mut rank = Trainer::new("r", 0, 1);
        rank.record(&metric::TRAIN_EXPECTED_THROUGHPUT, at(0.0), 189_789.0);
        rank.step(0, at(1.0), 0.123)
            .record(&metric::TRAIN_TOKENS, at(1.0), 16_384.0);
        bench.pass(&mut rank).finish();
        let sol = bench.values(&metric::TRAIN_SOL);
        assert_eq!(sol.len(), 1);
        assert!((sol[0] - 0.7018).abs() < 1e-4, "{sol:?}");
        let shown = (sol[0] * 123.0).floor() / 123.0;
        assert!((shown - 0.699).abs() < 5e-4, "{shown}");
    }
}
