//! Signals of one rank, one file each, with the formula and its source.

mod anomalies;
mod average;
mod bottleneck;
mod evaluation;
mod mfu;
mod peak_flops;
mod progress;
mod smoothed;
mod sol;
mod steps_done;
mod throughput;

use crate::signals::Derivation;

/// Returns the derivations of one rank's signals.
pub(crate) fn all() -> Vec<Box<dyn Derivation>> {
    vec![
        Box::new(steps_done::StepsDone),
        Box::new(throughput::Throughput),
        Box::new(mfu::Mfu::default()),
        Box::new(sol::Sol),
        Box::new(smoothed::Smoothed::default()),
        Box::new(anomalies::Anomalies::default()),
        Box::new(progress::StepProgress::default()),
        Box::new(evaluation::Evaluation::default()),
        Box::new(bottleneck::Bottleneck::default()),
    ]
}
