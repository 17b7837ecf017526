//! Decodes a batch of metrics: points of one resource and one time are one record of the trainer.

use pulsetrain_otlp::{
    WireError,
    view::Metric,
    walk::{self, AnyPoint, InResource, PointKind, PointValue},
};
use pulsetrain_pipeline::{Batch, clock::Instant};
use pulsetrain_run::{Increase, IncreaseKind, SeriesKey, SeriesPoint};

use super::{Assembler, KnownResource, resource_bytes, series};
use crate::{
    signals::PointFacts,
    steps::{
        RankId,
        group::Groups,
        interest::{Interest, Role},
        pending::RankSteps,
    },
};

/// Called with the points that derivations request, with one bit for each derivation.
pub(crate) type OnPoint<'a> = &'a mut dyn FnMut(u32, &PointFacts<'_>);

/// Called when a resource sends a derived metric itself.
pub(crate) type OnSuppressed<'a> = &'a mut dyn FnMut(&[u8], &'static pulsetrain_semconv::Metric);

impl Assembler {
    /// Decodes a batch of metrics.
    ///
    /// # Errors
    /// Bytes that are not metrics. The points before them are added.
    pub(crate) fn read_points(
        &mut self,
        batch: &Batch,
        now: Instant,
        on_point: OnPoint<'_>,
        on_suppressed: OnSuppressed<'_>,
    ) -> Result<(), WireError> {
        for resource in walk::metrics(batch.bytes()) {
            let resource = resource?;
            let Some(known) = self.known_resource(resource_bytes(resource.bytes), now) else {
                continue;
            };
            let read = self.read_resource(&resource, &known, on_point, on_suppressed);
            if let Some(rank) = known.rank {
                self.add_groups(rank, batch, now);
            }
            read?;
        }
        Ok(())
    }

    fn read_resource<'a>(
        &mut self,
        of_resource: &InResource<'a, Metric<'a>>,
        known: &KnownResource,
        on_point: OnPoint<'_>,
        on_suppressed: OnSuppressed<'_>,
    ) -> Result<(), WireError> {
        let (resource, rank) = (resource_bytes(of_resource.bytes), known.rank);
        for metric in of_resource.items() {
            let metric = metric?;
            let Some(interest) = self.interests.find(metric.name) else {
                continue;
            };
            if interest.is_derived {
                // Signals derived from a rank have the first resource of the rank.
                if let Some(rank) = rank.and_then(|rank| self.ranks.get_mut(&rank)) {
                    if rank.suppress(interest.metric) {
                        on_suppressed(&rank.info.resource, interest.metric);
                    }
                } else {
                    on_suppressed(resource, interest.metric);
                }
            }
            self.groups.rewind();
            metric.each_point(|point| {
                let Some(series) = series_point(&point) else {
                    return;
                };
                let is_end = point.is_end();
                if !is_end && let Some(rank) = rank {
                    self.take(rank, interest, &point, &series);
                }
                self.observe_time(series.time);
                if interest.wanted_by != 0 {
                    let rank = rank.and_then(|rank| self.ranks.get(&rank));
                    let facts = PointFacts {
                        metric: interest.metric,
                        origin: &known.origin,
                        resource,
                        rank: rank.map(|rank| &rank.info),
                        attributes: point.attributes(),
                        time: series.time,
                        value: series.sum,
                        series,
                        is_end,
                    };
                    on_point(interest.wanted_by, &facts);
                }
            })?;
        }
        Ok(())
    }

    /// Adds a point of a rank to its group.
    fn take(&mut self, id: RankId, interest: Interest, point: &AnyPoint<'_, '_>, series: &SeriesPoint) {
        let Some(rank) = self.ranks.get_mut(&id) else {
            return;
        };
        let value = series.sum;
        match interest.role {
            Role::Other => {}
            Role::Constant => {
                let run = std::sync::Arc::clone(&rank.info.run);
                let part = interest.series.with_attributes(point.attributes());
                self.constants_of(&run)
                    .record(interest.metric, part.unwrap_or(interest.series), value);
            }
            Role::Number if point.attributes().is_empty() && value.is_finite() => {
                self.groups.at(series.time).number = Some(value as i64);
            }
            Role::Number => {}
            Role::Duration | Role::Phase(_) | Role::Kept(_) => {
                if let Some(key) = series::of_rank(interest.series, point.attributes()) {
                    let is_gauge = point.kind == PointKind::Gauge;
                    add_to_group(&mut self.groups, rank, (interest.role, is_gauge), key, series);
                }
            }
        }
    }

    /// Adds the decoded groups to the steps of a rank.
    fn add_groups(&mut self, id: RankId, batch: &Batch, now: Instant) {
        let deadline = self.deadline(now);
        let mut groups = std::mem::take(&mut self.groups);
        for mut group in groups.drain() {
            group.complete();
            if self
                .ranks
                .get(&id)
                .is_some_and(|rank| rank.points_repeat_a_step(&group))
            {
                self.close_before_restart(id);
            }
            let Some(rank) = self.ranks.get_mut(&id) else {
                break;
            };
            let opened = rank.add_points(&group, batch, deadline);
            self.opened(id, opened, deadline);
        }
        self.groups = groups;
    }
}

/// Adds a point of a step to the group of its time.
fn add_to_group(
    groups: &mut Groups,
    rank: &mut RankSteps,
    (role, is_gauge): (Role, bool),
    key: SeriesKey,
    point: &SeriesPoint,
) {
    match (role, point.count) {
        (Role::Duration | Role::Phase(_), Some(count)) => {
            let increase = rank.series.observe(key, point);
            let increase = increase.filter(Increase::is_recent);
            let Some(secs) = increase.and_then(|increase| increase.mean()) else {
                return;
            };
            let group = groups.at(point.time);
            match role {
                Role::Phase(phase) => group.phases.observe(phase, secs),
                _ => {
                    group.duration_secs = Some(secs).filter(|secs| *secs >= 0.0);
                    group.is_first |= count == 1 && !point.is_delta;
                }
            }
        }
        (Role::Kept(place), None) if !is_gauge && is_counter(place) => {
            let Some(increase) = rank.series.observe(key, point) else {
                return;
            };
            let group = groups.at(point.time);
            if increase.kind == IncreaseKind::First {
                group.first_sums.push((place, increase.sum));
            } else {
                group.values.add(place, increase.sum);
            }
        }
        (Role::Kept(place), None) => groups.at(point.time).values.set(place, point.sum),
        _ => {}
    }
}

fn is_counter(place: usize) -> bool {
    crate::steps::values::KEPT[place].instrument == pulsetrain_semconv::Instrument::Counter
}

/// Returns the value of a point as one of a series, also for a gauge. `None` for a point without a value that is no end.
fn series_point(point: &AnyPoint<'_, '_>) -> Option<SeriesPoint> {
    let (count, sum) = match point.value() {
        Some(PointValue::Number(number)) => (None, number.as_f64()),
        Some(PointValue::Distribution(distribution)) => {
            (Some(distribution.count), distribution.sum.unwrap_or(f64::NAN))
        }
        None if point.is_end() => (None, f64::NAN),
        None => return None,
    };
    Some(SeriesPoint {
        start: point.start(),
        time: point.time(),
        is_delta: point.kind.is_delta(),
        count,
        sum,
    })
}
