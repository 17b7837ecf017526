//! Spaces the records of a finished log without times, by the step durations or the run time that the log reports.
//!
//! A first reading gives the n-th record without a time the n-th millisecond of 1970. So the points of that reading show what each
//! record reported, and [`Survey`] makes the [`Pace`] of it by which the second reading goes.

use std::{collections::BTreeMap, sync::Arc};

use pulsetrain_otlp::{
    Signal,
    view::{AnyValue, Message, Metric, MetricData, MetricsData, Resource},
    write::Encoded,
};
use pulsetrain_semconv::{attribute, metric};

use super::line_clock::TICK_NANOS;

/// Of more records without a time none is spaced.
pub const MOST_RECORDS: u64 = 1 << 20;

/// The measure that spaces the records of a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PacedBy {
    /// Each by the duration of its steps.
    StepDurations,
    /// All evenly, over the time that the run took.
    RunTime,
}

/// When the records of a log without times were written.
#[derive(Clone, Debug)]
pub struct Pace {
    start_unix_nanos: u64,
    /// Nanoseconds after the start, of each record.
    offsets: Arc<[u64]>,
    /// The measure that spaces the records.
    pub by: PacedBy,
}

impl Pace {
    /// The time of the record at a place; nothing where the log has grown since it was surveyed.
    pub(super) fn time(&self, place: u64) -> Option<u64> {
        let offset = self.offsets.get(usize::try_from(place).ok()?)?;
        Some(self.start_unix_nanos.saturating_add(*offset))
    }

    /// The same pace from `start` on, or up to `end`.
    pub fn between(self, start: Option<u64>, end: u64) -> Self {
        let len = self.offsets.last().copied().unwrap_or_default();
        Self {
            start_unix_nanos: start.unwrap_or(end.saturating_sub(len)),
            ..self
        }
    }
}

/// What the records of a log report of time.
#[derive(Debug, Default)]
pub struct Survey {
    /// Seconds of a step by the rank and the place of the record.
    durations: BTreeMap<(i64, u64), f64>,
    steps: BTreeMap<(i64, u64), f64>,
    /// Seconds since the run began by the place of the record.
    elapsed: BTreeMap<u64, f64>,
    /// What the durations of each rank have come to.
    sums: BTreeMap<i64, f64>,
    /// The records up to the last one that reports something.
    records: u64,
    has_times: bool,
}

impl Survey {
    /// Takes in what the first reading recorded.
    pub fn observe(&mut self, encoded: &Encoded) {
        if encoded.signal != Signal::Metrics {
            return;
        }
        let Ok(data) = MetricsData::decode(&encoded.bytes) else {
            return;
        };
        for resource in data.resource_metrics.iter().flatten() {
            let rank = resource.resource.as_ref().map_or(0, rank_of);
            for scope in resource.scope_metrics.iter().flatten() {
                let metrics = scope.metrics.iter().flatten();
                metrics.for_each(|metric| self.observe_metric(rank, &metric));
            }
        }
    }

    /// Whether the log itself has times.
    pub fn has_times(&self) -> bool {
        self.has_times
    }

    fn observe_metric(&mut self, rank: i64, metric: &Metric<'_>) {
        match metric.data() {
            Some(MetricData::Gauge(gauge)) => {
                for point in gauge.data_points.iter().flatten() {
                    let value = point.value().map(|value| value.as_f64());
                    let (Some(place), Some(value)) = (self.place(point.time_unix_nano), value) else {
                        continue;
                    };
                    if metric.name == metric::TRAIN_GLOBAL_STEP.name {
                        self.steps.insert((rank, place), value);
                    } else if metric.name == metric::TRAIN_ELAPSED_TIME.name {
                        self.elapsed.insert(place, value);
                    }
                }
            }
            Some(MetricData::Histogram(histogram)) if metric.name == metric::TRAIN_STEP_DURATION.name => {
                for point in histogram.data_points.iter().flatten() {
                    let (Some(place), Some(sum)) = (self.place(point.time_unix_nano), point.sum) else {
                        continue;
                    };
                    let before = self.sums.insert(rank, sum).unwrap_or_default();
                    self.durations.insert((rank, place), sum - before);
                }
            }
            _ => {}
        }
    }

