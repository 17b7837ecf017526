//! Values that a run reports once and every step needs: the plan, the cost of a token, the devices.

use pulsetrain_run::SeriesKey;
use pulsetrain_semconv::{Metric, metric};

/// The metrics that are constants.
pub(crate) const CONSTANTS: [&Metric; 6] = [
    &metric::TRAIN_PLANNED_STEPS,
    &metric::TRAIN_FLOPS_PER_TOKEN,
    &metric::TRAIN_FLOPS_PER_STEP,
    &metric::TRAIN_BATCH_SIZE,
    &metric::RUN_DEVICES,
    &metric::TRAIN_EXPECTED_THROUGHPUT,
];

/// The maximum number of parts of `train.flops_per_token`, which add up.
const MAX_PARTS: usize = 8;

/// The constants of a run: the last values of any rank.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Constants {
    /// `train.planned_steps`
    pub(crate) planned_steps: Option<f64>,
    /// `train.flops_per_step`, over all devices.
    pub(crate) flops_per_step: Option<f64>,
    /// `train.batch_size`, samples of a step over all devices.
    pub(crate) batch_size: Option<f64>,
    /// `run.devices`
    pub(crate) devices: Option<f64>,
    /// `train.expected_throughput`, tokens a second at the hardware's peak over all devices.
    pub(crate) expected_throughput: Option<f64>,
    /// Operations of a token by part of the model.
    flops_per_token: [Option<(SeriesKey, f64)>; MAX_PARTS],
}

impl Constants {
    /// Returns the floating-point operations of one token, summed over all parts of the model.
    pub(crate) fn flops_per_token(&self) -> Option<f64> {
        let parts = || self.flops_per_token.iter().flatten();
        parts().next()?;
        Some(parts().map(|(_, flops)| flops).sum())
    }

    /// Records a value of one of [`CONSTANTS`].
    pub(crate) fn record(&mut self, metric: &Metric, series: SeriesKey, value: f64) {
        if !value.is_finite() || value <= 0.0 {
            return;
        }
        let is = |other: &Metric| metric.ordinal == other.ordinal;
        if is(&metric::TRAIN_PLANNED_STEPS) {
            self.planned_steps = Some(value);
        } else if is(&metric::TRAIN_FLOPS_PER_STEP) {
            self.flops_per_step = Some(value);
        } else if is(&metric::TRAIN_BATCH_SIZE) {
            self.batch_size = Some(value);
        } else if is(&metric::RUN_DEVICES) {
            self.devices = Some(value);
        } else if is(&metric::TRAIN_EXPECTED_THROUGHPUT) {
            self.expected_throughput = Some(value);
        } else if is(&metric::TRAIN_FLOPS_PER_TOKEN) {
            self.record_part(series, value);
        }
    }

    fn record_part(&mut self, part: SeriesKey, flops: f64) {
        let is_its_place =
            |place: &&mut Option<(SeriesKey, f64)>| place.is_none_or(|(known, _)| known == part);
        if let Some(place) = self.flops_per_token.iter_mut().find(is_its_place) {
            *place = Some((part, flops));
        }
    }
}
