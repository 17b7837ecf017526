//! `train.steps` and `train.last_step_time`: the number of completed steps, and the end of the newest one.
//!
//! `train.steps` grows by the number of steps that a record covers: by n for a trainer that logs every n-th
//! step. A step that is repeated after a restart counts again. "Time since the last step" is `time() -
//! train_last_step_time_seconds` in PromQL.

use pulsetrain_semconv::{Metric, metric};

use crate::{
    signals::{Derivation, Signals},
    steps::StepFacts,
};

/// Derives `train.steps` and `train.last_step_time`.
#[derive(Debug)]
pub(super) struct StepsDone;

impl Derivation for StepsDone {
    fn sends(&self) -> &'static [&'static Metric] {
        &[&metric::TRAIN_STEPS, &metric::TRAIN_LAST_STEP_TIME]
    }

    fn on_step(&mut self, step: &StepFacts, out: &mut Signals) {
        let rank = out.resource(&step.rank.resource);
        let done = step.done.unwrap_or(1) as f64;
        rank.record(&metric::TRAIN_STEPS, step.end, done, &[]);
        rank.record(
            &metric::TRAIN_LAST_STEP_TIME,
            step.end,
            step.end.as_secs_f64(),
            &[],
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_trainer::{Bench, START, Trainer, at};

    #[test]
    fn steps_between_records_count_and_the_newest_time_is_sent() {
        let mut bench = Bench::new(vec![Box::new(StepsDone)]);
        let mut rank = Trainer::new("r", 0, 1);
        for (number, end) in [(10, 1.0), (20, 2.0), (30, 3.5)] {
            rank.step(number, at(end), 0.1);
        }
        bench.pass(&mut rank).finish();
        assert_eq!(bench.values(&metric::TRAIN_STEPS), [1.0, 11.0, 21.0]);
        let start = START as f64 / 1e9;
        assert_eq!(
            bench.values(&metric::TRAIN_LAST_STEP_TIME),
            [1.0, 2.0, 3.5].map(|secs| start + secs)
        );
    }

    #[test]
    fn metric_sent_by_the_trainer_is_not_derived() {
        let mut bench = Bench::new(vec![Box::new(StepsDone)]);
        let mut rank = Trainer::new("r", 0, 1);
        for number in 1..=3 {
            let end = at(number as f64);
            rank.step(number, end, 1.0).record(&metric::TRAIN_STEPS, end, 1.0);
        }
        bench.pass(&mut rank).finish();
        assert_eq!(bench.values(&metric::TRAIN_STEPS), [0.0; 0]);
        assert_eq!(bench.values(&metric::TRAIN_LAST_STEP_TIME).len(), 3);
    }
}
