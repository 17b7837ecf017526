//! Converts steps that start over with each epoch to steps of the run.

/// The steps of one log.
#[derive(Debug, Default)]
pub(super) struct EpochSteps {
    epoch: f64,
    /// Whether the log numbers its epochs.
    has_epochs: bool,
    /// Whether an epoch began after the newest count.
    is_new_epoch: bool,
    /// The number of the first epoch, if epochs have a total: 1 as in `Epoch 1/10`, or 0 after `[0/5]`.
    first: Option<f64>,
    /// The counts without a label, as in bars and `[10/100]`.
    counts: Steps,
    /// The steps with a label. A log can have both: bars within an epoch, and lines with the step of the run.
    labelled: Steps,
    /// The epoch and the newest fraction of a batch.
    fraction: Option<[f64; 3]>,
    /// Whether such fractions are an epoch and a batch.
    has_epoch_and_batch: bool,
}

/// The steps of one kind.
#[derive(Debug, Default)]
struct Steps {
    newest: Step,
    /// The number of steps of the previous epochs.
    before: f64,
    /// Whether steps have started over without a total that is known or inferred: the step of the run is not known.
    is_unknown: bool,
    /// Whether the count is over the complete run: it does not restart in a new epoch.
    is_of_run: bool,
}

#[derive(Clone, Copy, Debug, Default)]
struct Step {
    epoch: f64,
    done: f64,
    /// The steps of the epoch.
    total: Option<f64>,
    /// The first step of the epoch.
    first: Option<f64>,
    /// The difference to the previous step of the epoch.
    stride: f64,
    /// Whether all steps of the epoch have this difference.
    is_regular: bool,
}

impl EpochSteps {
    /// Notes the epoch of the steps that follow, and the number of epochs if the log has it.
    pub(super) fn begin(&mut self, epoch: f64, epochs: Option<f64>) {
        self.is_new_epoch |= !self.has_epochs || self.epoch != epoch;
        self.has_epochs = true;
        self.epoch = epoch;
        if epochs.is_some() {
            let first = self.first.unwrap_or(1.0);
            self.first = Some(first.min(epoch));
        }
    }

    /// Returns whether the log numbers its epochs.
    pub(super) fn has_epochs(&self) -> bool {
        self.has_epochs
    }

    /// Returns whether a count is of another loop than training: it has another total than the finished count before it, in the
    /// same epoch. In a log that does not number epochs, a longer loop continues the training.
    pub(super) fn is_other_loop(&self, total: f64) -> bool {
        let newest = &self.counts.newest;
        let of_training = newest
            .total
            .filter(|_| newest.is_finished() && !self.is_new_epoch);
        of_training.is_some_and(|of_training| total < of_training || self.has_epochs && total > of_training)
    }

    /// Returns whether the fraction of a batch is an epoch and a batch, as `Batch 0/100` of wenet: in an epoch, the second number
    /// grows while the first one stays.
    pub(super) fn is_epoch_and_batch(&mut self, first: f64, second: f64) -> bool {
        let before = self.fraction.replace([self.epoch, first, second]);
        if let Some([epoch, same, batch]) = before
            && !self.has_epoch_and_batch
            && epoch == self.epoch
            && same == first
            && batch < second
        {
            self.has_epoch_and_batch = true;
            self.begin(first, None);
            self.step(batch, None, false);
        }
        self.has_epoch_and_batch
    }

    /// Returns the step of the run, or `None` if it is unknown. A count without a label, as in bars, counts within the epoch
    /// unless it continues in the next one.
    pub(super) fn step(&mut self, done: f64, total: Option<f64>, is_count: bool) -> Option<f64> {
        self.is_new_epoch &= !is_count;
        let steps = match is_count {
            true => &mut self.counts,
            false => &mut self.labelled,
        };
        let old = steps.newest;
        let new = old.next(self.epoch, done, total);
        steps.newest = new;
        if let Some(first) = self.first.filter(|_| is_count) {
            steps.is_of_run |= new.continues(old);
            return total.map(|total| match steps.is_of_run {
                true => done,
                false => (self.epoch - first) * total + done,
            });
        }
        // A log with one line an epoch has the last step each time.
        let starts_over = done < old.done || done == old.done && total == Some(done);
        // A finished count that starts over begins an epoch, also if the log does not number epochs. A run that continues
        // from a checkpoint does not start over near 0.
        let restarts = new.total == old.total && new.total.is_some_and(|total| 2.0 * new.done < total);
        let is_longer = new.total > old.total;
        let begins_epoch = new.epoch > old.epoch || is_count && (restarts || is_longer) && old.is_finished();
        if begins_epoch && starts_over {
            match old.total.or_else(|| new.inferred_total(old)) {
                Some(total) => steps.before += total,
                None => steps.is_unknown = true,
            }
        }
        (!steps.is_unknown).then_some(steps.before + done)
    }
}

