//! The history of one run: its ranks with their series, its last steps and its events.

use std::collections::BTreeMap;

use pulsetrain_otlp::UnixNanos;
use pulsetrain_run::{SeriesPoint, StepTimes};

use super::{
    PageConfig, PageRejection,
    curve::CurveOwners,
    events::EventLog,
    metrics::{Definition, MetricId, MetricKind},
    series::{Bucket, Capacity, NO_STEP, Series},
    steps::StepWindow,
};

/// The number of points of a rank's series that is not a curve of the run.
const RANK_POINTS: usize = 96;

/// The number of stored step times, which give the step of a point without a step.
const REMEMBERED_STEPS: usize = 4_096;

/// The history of a run.
#[derive(Debug, Default)]
pub(super) struct RunHistory {
    pub(super) id: Box<str>,
    pub(super) about: RunDescription,
    /// The ranks. `None` is the run itself: values across ranks, and values without a rank.
    pub(super) members: BTreeMap<Option<i64>, Member>,
    pub(super) steps: StepWindow,
    pub(super) events: EventLog,
    pub(super) clock: StepClock,
    pub(super) first_nanos: UnixNanos,
    pub(super) last_nanos: UnixNanos,
    pub(super) last_step_nanos: UnixNanos,
    pub(super) step: Option<i64>,
    /// The time of the last telemetry of the run, in milliseconds since 1970.
    pub(super) arrived_millis: i64,
    /// Changes with each new series and each change of a curve. Browsers then request a snapshot of the run.
    pub(super) shape: u64,
    /// Changes with each update.
    pub(super) revision: u64,
    pub(super) streamed_revision: u64,
    /// The curves that have passed from one rank to another.
    pub(super) passed: CurveOwners,
    series: usize,
    next_id: u32,
    /// The number of times that the capacity of its series was halved to save memory.
    pub(super) thinned: u32,
}

/// The description of a run.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct RunDescription {
    pub(super) name: Box<str>,
    pub(super) service: Box<str>,
    pub(super) framework: Box<str>,
    pub(super) world_size: Option<i64>,
    pub(super) attempt: i64,
}

/// One rank of a run.
#[derive(Debug, Default)]
pub(super) struct Member {
    pub(super) host: Box<str>,
    pub(super) local_rank: Option<i64>,
    pub(super) step: Option<i64>,
    pub(super) last_nanos: UnixNanos,
    /// Whether it ended its series.
    pub(super) is_ended: bool,
    pub(super) metrics: BTreeMap<MetricId, Vec<Series>>,
    /// The `last_nanos` and `is_ended` that the stream has sent.
    pub(super) streamed: (UnixNanos, bool),
}

/// A point of a run.
#[derive(Clone, Copy, Debug)]
pub(super) struct RunPoint<'a> {
    pub(super) rank: Option<i64>,
    pub(super) metric: MetricId,
    pub(super) label: &'a str,
    pub(super) time_nanos: UnixNanos,
    pub(super) step: Option<i64>,
    /// The attempt of its sender, or `None` for that of the run.
    pub(super) attempt: Option<i64>,
    pub(super) value: Observed,
}

/// The value of a point.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Observed {
    /// A value at a time.
    Value(f64),
    /// A point of a sum or a distribution, which counts as an increase.
    Point(SeriesPoint),
    /// The end of its series.
    End,
}

/// The end times of the steps of all ranks.
#[derive(Debug)]
pub(super) struct StepClock(StepTimes);

impl Default for StepClock {
    fn default() -> Self {
        Self(StepTimes::new(REMEMBERED_STEPS))
    }
}

impl StepClock {
    /// Records the end of a step on a rank. Other ranks end it at nearly the same time, which adds nothing.
    pub(super) fn record(&mut self, time_nanos: UnixNanos, step: i64) {
        if self.at(time_nanos) != Some(step) {
            self.0.record(time_nanos, step);
        }
    }

    /// Returns the last step that had ended by a time.
    pub(super) fn at(&self, time_nanos: UnixNanos) -> Option<i64> {
        self.0.at(time_nanos)
    }
}

impl RunHistory {
    pub(super) fn new(id: &str) -> Self {
        Self {
            id: id.into(),
            ..Self::default()
        }
    }

    /// Returns the rank, and creates it if it is new.
    pub(super) fn member(&mut self, rank: Option<i64>) -> &mut Member {
        self.members.entry(rank).or_default()
    }

    /// Adds a point to its series. Returns the value of the curve.
    ///
    /// # Errors
    /// The point is late, or its series is beyond the limit.
    pub(super) fn add(
        &mut self,
        point: &RunPoint<'_>,
        definition: &Definition,
        config: &PageConfig,
    ) -> Result<Option<f64>, PageRejection> {
        let attempt = point.attempt.unwrap_or(self.about.attempt);
        let attempt = attempt.clamp(0, i64::from(u16::MAX)) as u16;
        let step = point.step.or_else(|| self.clock.at(point.time_nanos));
        let Some(series) = self.series(point, definition, config) else {
            return if point.value == Observed::End {
                Ok(None)
            } else {
                Err(PageRejection::SeriesOfRun)
            };
        };
        if series.is_late(point.time_nanos, point.value) {
            return Err(PageRejection::Late);
        }
        let capacity = self.curve_capacity(definition, config);
        self.pass_curve(point, step, capacity);
        let Some(series) = self.series(point, definition, config) else {
            return Ok(None);
        };
        let value = series.observe(point.value, point.time_nanos, definition.kind);
        if let Some(value) = value {
            let step = step.and_then(|step| u32::try_from(step).ok()).unwrap_or(NO_STEP);
            series.push(Bucket::new(point.time_nanos, step, value, attempt));
        }
        let member = self.member(point.rank);
        member.is_ended = point.value == Observed::End;
        if !member.is_ended {
            member.last_nanos = member.last_nanos.max(point.time_nanos);
            self.last_nanos = self.last_nanos.max(point.time_nanos);
            if !self.first_nanos.is_known() || point.time_nanos < self.first_nanos {
                self.first_nanos = point.time_nanos;
            }
        }
        self.revision += 1;
        Ok(value)
    }

