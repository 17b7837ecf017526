//! Spaces the records of a finished log without times, by the step durations or the run time in the log.
//!
//! The first pass over the log assigns the n-th millisecond of 1970 to the n-th record without a time. The points of that pass
//! show the reported durations of each record. [`Survey`] derives the [`Pace`] from them, which the second pass uses.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use pulsetrain_otlp::{
    Signal, UnixNanos,
    view::Metric,
    walk::{self, PointKind},
    write::Encoded,
};
use pulsetrain_run::{RunOrigin, SeriesPoint, SeriesTracker};
use pulsetrain_semconv::metric;

use super::line_clock::TICK;

/// [`TICK`] in nanoseconds.
const TICK_NANOS: u64 = TICK.as_nanos() as u64;

/// The maximum number of records without a time. A longer log is not spaced.
pub const MAX_RECORDS: u64 = 1 << 20;

/// The measure that spaces the records of a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PacedBy {
    /// The duration of the steps of each record.
    StepDurations,
    /// The run time, spread evenly.
    RunTime,
}

/// The times of the records of a log without times.
#[derive(Clone, Debug)]
pub struct Pace {
    start_unix_nanos: UnixNanos,
    /// The offset of each record from the start, in nanoseconds.
    offsets: Arc<[u64]>,
    /// The measure that spaces the records.
    pub by: PacedBy,
}

impl Pace {
    /// Returns the time of the n-th record. `None` if the log has grown since the survey.
    pub(super) fn time(&self, index: u64) -> Option<UnixNanos> {
        let offset = self.offsets.get(usize::try_from(index).ok()?)?;
        Some(
            self.start_unix_nanos
                .saturating_add(Duration::from_nanos(*offset)),
        )
    }

    /// Moves the pace to begin at `start`, or else to end at `end`.
    pub fn between(self, start: Option<UnixNanos>, end: UnixNanos) -> Self {
        let len = self.offsets.last().copied().unwrap_or_default();
        Self {
            start_unix_nanos: start.unwrap_or(end.saturating_sub(Duration::from_nanos(len))),
            ..self
        }
    }
}

/// The durations that the records of a log report.
#[derive(Debug, Default)]
pub struct Survey {
    /// Seconds of a step, by rank and record index.
    durations: BTreeMap<(i64, u64), f64>,
    steps: BTreeMap<(i64, u64), f64>,
    /// Seconds since the start of the run, by record index.
    elapsed: BTreeMap<u64, f64>,
    /// The series of durations of each rank.
    series: BTreeMap<i64, SeriesTracker>,
    /// The number of records up to the last one that reports something.
    records: u64,
    has_times: bool,
}

impl Survey {
    /// Adds a batch of the first pass.
    pub fn observe(&mut self, encoded: &Encoded) {
        if encoded.signal != Signal::Metrics {
            return;
        }
        for resource in walk::metrics(&encoded.bytes).flatten() {
            let rank = RunOrigin::from_attributes(resource.attributes()).rank;
            for metric in resource.items().flatten() {
                self.observe_metric(rank.unwrap_or_default(), &metric);
            }
        }
    }

    /// Returns whether the log itself has times.
    pub fn has_times(&self) -> bool {
        self.has_times
    }

    fn observe_metric(&mut self, rank: i64, metric: &Metric<'_>) {
        let is = |definition: &pulsetrain_semconv::Metric| metric.name == definition.name;
        // Our own encoder wrote the points, so that each can be decoded.
        let _ = metric.each_point(|point| {
            if point.kind == PointKind::Gauge {
                let value = point.number().map(|number| number.as_f64());
                let (Some(index), Some(value)) = (self.index(point.time()), value) else {
                    return;
                };
                if is(&metric::TRAIN_GLOBAL_STEP) {
                    self.steps.insert((rank, index), value);
                } else if is(&metric::TRAIN_ELAPSED_TIME) {
                    self.elapsed.insert(index, value);
                }
            } else if is(&metric::TRAIN_STEP_DURATION)
                && let Some(point) = SeriesPoint::from_point(&point)
                && let Some(index) = self.index(point.time)
                && let Some(increase) = self.series.entry(rank).or_default().observe(&point)
            {
                self.durations.insert((rank, index), increase.sum);
            }
        });
    }

