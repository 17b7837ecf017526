//! The ranks that report steps, as spans or, if a source writes no spans, as points of `train.step.duration`.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use pulsetrain_pipeline::clock::Instant;
use pulsetrain_run::{RunOrigin, SeriesPoint, SeriesTracker};

use super::{resolution::Resolution, window::Window};

/// The most ranks that are kept.
const MAX_RANKS: usize = 16_384;

/// The ranks that report steps.
#[derive(Debug, Default)]
pub(super) struct StepReporters(BTreeMap<Key, Reporter>);

/// A rank of a run.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    run: Arc<str>,
    rank: i64,
}

#[derive(Debug)]
struct Reporter {
    host: Option<Arc<str>>,
    reported_by: ReportedBy,
    last_seen: Instant,
    durations: SeriesTracker,
    resolution: Resolution,
}

/// The signal by which a rank reports its steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ReportedBy {
    /// By spans; its points are of the same steps.
    Spans,
    /// By points, since this time; spans may still arrive.
    Points(Instant),
}

impl StepReporters {
    /// Records that a rank reported a step as a span.
    pub(super) fn observe_span(&mut self, origin: &RunOrigin, now: Instant) {
        if let Some(reporter) = self.reporter(origin, now, ReportedBy::Spans) {
            reporter.reported_by = ReportedBy::Spans;
        }
    }

    /// Records a point of a rank's step durations. Returns the duration of the step, or `None` if the point does not add exactly
    /// one step.
    pub(super) fn observe_point(
        &mut self,
        origin: &RunOrigin,
        now: Instant,
        point: &SeriesPoint,
    ) -> Option<f64> {
        let reporter = self.reporter(origin, now, ReportedBy::Points(now))?;
        let increase = reporter.durations.observe(point)?;
        let duration = increase.mean().filter(|_| increase.count == 1)?;
        (duration >= 0.0).then_some(duration)
    }

    /// Returns the signal by which a rank reports its steps, or `None` if it reports none.
    pub(super) fn reported_by(&self, origin: &RunOrigin) -> Option<ReportedBy> {
        self.0
            .get(&Key::from_origin(origin)?)
            .map(|reporter| reporter.reported_by)
    }

    /// Records the times of a step, and returns the resolution of the rank's times in nanoseconds.
    pub(super) fn learn_resolution(&mut self, origin: &RunOrigin, window: Window) -> u64 {
        let Some(reporter) = Key::from_origin(origin).and_then(|key| self.0.get_mut(&key)) else {
            return 0;
        };
        reporter.resolution.observe(window);
        reporter.resolution.nanos()
    }

    /// Returns the lowest rank of the run that reports steps on the host of `origin`.
    pub(super) fn first_rank(&self, origin: &RunOrigin) -> Option<i64> {
        let run = origin.run_id.as_ref()?;
        self.of_run(run)
            .find(|(_, reporter)| may_share_host(reporter, origin))
            .map(|(key, _)| key.rank)
    }

    /// Returns whether a rank of the run reports steps.
    pub(super) fn reports(&self, origin: &RunOrigin, rank: i64) -> bool {
        let Some(run) = &origin.run_id else { return false };
        self.0.contains_key(&Key {
            run: Arc::clone(run),
            rank,
        })
    }

    /// Returns whether no other run reports steps on the host of `origin`.
    pub(super) fn is_only_run(&self, origin: &RunOrigin) -> bool {
        self.0.iter().all(|(key, reporter)| {
            Some(&key.run) == origin.run_id.as_ref() || !may_share_host(reporter, origin)
        })
    }

    /// Deletes the ranks that reported nothing for `silence`.
    pub(super) fn expire(&mut self, now: Instant, silence: Duration) {
        self.0
            .retain(|_, reporter| now.saturating_duration_since(reporter.last_seen) <= silence);
    }

    fn reporter(
        &mut self,
        origin: &RunOrigin,
        now: Instant,
        reported_by: ReportedBy,
    ) -> Option<&mut Reporter> {
        let key = Key::from_origin(origin)?;
        if self.0.len() >= MAX_RANKS && !self.0.contains_key(&key) {
            return None;
        }
        let reporter = self.0.entry(key).or_insert_with(|| Reporter {
            host: origin.host.clone(),
            reported_by,
            last_seen: now,
            durations: SeriesTracker::default(),
            resolution: Resolution::default(),
        });
        reporter.last_seen = now;
        Some(reporter)
    }

    fn of_run<'a>(&'a self, run: &Arc<str>) -> impl Iterator<Item = (&'a Key, &'a Reporter)> {
        let run = Arc::clone(run);
        let first = Key {
            run: Arc::clone(&run),
            rank: i64::MIN,
        };
        self.0.range(first..).take_while(move |(key, _)| key.run == run)
    }
}

impl Key {
    fn from_origin(origin: &RunOrigin) -> Option<Self> {
        Some(Self {
            run: origin.run_id.clone()?,
            rank: origin.rank.unwrap_or_default(),
        })
    }
}

/// Returns whether a rank may be on the host of `origin`; an unknown host may be any.
fn may_share_host(reporter: &Reporter, origin: &RunOrigin) -> bool {
    match (&reporter.host, &origin.host) {
        (Some(one), Some(other)) => one == other,
        _ => true,
    }
}
