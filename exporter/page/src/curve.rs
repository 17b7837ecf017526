//! The curves of a run. A curve of a metric and label is the series of the run, or of the lowest rank that
//! reports it.
//!
//! When that rank ends or is silent, the curve passes to the lowest rank that still reports. Earlier points
//! remain, and the browser draws a break and a mark.

use std::{collections::BTreeMap, time::Duration};

use super::{
    metrics::MetricId,
    run::{Member, Observed, RunHistory, RunPoint},
    series::{Bucket, Capacity, Series},
};

/// A rank loses its curves after this time without points while other ranks report.
const SILENT: Duration = Duration::from_secs(60);

/// If the step is unknown, a point of another rank this long after the end of a rank shows that the run
/// continues.
const LATER: Duration = Duration::from_secs(1);

/// The maximum number of earlier ranks of a curve. Points of ranks before them are not shown.
const MAX_FORMER_RANKS: usize = 16;

/// A curve of a run.
#[derive(Debug)]
pub(super) struct Curve<'a> {
    /// The rank, or `None` for the run itself.
    pub(super) rank: Option<i64>,
    pub(super) metric: MetricId,
    /// The series of the rank, which has the last value.
    pub(super) series: &'a Series,
    former: Vec<EarlierRank<'a>>,
    /// The time after which points of `series` belong to the curve, in milliseconds since 1970.
    after_millis: i64,
}

/// The points of a rank that had the curve before.
#[derive(Debug)]
struct EarlierRank<'a> {
    series: &'a Series,
    after_millis: i64,
    until_millis: i64,
    /// The rank that the curve passed to.
    next: Option<i64>,
}

/// The ranks of curves that passed from one rank to another, by metric and label.
#[derive(Debug, Default)]
pub(super) struct CurveOwners(BTreeMap<MetricId, Vec<(Box<str>, Owners)>>);

/// The ranks of one curve.
#[derive(Debug)]
struct Owners {
    /// The current rank of the curve.
    owner: Option<i64>,
    /// The earlier ranks, each with the time of its last point in milliseconds since 1970.
    former: Vec<(Option<i64>, i64)>,
}

impl CurveOwners {
    fn get(&self, metric: MetricId, label: &str) -> Option<&Owners> {
        let of_metric = self.0.get(&metric)?;
        let found = of_metric.iter().find(|(known, _)| **known == *label);
        found.map(|(_, owners)| owners)
    }

    fn pass(&mut self, metric: MetricId, label: &str, from: (Option<i64>, i64), to: Option<i64>) {
        let of_metric = self.0.entry(metric).or_default();
        let place = of_metric.iter().position(|(known, _)| **known == *label);
        let place = place.unwrap_or_else(|| {
            let owners = Owners {
                owner: to,
                former: Vec::new(),
            };
            of_metric.push((label.into(), owners));
            of_metric.len() - 1
        });
        let owners = &mut of_metric[place].1;
        owners.owner = to;
        owners.former.push(from);
        if owners.former.len() > MAX_FORMER_RANKS {
            owners.former.remove(0);
        }
    }
}

impl Curve<'_> {
    /// Returns the number of points that may be merged, and all points in order of time.
    pub(super) fn points(&self) -> (usize, impl Iterator<Item = &Bucket> + Clone) {
        let former = self.former.iter().flat_map(|part| {
            let points = part.series.points().1;
            points.filter(|point| {
                point.time_millis > part.after_millis && point.time_millis <= part.until_millis
            })
        });
        let is_own = |point: &&Bucket| point.time_millis > self.after_millis;
        let (merged, own) = self.series.points();
        let merged = former.clone().count() + own.clone().take(merged).filter(is_own).count();
        let after_millis = self.after_millis;
        (
            merged,
            former.chain(own.filter(move |point| point.time_millis > after_millis)),
        )
    }

    /// Returns each change of rank: the time of the last point before it in milliseconds since 1970, and the
    /// next rank.
    pub(super) fn changes(&self) -> impl Iterator<Item = (i64, Option<i64>)> {
        self.former.iter().map(|part| (part.until_millis, part.next))
    }
}

impl Member {
    /// Returns the series of a metric and label.
    fn series(&self, metric: MetricId, label: &str) -> Option<&Series> {
        let mut series = self.metrics.get(&metric)?.iter();
        series.find(|series| *series.label == *label)
    }