    /// The place of the record with this time; nothing where the log itself has the time.
    fn place(&mut self, time_unix_nanos: u64) -> Option<u64> {
        let place = (time_unix_nanos / TICK_NANOS).checked_sub(1)?;
        let is_place = place < MOST_RECORDS && time_unix_nanos.is_multiple_of(TICK_NANOS);
        self.has_times |= !is_place;
        if is_place {
            self.records = self.records.max(place + 1);
        }
        is_place.then_some(place)
    }

    /// Returns the pace of the records, or `None` if the log has times or reports no durations.
    pub fn pace(&self) -> Option<Pace> {
        if self.has_times {
            return None;
        }
        let (offsets, by) = if self.durations.is_empty() || self.run_time_covers_most() {
            (self.by_run_time()?, PacedBy::RunTime)
        } else {
            (self.by_durations(), PacedBy::StepDurations)
        };
        Some(Pace {
            start_unix_nanos: 0,
            offsets: offsets.into(),
            by,
        })
    }

    /// Whether the log reports how long the run took so far in its second half.
    fn run_time_covers_most(&self) -> bool {
        let last = self.elapsed.last_key_value();
        last.is_some_and(|(place, _)| *place >= self.records / 2)
    }

    /// Each record with a duration is later than the one before of its rank by the duration of all steps since.
    fn by_durations(&self) -> Vec<u64> {
        let mut at = BTreeMap::new();
        let mut ranks = BTreeMap::<i64, (u64, Option<f64>)>::new();
        for ((rank, place), duration) in &self.durations {
            let (offset, last_step) = ranks.entry(*rank).or_default();
            let step = self.steps.get(&(*rank, *place)).copied();
            let grown = step.zip(*last_step).map_or(1.0, |(step, last)| step - last);
            *last_step = step.or(*last_step);
            *offset = offset.saturating_add(nanos(duration * grown.max(1.0)));
            at.insert(*place, *offset);
        }
        let mut last = 0_u64;
        let offset = |place| {
            last = at.get(&place).copied().unwrap_or(last.saturating_add(TICK_NANOS));
            last
        };
        (0..self.records).map(offset).collect()
    }

    /// Between two records that report the run time so far, all others are spaced evenly.
    fn by_run_time(&self) -> Option<Vec<u64>> {
        let mut offsets = Vec::new();
        let mut last = 0_u64;
        for (place, elapsed) in &self.elapsed {
            let offset = nanos(*elapsed);
            if offset <= last {
                continue;
            }
            let before = offsets.len() as u64;
            let gaps = place + 1 - before;
            offsets.extend((1..=gaps).map(|gap| last + part(offset - last, gap, gaps)));
            last = offset;
        }
        let rest = self.records.saturating_sub(offsets.len() as u64);
        let is_known = !offsets.is_empty();
        offsets.extend((1..=rest).map(|tick| last.saturating_add(tick.saturating_mul(TICK_NANOS))));
        is_known.then_some(offsets)
    }
}

/// `gap` of `gaps` equal parts.
fn part(all: u64, gap: u64, gaps: u64) -> u64 {
    (u128::from(all) * u128::from(gap) / u128::from(gaps)) as u64
}

/// No run takes longer than a hundred years.
fn nanos(seconds: f64) -> u64 {
    (seconds.clamp(0.0, 3e9) * 1e9) as u64
}

