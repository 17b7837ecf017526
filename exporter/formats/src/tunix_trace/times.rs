//! Computes the times of a step from its spans: Tunix's own metrics (`tunix/perf/export.py`).
//!
//! `TUNIX_TRACES.md` in this crate lists the formulas that differ from upstream, with reasons.

use pulsetrain_otlp::{
    UnixNanos,
    write::{Attribute, AttributeValue},
};
use pulsetrain_semconv::{
    Metric,
    attribute::PERF_STATISTIC,
    metric::{
        PERF_ACTOR_GAP_TIME, PERF_ACTOR_TRAIN_STEP_TIME, PERF_ACTOR_TRAIN_TIME,
        PERF_BETWEEN_MICRO_BATCH_GAP_TIME, PERF_FIRST_MICRO_BATCH_ROLLOUT_TIME, PERF_GLOBAL_STEP_TIME,
        PERF_OLD_ACTOR_INFERENCE_TIME, PERF_REFER_GAP_TIME, PERF_REFER_INFERENCE_TIME,
        PERF_ROLLOUT_IDLE_TIME, PERF_ROLLOUT_TIME, PERF_WEIGHT_SYNC_TIME,
    },
};

use pulsetrain_record::Recorder;

/// An interval in nanoseconds of one clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Interval {
    pub(super) start: u64,
    pub(super) end: u64,
}

impl Interval {
    fn nanos(self) -> u64 {
        self.end.saturating_sub(self.start)
    }
}

/// The intervals of a step that its times are computed from. Each list is in order of time.
#[derive(Debug, Default)]
pub(super) struct StepTimes {
    pub(super) step: Option<Interval>,
    pub(super) weight_sync: Option<Interval>,
    pub(super) rollouts: Vec<Interval>,
    pub(super) references: Vec<Interval>,
    pub(super) old_actors: Vec<Interval>,
    /// The loops of the actor. The list is empty in a trace without groups.
    pub(super) loops: Vec<Interval>,
    /// The training steps of the actor on the host thread.
    pub(super) train_steps: Vec<Interval>,
}

impl StepTimes {
    /// Records the metrics of the step.
    pub(super) fn record(&self, time_unix_nanos: UnixNanos, recorder: &mut Recorder<'_>) {
        let mut one = |metric: &'static Metric, nanos: Option<u64>| {
            if let Some(nanos) = nanos {
                recorder.record(metric, time_unix_nanos, secs(nanos), &[]);
            }
        };
        one(&PERF_GLOBAL_STEP_TIME, self.step.map(Interval::nanos));
        one(&PERF_WEIGHT_SYNC_TIME, self.weight_sync_nanos());
        one(&PERF_ROLLOUT_IDLE_TIME, self.rollout_idle());
        one(&PERF_FIRST_MICRO_BATCH_ROLLOUT_TIME, self.first_rollout());
        for (metric, intervals) in [
            (&PERF_ROLLOUT_TIME, &self.rollouts),
            (&PERF_REFER_INFERENCE_TIME, &self.references),
            (&PERF_OLD_ACTOR_INFERENCE_TIME, &self.old_actors),
            (&PERF_ACTOR_TRAIN_TIME, &self.loops),
            (&PERF_ACTOR_TRAIN_STEP_TIME, &self.train_steps),
        ] {
            let nanos = intervals.iter().map(|interval| interval.nanos()).sum();
            sum_and_mean(metric, nanos, intervals.len(), time_unix_nanos, recorder);
        }
        for (metric, nanos, count) in [
            (
                &PERF_REFER_GAP_TIME,
                gaps(&self.references),
                self.references.len(),
            ),
            (&PERF_ACTOR_GAP_TIME, gaps(&self.loops), self.loops.len()),
            (
                &PERF_BETWEEN_MICRO_BATCH_GAP_TIME,
                self.between_micro_batches(),
                self.loops.len(),
            ),
        ] {
            sum_and_mean(metric, nanos, count, time_unix_nanos, recorder);
        }
    }

    /// Returns zero if a step has no synchronisation: its models share their weights.
    fn weight_sync_nanos(&self) -> Option<u64> {
        let shared = self.step.map(|_| 0);
        self.weight_sync.map(Interval::nanos).or(shared)
    }

    /// Returns the time from the end of the last rollout to the weight synchronisation, or else to the end of the step.
    fn rollout_idle(&self) -> Option<u64> {
        let until = self
            .weight_sync
            .map(|sync| sync.start)
            .or(self.step.map(|step| step.end))?;
        Some(until.saturating_sub(self.rollouts.last()?.end))
    }

    fn first_rollout(&self) -> Option<u64> {
        Some(self.rollouts.first()?.end.saturating_sub(self.step?.start))
    }

    /// Sums the idle time of the reference model and the actor after each loop but the last.
    fn between_micro_batches(&self) -> u64 {
        let ended = self.loops.split_last().map_or(&[][..], |(_, ended)| ended);
        ended.iter().map(|ended| self.idle_after(ended.end)).sum()
    }

    fn idle_after(&self, time: u64) -> u64 {
        let work = self.references.iter().chain(&self.loops);
        let left = work.filter(|work| work.end > time);
        let next = left.map(|work| work.start).min().unwrap_or(time);
        next.saturating_sub(time)
    }
}

/// Sums the gaps between consecutive intervals.
fn gaps(intervals: &[Interval]) -> u64 {
    let gap = |pair: &[Interval]| pair[1].start.saturating_sub(pair[0].end);
    intervals.windows(2).map(gap).sum()
}

/// Records the sum and the mean over `count` micro-batches. Records nothing if `count` is 0.
fn sum_and_mean(
    metric: &'static Metric,
    nanos: u64,
    count: usize,
    time_unix_nanos: UnixNanos,
    recorder: &mut Recorder<'_>,
) {
    if count == 0 {
        return;
    }
    for (statistic, value) in [("sum", secs(nanos)), ("mean", secs(nanos) / count as f64)] {
        let attributes: [Attribute<'_>; 1] = [(&PERF_STATISTIC, AttributeValue::Text(statistic))];
        recorder.record(metric, time_unix_nanos, value, &attributes);
    }
}

fn secs(nanos: u64) -> f64 {
    nanos as f64 / 1e9
}

#[cfg(test)]
mod tests {
    use super::*;

    fn intervals(of: &[(u64, u64)]) -> Vec<Interval> {
        of.iter().map(|&(start, end)| Interval { start, end }).collect()
    }

    #[test]
    fn gap_sums_the_time_between_disjoint_intervals() {
        assert_eq!(gaps(&intervals(&[(0, 10), (13, 20), (20, 30), (25, 40)])), 3);
        assert_eq!(gaps(&[]), 0);
    }

    #[test]
    fn reference_work_ahead_of_the_loop_yields_no_negative_gap() {
        let times = StepTimes {
            references: intervals(&[(0, 5), (6, 9), (50, 60)]),
            loops: intervals(&[(10, 40), (42, 70)]),
            ..StepTimes::default()
        };
        assert_eq!(times.between_micro_batches(), 2);
        let at_work = StepTimes {
            references: intervals(&[(0, 5), (30, 45)]),
            loops: intervals(&[(10, 40), (45, 70)]),
            ..StepTimes::default()
        };
        assert_eq!(at_work.between_micro_batches(), 0);
    }
}