    /// Returns whether the run is active and has a rank on that host.
    pub(super) fn is_on(&self, host: &str) -> bool {
        !self.is_ended() && self.members.values().any(|member| *member.host == *host)
    }

    /// Returns the number of ranks.
    pub(super) fn ranks(&self) -> usize {
        self.members.len() - usize::from(self.members.contains_key(&None))
    }

    /// Returns every series of every rank.
    pub(super) fn every_series(&mut self) -> impl Iterator<Item = &mut Series> {
        self.members
            .values_mut()
            .flat_map(|member| member.metrics.values_mut())
            .flatten()
    }

    /// Returns every series of every rank, with its metric.
    pub(super) fn series_by_metric(&mut self) -> impl Iterator<Item = (MetricId, &mut Series)> {
        let metrics = self
            .members
            .values_mut()
            .flat_map(|member| member.metrics.iter_mut());
        metrics.flat_map(|(metric, series)| series.iter_mut().map(|series| (*metric, series)))
    }

    /// Returns whether every rank that reported has ended its series.
    pub(super) fn is_ended(&self) -> bool {
        !self.members.is_empty() && self.members.values().all(|member| member.is_ended)
    }

    pub(super) fn bytes(&self) -> usize {
        let series = self
            .members
            .values()
            .flat_map(|member| member.metrics.values())
            .flatten();
        let members = self.members.values();
        members
            .map(|member| size_of::<Member>() + member.host.len())
            .sum::<usize>()
            + series.map(Series::bytes).sum::<usize>()
            + self.steps.bytes()
            + self.events.bytes()
    }

    /// Returns the maximum number of stored steps.
    pub(super) fn max_steps(&self, config: &PageConfig) -> usize {
        (config.steps >> self.thinned).max(8).min(config.steps)
    }

    /// Returns the maximum number of stored events.
    pub(super) fn max_events(&self, config: &PageConfig) -> usize {
        (config.events >> self.thinned).max(32).min(config.events)
    }

    /// Halves the capacity of its series, and evicts half of its steps and events.
    pub(super) fn thin(&mut self, config: &PageConfig) {
        self.thinned += 1;
        for series in self.every_series() {
            let capacity = series.capacity();
            series.resize(Capacity {
                buckets: capacity.buckets / 2,
                newest: (capacity.newest / 2).max(1),
            });
        }
        self.steps.shrink(self.max_steps(config));
        self.events.shrink(self.max_events(config));
        self.shape += 1;
    }

    /// Returns the series of a point, and creates it within the limit.
    fn series(
        &mut self,
        point: &RunPoint<'_>,
        definition: &Definition,
        config: &PageConfig,
    ) -> Option<&mut Series> {
        let is_known = self
            .members
            .get(&point.rank)
            .and_then(|member| member.metrics.get(&point.metric))
            .and_then(|series| series.iter().position(|series| *series.label == *point.label));
        if let Some(place) = is_known {
            return self
                .member(point.rank)
                .metrics
                .get_mut(&point.metric)?
                .get_mut(place);
        }
        if self.series >= config.series_per_run || point.value == Observed::End {
            return None;
        }
        let capacity = self.capacity_for(point, definition, config);
        let (id, label) = (self.next_id, point.label);
        self.next_id += 1;
        self.series += 1;
        let of_metric = self.member(point.rank).metrics.entry(point.metric).or_default();
        of_metric.push(Series::new(id, label, capacity));
        of_metric.last_mut()
    }

    /// Returns the capacity of a new series. If it replaces a higher rank's series as the curve of the run,
    /// that one shrinks.
    fn capacity_for(
        &mut self,
        point: &RunPoint<'_>,
        definition: &Definition,
        config: &PageConfig,
    ) -> Capacity {
        let of_rank = if definition.is_rank_column {
            Capacity::for_points(RANK_POINTS)
        } else {
            Capacity::LATEST
        };
        let has_it = |member: &&mut Member| {
            let series = member.metrics.get(&point.metric);
            series.is_some_and(|series| series.iter().any(|series| *series.label == *point.label))
        };
        if self
            .members
            .range_mut(..point.rank)
            .map(|(_, member)| member)
            .any(|member| has_it(&member))
        {
            return of_rank;
        }
        for (_, member) in self.members.range_mut(point.rank..) {
            let series = member.metrics.get_mut(&point.metric).into_iter().flatten();
            for series in series.filter(|series| *series.label == *point.label) {
                series.resize(of_rank);
            }
        }
        self.shape += 1;
        self.curve_capacity(definition, config)
    }

    /// Returns the capacity of a curve.
    fn curve_capacity(&self, definition: &Definition, config: &PageConfig) -> Capacity {
        let points = if definition.kind == MetricKind::State {
            RANK_POINTS
        } else {
            config.points
        };
        Capacity::for_points((points >> self.thinned).max(RANK_POINTS))
    }
}