    /// Returns the index of the record with this time. `None` if the log itself has the time.
    fn index(&mut self, time_unix_nanos: UnixNanos) -> Option<u64> {
        let index = (time_unix_nanos.0 / TICK_NANOS).checked_sub(1)?;
        let is_index = index < MAX_RECORDS && time_unix_nanos.0.is_multiple_of(TICK_NANOS);
        self.has_times |= !is_index;
        if is_index {
            self.records = self.records.max(index + 1);
        }
        is_index.then_some(index)
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
            start_unix_nanos: UnixNanos::UNKNOWN,
            offsets: offsets.into(),
            by,
        })
    }

    /// Returns whether the log reports the elapsed time of the run in its second half.
    fn run_time_covers_most(&self) -> bool {
        let last = self.elapsed.last_key_value();
        last.is_some_and(|(index, _)| *index >= self.records / 2)
    }

    /// Spaces records by durations: a record follows the last one of its rank by the duration of all steps since then.
    fn by_durations(&self) -> Vec<u64> {
        let mut at = BTreeMap::new();
        let mut ranks = BTreeMap::<i64, (u64, Option<f64>)>::new();
        for ((rank, index), duration) in &self.durations {
            let (offset, last_step) = ranks.entry(*rank).or_default();
            let step = self.steps.get(&(*rank, *index)).copied();
            let grown = step.zip(*last_step).map_or(1.0, |(step, last)| step - last);
            *last_step = step.or(*last_step);
            *offset = offset.saturating_add(nanos(duration * grown.max(1.0)));
            at.insert(*index, *offset);
        }
        let mut last = 0_u64;
        let offset = |index| {
            let next = last.saturating_add(TICK_NANOS);
            last = at.get(&index).copied().unwrap_or(next).max(last);
            last
        };
        (0..self.records).map(offset).collect()
    }

    /// Spaces records by run time: evenly between two records that report the elapsed time.
    fn by_run_time(&self) -> Option<Vec<u64>> {
        let mut offsets = Vec::new();
        let mut last = 0_u64;
        for (index, elapsed) in &self.elapsed {
            let offset = nanos(*elapsed);
            if offset <= last {
                continue;
            }
            let before = offsets.len() as u64;
            let gaps = index + 1 - before;
            offsets.extend((1..=gaps).map(|gap| last + part(offset - last, gap, gaps)));
            last = offset;
        }
        let rest = self.records.saturating_sub(offsets.len() as u64);
        let is_known = !offsets.is_empty();
        offsets.extend((1..=rest).map(|tick| last.saturating_add(tick.saturating_mul(TICK_NANOS))));
        is_known.then_some(offsets)
    }
}

/// Returns `gap` of `gaps` equal parts.
fn part(all: u64, gap: u64, gaps: u64) -> u64 {
    (u128::from(all) * u128::from(gap) / u128::from(gaps)) as u64
}

/// Converts seconds to nanoseconds, at most about a hundred years.
fn nanos(seconds: f64) -> u64 {
    (seconds.clamp(0.0, 3e9) * 1e9) as u64
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
    fn step_durations_space_records_by_the_number_of_steps_between_them() {
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
    fn durations_after_a_restart_space_records_too() {
        let line = |step: u32| format!("step={step} train.step.duration=6s\n");
        let text = [10, 20, 10, 20].map(line).concat();
        let (_, offsets) = offsets("keyvalue", &text).unwrap();
        assert_eq!(offsets, [6, 66, 72, 132].map(|seconds| seconds * MINUTE / 60));
    }

    #[test]
    fn ranks_that_log_in_turn_share_the_time_axis() {
        let lines = |step: u32| {
            let line = |rank| format!("[rank{rank}]: {{'loss': 2.5, 'epoch': 0.{step}, 'step_time': 60}}\n");
            line(0) + &line(1)
        };
        let (_, offsets) = offsets("hf-trainer", &(lines(1) + &lines(2))).unwrap();
        assert_eq!(offsets, [MINUTE, MINUTE, 2 * MINUTE, 2 * MINUTE]);
    }

    #[test]
    fn total_run_time_spaces_records_evenly() {
        let text = "{'loss': 2.5, 'epoch': 0.5}\n{'loss': 2.25, 'epoch': 1.0}\n{'train_runtime': 180.0, 'epoch': 1.0}\n";
        let (by, offsets) = offsets("hf-trainer", text).unwrap();
        assert_eq!(by, PacedBy::RunTime);
        assert_eq!(offsets, [MINUTE, 2 * MINUTE, 3 * MINUTE]);
    }

    #[test]
    fn total_run_time_takes_precedence_over_durations_of_few_steps() {
        let text = "{'loss': 2.5, 'epoch': 0.5, 'step_time': 1.0}\n{'train_runtime': 120.0, 'epoch': 1.0}\n";
        assert_eq!(
            offsets("hf-trainer", text),
            Some((PacedBy::RunTime, vec![MINUTE, 2 * MINUTE]))
        );
    }

    #[test]
    fn log_with_timestamps_or_without_durations_has_no_pace() {
        assert_eq!(offsets("keyvalue", "step=1 train.loss=2.5\n"), None);
        let timed = "2026-01-02 10:00:00 step=1 train.step.duration=6s\nstep=2 train.step.duration=6s\n";
        assert_eq!(offsets("keyvalue", timed), None);
    }

    #[test]
    fn pace_is_anchored_at_the_known_start_or_at_the_end() {
        let pace = Pace {
            start_unix_nanos: UnixNanos::UNKNOWN,
            offsets: [MINUTE, 3 * MINUTE].into(),
            by: PacedBy::RunTime,
        };
        let times = |pace: Pace| [0, 1, 2].map(|index| pace.time(index));
        let ended = pace.clone().between(None, UnixNanos(10 * MINUTE));
        assert_eq!(
            times(ended),
            [Some(UnixNanos(8 * MINUTE)), Some(UnixNanos(10 * MINUTE)), None]
        );
        let begun = pace.between(Some(UnixNanos(MINUTE)), UnixNanos(10 * MINUTE));
        assert_eq!(
            times(begun),
            [Some(UnixNanos(2 * MINUTE)), Some(UnixNanos(4 * MINUTE)), None]
        );
    }
}
