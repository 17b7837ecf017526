//! Converts steps that start over with each epoch to steps of the run.

/// The steps of one log.
#[derive(Debug, Default)]
pub(super) struct EpochSteps {
    epoch: f64,
    /// The number of the first epoch, if epochs have a total: 1 as in `Epoch 1/10`, or 0 after `[0/5]`.
    first: Option<f64>,
    /// The number of epochs, if the log has it.
    epochs: Option<f64>,
    /// The counts without a label, as in bars and `[10/100]`.
    counts: Steps,
    /// The steps with a label. A log can have both: bars within an epoch, and lines with the step of the run.
    labelled: Steps,
}

/// The steps of one kind.
#[derive(Debug, Default)]
struct Steps {
    newest: Step,
    /// The number of steps of the previous epochs.
    before: f64,
    /// Whether steps have started over without a total: the step of the run is not known.
    is_unknown: bool,
    /// Whether the count goes on from epoch to epoch, as a bar over the complete run.
    is_of_run: bool,
}

#[derive(Clone, Copy, Debug, Default)]
struct Step {
    epoch: f64,
    done: f64,
    /// The steps of the epoch.
    total: Option<f64>,
    /// The difference to the previous step.
    stride: f64,
}

impl EpochSteps {
    /// Notes the epoch of the steps that follow, and the number of epochs if the log has it.
    pub(super) fn begin(&mut self, epoch: f64, epochs: Option<f64>) {
        self.epoch = epoch;
        if epochs.is_some() {
            let first = self.first.unwrap_or(1.0);
            self.first = Some(first.min(epoch));
            self.epochs = epochs;
        }
    }

    /// Returns the step of the run, or `None` if it is unknown. A count without a label, as in bars, counts within the epoch
    /// unless it goes on in the next one.
    pub(super) fn step(&mut self, done: f64, total: Option<f64>, is_count: bool) -> Option<f64> {
        let steps = match is_count {
            true => &mut self.counts,
            false => &mut self.labelled,
        };
        let old = steps.newest;
        let new = Step {
            epoch: self.epoch,
            done,
            total,
            stride: done - old.done,
        };
        steps.newest = new;
        if let Some(first) = self.first.filter(|_| is_count) {
            let is_of_epoch = |step: Step| step.is_within_epoch_of_run(first, self.epochs);
            steps.is_of_run |= new.epoch > old.epoch
                && new.done > old.done
                && new.total == old.total
                && [old, new].into_iter().all(is_of_epoch);
            return total.map(|total| match steps.is_of_run {
                true => done,
                false => (self.epoch - first) * total + done,
            });
        }
        // A log with one line an epoch has the last step each time.
        let starts_over = done < old.done || done == old.done && total == Some(done);
        // A finished count that starts over begins an epoch, also if the log does not number epochs.
        let is_finished = old
            .total
            .is_some_and(|total| old.done + old.stride.max(1.0) >= total);
        let begins_epoch =
            new.epoch > old.epoch || is_count && new.done < old.done && new.total == old.total && is_finished;
        if begins_epoch && starts_over {
            steps.before += old.total.unwrap_or_default();
            steps.is_unknown |= old.total.is_none();
        }
        (!steps.is_unknown).then_some(steps.before + done)
    }
}

impl Step {
    /// Returns whether the count, if it is over the complete run, is one of its epoch.
    fn is_within_epoch_of_run(self, first: f64, epochs: Option<f64>) -> bool {
        let (Some(total), Some(epochs)) = (self.total, epochs) else {
            return false;
        };
        let steps_of_epoch = total / epochs;
        let begin = (self.epoch - first) * steps_of_epoch;
        (begin..=begin + steps_of_epoch).contains(&self.done)
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
        let run = |counts: &[(f64, f64, f64)], epochs| steps_of(epochs, counts);
        let within = [(1.0, 50.0, 100.0), (1.0, 100.0, 100.0), (2.0, 50.0, 100.0)];
        assert_eq!(run(&within, Some(2.0)), [Some(50.0), Some(100.0), Some(150.0)]);
        assert_eq!(run(&within, None), [Some(50.0), Some(100.0), Some(150.0)]);
        // Not the end of the first epoch: the count is still one within the epoch.
        let sparse = [(1.0, 45.0, 100.0), (2.0, 50.0, 100.0)];
        assert_eq!(run(&sparse, Some(5.0)), [Some(45.0), Some(150.0)]);
    }

    #[test]
    fn count_over_the_complete_run_is_its_step() {
        let counts = [(1.0, 100.0, 200.0), (2.0, 110.0, 200.0), (2.0, 120.0, 200.0)];
        let expected = [Some(100.0), Some(110.0), Some(120.0)];
        assert_eq!(steps_of(Some(2.0), &counts), expected);
    }

    #[test]
    fn finished_count_that_starts_over_begins_an_epoch_without_a_number() {
        let mut steps = EpochSteps::default();
        let mut step = |done| steps.step(done, Some(200.0), true);
        assert_eq!(step(0.0), Some(0.0));
        assert_eq!(step(150.0), Some(150.0));
        assert_eq!(step(0.0), Some(200.0));
        assert_eq!(step(50.0), Some(250.0));
        // A run that was restarted counts the same steps again.
        assert_eq!(step(0.0), Some(200.0));
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
