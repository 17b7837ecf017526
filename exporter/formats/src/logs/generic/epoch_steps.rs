//! Converts steps that start over with each epoch to steps of the run.

/// The steps of one log.
#[derive(Debug, Default)]
pub(super) struct EpochSteps {
    epoch: f64,
    /// The number of the first epoch, if epochs have a total: 1 as in `Epoch 1/10`, or 0 after `[0/5]`.
    first: Option<f64>,
    /// The epoch and the number of the newest step, and the steps of its epoch.
    newest: (f64, f64, Option<f64>),
    /// The number of steps of the previous epochs.
    before: f64,
    /// Whether steps have started over without a total: the step of the run is not known.
    is_unknown: bool,
}

impl EpochSteps {
    /// Notes the epoch of the steps that follow, and the number of epochs if the log has it.
    pub(super) fn begin(&mut self, epoch: f64, epochs: Option<f64>) {
        self.epoch = epoch;
        if epochs.is_some() {
            let first = self.first.unwrap_or(1.0);
            self.first = Some(first.min(epoch));
        }
    }

    /// Returns the step of the run, or `None` if it is unknown. A count without a label, as in bars, counts within the epoch.
    pub(super) fn step(&mut self, done: f64, total: Option<f64>, is_count: bool) -> Option<f64> {
        let (epoch, newest, newest_total) = std::mem::replace(&mut self.newest, (self.epoch, done, total));
        if let Some(first) = self.first.filter(|_| is_count) {
            return total.map(|total| (self.epoch - first) * total + done);
        }
        // A log with one line an epoch has the last step each time.
        let starts_over = done < newest || done == newest && total == Some(done);
        if self.epoch > epoch && starts_over {
            self.before += newest_total.unwrap_or_default();
            self.is_unknown |= newest_total.is_none();
        }
        (!self.is_unknown).then_some(self.before + done)
    }
}
