//! The bottleneck of a TorchSpec run, as its documentation derives it from its own metrics (`docs/performance_metrics.md`,
//! "Identifying the bottleneck").
//!
//! The documentation defines no numbers for ">>" and "~"; ours are [`DOMINANCE_FACTOR`] and [`BALANCED`].

use pulsetrain_otlp::UnixNanos;
use pulsetrain_semconv::{Metric, attribute, metric};

use pulsetrain_record::Recorder;

/// The name of the trainer in `mappings/`.
pub(super) const NAME: &str = "torchspec";

/// The measurements of one step. An unknown capacity is 0, as TorchSpec reports it before the first inferred batch.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Reading {
    /// Seconds that training waited for samples.
    pub(crate) dispatch_wait: Option<f64>,
    /// Samples a second that inference could produce if training were infinitely fast.
    pub(crate) infer_capacity: f64,
    /// Samples a second that training could consume if inference were infinitely fast.
    pub(crate) train_capacity: f64,
    /// Seconds that training worked.
    pub(crate) step_secs: Option<f64>,
    pub(crate) data_secs: Option<f64>,
    pub(crate) compute_secs: Option<f64>,
    /// Whether the number of waiting samples grows.
    pub(crate) pool_grows: bool,
}

/// Capacities that differ by less than a tenth are in balance.
const BALANCED: f64 = 0.9;

/// The factor by which one part of a step must exceed the other to be the bottleneck.
const DOMINANCE_FACTOR: f64 = 2.0;

impl Reading {
    /// Returns the state of `perf.bottleneck`, or `None` if too few values are known.
    pub(crate) fn bottleneck(&self) -> Option<&'static str> {
        let (infer, train) = (self.infer_capacity, self.train_capacity);
        let is_known = infer > 0.0 && train > 0.0;
        if self.is_starved() || (is_known && infer < train * BALANCED) {
            Some("inference")
        } else if is_known && infer * BALANCED <= train {
            Some("none")
        } else if is_known || self.pool_grows {
            Some(self.part_of_training())
        } else {
            None
        }
    }

    /// Returns whether training waits for samples longer than it works on them.
    fn is_starved(&self) -> bool {
        let (Some(wait), Some(step)) = (self.dispatch_wait, self.step_secs) else {
            return false;
        };
        wait > 0.0 && wait >= step
    }

    /// Returns the longest part of a step if training is the bottleneck.
    fn part_of_training(&self) -> &'static str {
        match (self.data_secs, self.compute_secs) {
            (Some(data), Some(compute)) if data > compute * DOMINANCE_FACTOR => "data",
            (Some(data), Some(compute)) if compute > data * DOMINANCE_FACTOR => "compute",
            _ => "training",
        }
    }
}

/// Collects the values of a step.
#[derive(Debug, Default)]
pub(crate) struct StepReading {
    step: Option<i64>,
    reading: Reading,
}

impl StepReading {
    /// Adds a value of a step. Returns whether it is the last one that TorchSpec logs for a step.
    pub(crate) fn observe(&mut self, metric: &'static Metric, value: f64, step: Option<i64>) -> bool {
        if self.step != step {
            *self = Self {
                step,
                ..Self::default()
            };
        }
        let reading = &mut self.reading;
        let is = |other: &'static Metric| metric.ordinal == other.ordinal;
        if is(&metric::PERF_DISPATCH_WAIT) {
            reading.dispatch_wait = Some(value);
        } else if is(&metric::PERF_INFER_CAPACITY) {
            reading.infer_capacity = value;
        } else if is(&metric::PERF_STEP_TIME) {
            reading.step_secs = Some(value);
        } else if is(&metric::PERF_DATA_TIME) {
            reading.data_secs = Some(value);
        } else if is(&metric::PERF_COMPUTE_TIME) {
            reading.compute_secs = Some(value);
        } else if is(&metric::PERF_TRAIN_CAPACITY) {
            reading.train_capacity = value;
            return true;
        }
        false
    }

    /// Records the bottleneck of the step, if it is known.
    pub(crate) fn record(&self, time_unix_nanos: UnixNanos, recorder: &mut Recorder<'_>) {
        if let Some(state) = self.reading.bottleneck() {
            let (metric, attribute) = (&metric::PERF_BOTTLENECK, &attribute::PERF_BOTTLENECK);
            recorder.record_state(metric, attribute, time_unix_nanos, state, &[]);
        }
    }
}

#[cfg(test)]
mod tests;