    /// Returns whether the rank ended the series or is silent, before this point of another rank.
    fn has_left(&self, series: &Series, point: &RunPoint<'_>, step: Option<i64>) -> bool {
        let is_later = match (step, series.last_step()) {
            (Some(step), Some(last)) => step > last,
            _ => point.time_nanos >= series.latest_nanos.saturating_add(LATER),
        };
        (series.is_ended && is_later) || point.time_nanos > self.last_nanos.saturating_add(SILENT)
    }
}

impl RunHistory {
    /// Returns the curves of the run.
    pub(super) fn curves(&self) -> Vec<Curve<'_>> {
        let mut curves: BTreeMap<(MetricId, &str), (Option<i64>, &Series)> = BTreeMap::new();
        for (rank, member) in &self.members {
            for (metric, series) in &member.metrics {
                for series in series {
                    curves.entry((*metric, &series.label)).or_insert((*rank, series));
                }
            }
        }
        let flat = curves.into_iter().map(|((metric, label), (rank, series))| {
            self.passed_curve(metric, label).unwrap_or(Curve {
                rank,
                metric,
                series,
                former: Vec::new(),
                after_millis: i64::MIN,
            })
        });
        flat.collect()
    }

    /// Returns the first curve whose metric is wanted.
    pub(super) fn first_curve(&self, is_wanted: impl Fn(MetricId) -> bool) -> Option<Curve<'_>> {
        self.curves().into_iter().find(|curve| is_wanted(curve.metric))
    }

    fn passed_curve(&self, metric: MetricId, label: &str) -> Option<Curve<'_>> {
        let owners = self.passed.get(metric, label)?;
        let series_of = |rank: &Option<i64>| self.members.get(rank)?.series(metric, label);
        let (mut former, mut after_millis) = (Vec::new(), i64::MIN);
        for (place, (rank, until_millis)) in owners.former.iter().enumerate() {
            let next = owners
                .former
                .get(place + 1)
                .map_or(owners.owner, |(next, _)| *next);
            former.push(EarlierRank {
                series: series_of(rank)?,
                after_millis,
                until_millis: *until_millis,
                next,
            });
            after_millis = *until_millis;
        }
        Some(Curve {
            rank: owners.owner,
            metric,
            series: series_of(&owners.owner)?,
            former,
            after_millis,
        })
    }

    /// Passes the curve to the rank of this point. This happens if the current rank has ended or is silent
    /// and no lower rank reports, or if the point's rank had the curve before.
    pub(super) fn pass_curve(&mut self, point: &RunPoint<'_>, step: Option<i64>, capacity: Capacity) {
        let is_lowest = self.members.keys().next() == Some(&point.rank);
        if point.value == Observed::End || (is_lowest && self.passed.0.is_empty()) {
            return;
        }
        let passed = self
            .passed
            .get(point.metric, point.label)
            .map(|owners| owners.owner);
        let mut members = self.members.iter().filter_map(|(rank, member)| {
            let series = member.series(point.metric, point.label)?;
            Some((*rank, member, series))
        });
        let lowest = |(rank, ..): &(Option<i64>, &Member, &Series)| passed.is_none_or(|owner| owner == *rank);
        let Some((owner, member, series)) = members.clone().find(lowest) else {
            return;
        };
        if owner == point.rank {
            return;
        }
        let is_due = if point.rank < owner {
            true
        } else {
            let lower = |(rank, ..): &(Option<i64>, &Member, &Series)| *rank < point.rank;
            member.has_left(series, point, step)
                && members
                    .by_ref()
                    .take_while(lower)
                    .all(|(_, member, series)| member.has_left(series, point, step))
        };
        let until_millis = series.last_millis();
        if !is_due || until_millis >= point.time_nanos.as_millis() as i64 {
            return;
        }
        self.passed
            .pass(point.metric, point.label, (owner, until_millis), point.rank);
        let of_metric = self.member(point.rank).metrics.get_mut(&point.metric);
        for series in of_metric.into_iter().flatten() {
            if *series.label == *point.label {
                series.resize(capacity);
            }
        }
        self.shape += 1;
    }
}