fn rank_of(resource: &Resource<'_>) -> i64 {
    let mut attributes = resource.attributes.iter().flatten();
    let rank = attributes.find(|pair| pair.key == attribute::TRAIN_RANK.name);
    match rank.and_then(|pair| pair.value) {
        Some(AnyValue::Int(rank)) => rank,
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::logs::{LogReader, ReadLimits, ReadTime, format_by_name};
    use pulsetrain_mapping::Mapping;
    use pulsetrain_record::{Recorder, Run};

    const MINUTE: u64 = 60_000_000_000;

    /// The times of the records of a text without times, after the start.
    fn offsets(format: &str, text: &str) -> Option<(PacedBy, Vec<u64>)> {
        let mut survey = Survey::default();
        let mut recorder = Recorder::new(Run::default(), |encoded| survey.observe(&encoded));
        let format = format_by_name(format).unwrap();
        let mut reader = LogReader::mapped(format, &Arc::new(Mapping::default()), ReadLimits::default());
        reader.set_time(ReadTime::default());
        reader.push(text.as_bytes(), &mut recorder);
        reader.finish(&mut recorder);
        recorder.finish();
        let pace = survey.pace()?;
        Some((pace.by, pace.offsets.to_vec()))
    }

    #[test]
    fn step_durations_space_the_records_by_all_steps_between_them() {
        let line = |step: u32| format!("step={step} train.step.duration=6s\n");
        let text = line(10) + "train.loss=2.5\n" + &line(20);
        let (by, offsets) = offsets("keyvalue", &text).unwrap();
        assert_eq!(by, PacedBy::StepDurations);
        assert_eq!(
            offsets,
            [MINUTE / 10, MINUTE / 10 + TICK_NANOS, MINUTE / 10 + MINUTE]
        );
    }

    #[test]
    fn ranks_that_log_in_turn_are_spaced_side_by_side() {
        let lines = |step: u32| {
            let line = |rank| format!("[rank{rank}]: {{'loss': 2.5, 'epoch': 0.{step}, 'step_time': 60}}\n");
            line(0) + &line(1)
        };
        let (_, offsets) = offsets("hf-trainer", &(lines(1) + &lines(2))).unwrap();
        assert_eq!(offsets, [MINUTE, MINUTE, 2 * MINUTE, 2 * MINUTE]);
    }

    #[test]
    fn the_run_time_of_the_trainer_spaces_its_records_evenly() {
        let text = "{'loss': 2.5, 'epoch': 0.5}\n{'loss': 2.25, 'epoch': 1.0}\n{'train_runtime': 180.0, 'epoch': 1.0}\n";
        let (by, offsets) = offsets("hf-trainer", text).unwrap();
        assert_eq!(by, PacedBy::RunTime);
        assert_eq!(offsets, [MINUTE, 2 * MINUTE, 3 * MINUTE]);
    }

    #[test]
    fn the_run_time_counts_more_than_durations_that_leave_steps_out() {
        let text = "{'loss': 2.5, 'epoch': 0.5, 'step_time': 1.0}\n{'train_runtime': 120.0, 'epoch': 1.0}\n";
        assert_eq!(
            offsets("hf-trainer", text),
            Some((PacedBy::RunTime, vec![MINUTE, 2 * MINUTE]))
        );
    }

    #[test]
    fn a_log_with_times_or_without_any_duration_has_no_pace() {
        assert_eq!(offsets("keyvalue", "step=1 train.loss=2.5\n"), None);
        let timed = "2026-01-02 10:00:00 step=1 train.step.duration=6s\nstep=2 train.step.duration=6s\n";
        assert_eq!(offsets("keyvalue", timed), None);
    }

    #[test]
    fn a_pace_begins_at_a_start_or_ends_at_an_end() {
        let pace = Pace {
            start_unix_nanos: 0,
            offsets: [MINUTE, 3 * MINUTE].into(),
            by: PacedBy::RunTime,
        };
        let times = |pace: Pace| [0, 1, 2].map(|place| pace.time(place));
        let ended = pace.clone().between(None, 10 * MINUTE);
        assert_eq!(times(ended), [Some(8 * MINUTE), Some(10 * MINUTE), None]);
        let begun = pace.between(Some(MINUTE), 10 * MINUTE);
        assert_eq!(times(begun), [Some(2 * MINUTE), Some(4 * MINUTE), None]);
    }
}
