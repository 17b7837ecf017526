//! The ranks that report steps, as spans or, if a source writes no spans, as points of `train.step.duration`.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use pulsetrain_pipeline::clock::Instant;

use super::{resolution::Resolution, window::Window};
use crate::origin::Origin;

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
    /// Count and sum of the last point.
    last_point: Option<(u64, f64)>,
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
    pub(super) fn note_span(&mut self, origin: &Origin, now: Instant) {
        if let Some(reporter) = self.reporter(origin, now, ReportedBy::Spans) {
            reporter.reported_by = ReportedBy::Spans;
        }
    }

    /// Records a cumulative point of a rank's step durations. Returns the duration of the step, or `None` if the point does not add exactly
    /// one step.
    pub(super) fn note_point(&mut self, origin: &Origin, now: Instant, count: u64, sum: f64) -> Option<f64> {
        let reporter = self.reporter(origin, now, ReportedBy::Points(now))?;
        let last = reporter.last_point.replace((count, sum));
        // The steps before the first point are unknown.
        let last = last.filter(|(last_count, _)| *last_count <= count);
        let (last_count, last_sum) = last.unwrap_or_default();
        let duration = sum - last_sum;
        (count == last_count + 1 && duration >= 0.0 && duration.is_finite()).then_some(duration)
    }

    /// Returns the signal by which a rank reports its steps, or `None` if it reports none.
    pub(super) fn reported_by(&self, origin: &Origin) -> Option<ReportedBy> {
        self.0.get(&Key::of(origin)?).map(|reporter| reporter.reported_by)
    }

    /// Records the times of a step, and returns the resolution of the rank's times in nanoseconds.
    pub(super) fn learn_resolution(&mut self, origin: &Origin, window: Window) -> u64 {
        let Some(reporter) = Key::of(origin).and_then(|key| self.0.get_mut(&key)) else {
            return 0;
        };
        reporter.resolution.observe(window);
        reporter.resolution.nanos()
    }

    /// Returns the lowest rank of the run that reports steps on the host of `origin`.
    pub(super) fn first_rank(&self, origin: &Origin) -> Option<i64> {
        let run = origin.run.as_ref()?;
        self.of_run(run)
            .find(|(_, reporter)| may_share_host(reporter, origin))
            .map(|(key, _)| key.rank)
    }

    /// Returns whether a rank of the run reports steps.
    pub(super) fn reports(&self, origin: &Origin, rank: i64) -> bool {
        let Some(run) = &origin.run else { return false };
        self.0.contains_key(&Key {
            run: Arc::clone(run),
            rank,
        })
    }

    /// Returns whether no other run reports steps on the host of `origin`.
    pub(super) fn is_only_run(&self, origin: &Origin) -> bool {
        self.0
            .iter()
            .all(|(key, reporter)| Some(&key.run) == origin.run.as_ref() || !may_share_host(reporter, origin))
    }

    /// Deletes the ranks that reported nothing for `silence`.
    pub(super) fn expire(&mut self, now: Instant, silence: Duration) {
        self.0
            .retain(|_, reporter| now.saturating_duration_since(reporter.last_seen) <= silence);
    }

    fn reporter(&mut self, origin: &Origin, now: Instant, reported_by: ReportedBy) -> Option<&mut Reporter> {
        let key = Key::of(origin)?;
        if self.0.len() >= MAX_RANKS && !self.0.contains_key(&key) {
            return None;
        }
        let reporter = self.0.entry(key).or_insert_with(|| Reporter {
            host: origin.host.clone(),
            reported_by,
            last_seen: now,
            last_point: None,
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
    fn of(origin: &Origin) -> Option<Self> {
        Some(Self {
            run: origin.run.clone()?,
            rank: origin.rank.unwrap_or_default(),
        })
    }
}

/// Returns whether a rank may be on the host of `origin`; an unknown host may be any.
fn may_share_host(reporter: &Reporter, origin: &Origin) -> bool {
    match (&reporter.host, &origin.host) {
        (Some(one), Some(other)) => one == other,
        _ => true,
    }
}
