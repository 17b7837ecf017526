//! Values that a run reports once and every step needs: the plan, the cost of a token, the devices.

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
    /// Operations of a token by part of the model: hash of the part, operations.
    flops_per_token: [(u64, f64); MAX_PARTS],
    parts: usize,
}

impl Constants {
    /// Returns the floating-point operations of one token, summed over all parts of the model.
    pub(crate) fn flops_per_token(&self) -> Option<f64> {
        let parts = self.flops_per_token.get(..self.parts)?;
        (!parts.is_empty()).then(|| parts.iter().map(|(_, flops)| flops).sum())
    }

    /// Records a value of one of [`CONSTANTS`]. `attributes` is the hash of the point's attributes.
    pub(crate) fn note(&mut self, metric: &Metric, attributes: u64, value: f64) {
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
            self.note_part(attributes, value);
        }
    }

    fn note_part(&mut self, part: u64, flops: f64) {
        let known = self.flops_per_token.iter_mut().take(self.parts);
        if let Some((_, known)) = known.into_iter().find(|(known, _)| *known == part) {
            *known = flops;
        } else if let Some(free) = self.flops_per_token.get_mut(self.parts) {
            *free = (part, flops);
            self.parts += 1;
        }
    }
}
