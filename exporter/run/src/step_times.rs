//! The steps of a rank by the time at which they ended.

use std::collections::VecDeque;

use pulsetrain_otlp::{UnixNanos, WireError, view::Metric, walk::InResource};
use pulsetrain_semconv::metric;

/// The end times and numbers of steps, in order of time.
///
/// A trainer records the values of a step when the step ends, so the step in force at a time is the last one that ended by then.
#[derive(Clone, Debug)]
pub struct StepTimes {
    steps: VecDeque<(UnixNanos, i64)>,
    max_steps: usize,
}

impl StepTimes {
    /// Returns an empty list, which keeps the newest `max_steps` steps.
    pub fn new(max_steps: usize) -> Self {
        Self {
            steps: VecDeque::new(),
            max_steps,
        }
    }

    /// Returns the steps that a resource reports in one message (`train.global_step`).
    ///
    /// # Errors
    /// The resource is not valid protobuf.
    pub fn from_resource<'a>(resource: &InResource<'a, Metric<'a>>) -> Result<Self, WireError> {
        let mut steps = Self::new(usize::MAX);
        for metric in resource.items() {
            let metric = metric?;
            if metric.name != metric::TRAIN_GLOBAL_STEP.name {
                continue;
            }
            metric.each_point(|point| {
                if let Some(step) = point.number() {
                    steps.record(point.time(), step.as_f64() as i64);
                }
            })?;
        }
        Ok(steps)
    }

    /// Records the end of a step. A step that is recorded twice at one time counts once.
    pub fn record(&mut self, end: UnixNanos, step: i64) {
        let new = (end, step);
        // Steps mostly arrive in order.
        let is_newest = self.steps.back().is_none_or(|last| *last < new);
        let place = match is_newest {
            true => self.steps.len(),
            false => self.steps.partition_point(|other| *other < new),
        };
        if self.steps.get(place) == Some(&new) {
            return;
        }
        self.steps.insert(place, new);
        if self.steps.len() > self.max_steps {
            self.steps.pop_front();
        }
    }

    /// Returns the step that ended at a time, or the last one before it.
    pub fn at(&self, time: UnixNanos) -> Option<i64> {
        let after = self.steps.partition_point(|(end, _)| *end <= time);
        self.steps.get(after.checked_sub(1)?).map(|(_, step)| *step)
    }

    /// Returns the end time and the number of the newest step.
    pub fn last(&self) -> Option<(UnixNanos, i64)> {
        self.steps.back().copied()
    }

    /// Iterates over the end times and numbers, in order of time.
    pub fn iter(&self) -> impl Iterator<Item = (UnixNanos, i64)> {
        self.steps.iter().copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn step_in_force_is_the_last_one_that_ended() {
        let mut steps = StepTimes::new(3);
        for (end, step) in [(10, 1), (30, 3), (20, 2), (20, 2)] {
            steps.record(UnixNanos(end), step);
        }
        let at = [9, 10, 19, 20, 35].map(|time| steps.at(UnixNanos(time)));
        assert_eq!(at, [None, Some(1), Some(1), Some(2), Some(3)]);
        assert_eq!(steps.iter().count(), 3);
        steps.record(UnixNanos(40), 4);
        let kept: Vec<i64> = steps.iter().map(|(_, step)| step).collect();
        assert_eq!(kept, [2, 3, 4]);
        assert_eq!(steps.last(), Some((UnixNanos(40), 4)));
    }

    #[test]
    fn steps_are_read_from_every_metric_of_the_step_and_no_other() {
        use pulsetrain_otlp::{
            view::NumberValue,
            walk,
            write::{Envelope, MetricsWriter},
        };
        let mut writer = MetricsWriter::default();
        writer.measured(&metric::TRAIN_GLOBAL_STEP, UnixNanos(20), NumberValue::Int(2));
        writer.measured(&metric::TRAIN_LOSS, UnixNanos(20), NumberValue::Double(7.0));
        writer.measured(
            &metric::TRAIN_GLOBAL_STEP,
            UnixNanos(10),
            NumberValue::Double(1.0),
        );
        let message = writer.finish(&Envelope::new(&[], "", "", "")).unwrap();
        let resource = walk::metrics(&message.bytes).next().unwrap().unwrap();
        let steps = StepTimes::from_resource(&resource).unwrap();
        assert!(steps.iter().eq([(UnixNanos(10), 1), (UnixNanos(20), 2)]));
    }
}