impl Step {
    /// Returns the step after this one.
    fn next(self, epoch: f64, done: f64, total: Option<f64>) -> Self {
        let Some(first) = self.first.filter(|_| self.epoch == epoch) else {
            return Self {
                epoch,
                done,
                total,
                first: Some(done),
                stride: 0.0,
                is_regular: true,
            };
        };
        // Two lines can have the same step.
        let stride = if done == self.done {
            self.stride
        } else {
            done - self.done
        };
        Self {
            epoch,
            done,
            total,
            first: Some(first),
            stride,
            is_regular: self.is_regular && (self.stride == 0.0 || self.stride == stride),
        }
    }

    /// Returns whether the count has reached its total, or reaches it before the next line.
    fn is_finished(&self) -> bool {
        self.total
            .is_some_and(|total| self.done + self.stride.max(1.0) >= total)
    }

    /// Infers the steps of the previous epoch, whose last step is `last`, if both begin with the same step and all intervals
    /// are equal.
    fn inferred_total(self, last: Self) -> Option<f64> {
        let is_same = last.first == Some(self.done) && self.epoch == last.epoch + 1.0;
        (is_same && last.is_regular && last.stride > 0.0).then_some(last.done + last.stride - self.done)
    }

    /// Returns whether the count continues that of the step before it, in a new epoch.
    fn continues(self, before: Self) -> bool {
        let grown = self.done - before.done;
        self.epoch > before.epoch
            && self.total == before.total
            && grown > 0.0
            && grown <= 1.5 * before.stride
            && self
                .total
                .is_some_and(|total| before.done + before.stride < total)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the steps of the run for epochs and counts.
    fn steps_of(epochs: Option<f64>, counts: &[(f64, f64, f64)]) -> Vec<Option<f64>> {
        let mut steps = EpochSteps::default();
        let step = |(epoch, done, total): &(f64, f64, f64)| {
            steps.begin(*epoch, epochs);
            steps.step(*done, Some(*total), true)
        };
        counts.iter().map(step).collect()
    }

    #[test]
    fn count_that_starts_over_continues_the_steps_of_the_run() {
        let within = [(1.0, 50.0, 100.0), (1.0, 100.0, 100.0), (2.0, 50.0, 100.0)];
        let expected = [Some(50.0), Some(100.0), Some(150.0)];
        assert_eq!(steps_of(Some(2.0), &within), expected);
        assert_eq!(steps_of(None, &within), expected);
        // One count an epoch does not show whether it continues.
        let sparse = [(1.0, 45.0, 100.0), (2.0, 50.0, 100.0)];
        assert_eq!(steps_of(Some(5.0), &sparse), [Some(45.0), Some(150.0)]);
    }

    #[test]
    fn count_over_the_complete_run_is_its_step() {
        let counts = [
            (1.0, 200.0, 800.0),
            (1.0, 300.0, 800.0),
            (2.0, 400.0, 800.0),
            (2.0, 500.0, 800.0),
        ];
        let expected = [Some(200.0), Some(300.0), Some(400.0), Some(500.0)];
        assert_eq!(steps_of(Some(3.0), &counts), expected);
    }

    #[test]
    fn finished_count_that_starts_over_begins_an_epoch_without_a_number() {
        let mut steps = EpochSteps::default();
        let mut step = |done| steps.step(done, Some(200.0), true);
        assert_eq!(step(0.0), Some(0.0));
        assert_eq!(step(150.0), Some(150.0));
        assert_eq!(step(0.0), Some(200.0));
        assert_eq!(step(50.0), Some(250.0));
        // A run that was restarted counts the same steps again, or continues from a checkpoint.
        assert_eq!(step(0.0), Some(200.0));
        assert_eq!(step(150.0), Some(350.0));
        assert_eq!(step(120.0), Some(320.0));
    }

    #[test]
    fn finished_count_is_followed_by_another_loop_or_a_longer_one_of_training() {
        let mut steps = EpochSteps::default();
        assert!(!steps.is_other_loop(10.0));
        assert_eq!(steps.step(10.0, Some(10.0), true), Some(10.0));
        assert!(steps.is_other_loop(5.0) && !steps.is_other_loop(10.0) && !steps.is_other_loop(100.0));
        assert_eq!(steps.step(1.0, Some(100.0), true), Some(11.0));
        assert!(!steps.is_other_loop(5.0), "the loop is not finished");
        assert_eq!(steps.step(100.0, Some(100.0), true), Some(110.0));
        steps.begin(1.0, None);
        assert!(!steps.is_other_loop(50.0), "an epoch has begun");
        assert_eq!(steps.step(50.0, Some(50.0), true), Some(160.0));
        assert!(steps.is_other_loop(5.0) && !steps.is_other_loop(50.0) && steps.is_other_loop(100.0));
    }

    #[test]
    fn bars_of_epochs_and_lines_with_the_step_of_the_run_agree() {
        let mut steps = EpochSteps::default();
        assert_eq!(steps.step(1000.0, Some(1000.0), true), Some(1000.0));
        steps.begin(1.0, None);
        assert_eq!(steps.step(1000.0, None, false), Some(1000.0));
        assert_eq!(steps.step(250.0, Some(1000.0), true), Some(1250.0));
    }
}
