//! Decodes a batch of metrics: points of one resource and one time are one record of the trainer.

use pulsetrain_otlp::{
    UnixNanos, WireError,
    view::{
        HistogramPoint, KeyValue, Message, Metric, MetricData, MetricsData, NumberPoint, Repeated, Resource,
        ResourceMetrics, Temporality,
    },
};
use pulsetrain_pipeline::{Batch, clock::Instant};

use super::{Assembler, resource_bytes, series};
use crate::{
    origin::Origin,
    signals::PointFacts,
    steps::{
        RankId,
        group::Groups,
        growth::{Grown, SeriesKey},
        interest::{Interest, Role},
        pending::RankSteps,
    },
};

/// Called with the points that derivations request, with one bit for each derivation.
pub(crate) type OnPoint<'a> = &'a mut dyn FnMut(u32, &PointFacts<'_>);

/// Called when a resource sends a derived metric itself.
pub(crate) type OnSuppressed<'a> = &'a mut dyn FnMut(&[u8], &'static pulsetrain_semconv::Metric);

/// One point of a gauge, a sum or a histogram.
#[derive(Clone, Copy)]
struct Point<'a> {
    attributes: Repeated<'a, KeyValue<'a>>,
    start_unix_nanos: UnixNanos,
    time_unix_nanos: UnixNanos,
    value: f64,
    count: Option<u64>,
    kind: Kind,
    is_end: bool,
}

/// The relation between consecutive points.
#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Last,
    Cumulative,
    Delta,
}

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
        let mut resources = MetricsData::decode(batch.bytes())?.resource_metrics.iter();
        while let Some(resource_message) = resources.next_bytes() {
            let resource_message = resource_message?;
            let resource = resource_bytes(resource_message);
            let rank = self.rank_of(resource, now);
            let read = self.read_resource(resource_message, resource, rank, on_point, on_suppressed);
            if let Some(rank) = rank {
                self.add_groups(rank, batch, now);
            }
            read?;
        }
        Ok(())
    }

    fn read_resource(
        &mut self,
        resource_message: &[u8],
        resource: &[u8],
        rank: Option<RankId>,
        on_point: OnPoint<'_>,
        on_suppressed: OnSuppressed<'_>,
    ) -> Result<(), WireError> {
        // Decoded for the first point that needs it, because most batches have none.
        let mut origin = None;
        for scope in ResourceMetrics::decode(resource_message)?.scope_metrics {
            for metric in scope?.metrics {
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
                for_each(&metric, |point| {
                    if !point.is_end
                        && let Some(rank) = rank
                    {
                        self.take(rank, interest, &point);
                    }
                    self.note_time(point.time_unix_nanos);
                    if interest.wanted_by != 0 {
                        let origin = origin.get_or_insert_with(|| origin_of(resource));
                        let rank = rank.and_then(|rank| self.ranks.get(&rank));
                        let facts = PointFacts {
                            rank: rank.map(|rank| &rank.info),
                            ..point.facts(interest.metric, origin, resource)
                        };
                        on_point(interest.wanted_by, &facts);
                    }
                })?;
            }
        }
        Ok(())
    }

    /// Adds a point of a rank to its group.
    fn take(&mut self, id: RankId, interest: Interest, point: &Point<'_>) {
        let Some(rank) = self.ranks.get_mut(&id) else {
            return;
        };
        match interest.role {
            Role::Other => {}
            Role::Constant => {
                let run = std::sync::Arc::clone(&rank.info.run);
                let part = series::of_any(point.attributes);
                self.constants_of(&run).note(interest.metric, part, point.value);
            }
            Role::Number if point.attributes.is_empty() && point.value.is_finite() => {
                self.groups.at(point.time_unix_nanos).number = Some(point.value as i64);
            }
            Role::Number => {}
            Role::Duration | Role::Phase(_) | Role::Kept(_) => {
                if let Some(attributes) = series::of_rank(point.attributes) {
                    let key = SeriesKey {
                        metric: interest.metric.ordinal,
                        attributes,
                    };
                    add_to_group(&mut self.groups, rank, interest.role, key, point);
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
fn add_to_group(groups: &mut Groups, rank: &mut RankSteps, role: Role, key: SeriesKey, point: &Point<'_>) {
    match (role, point.count) {
        (Role::Duration | Role::Phase(_), Some(count)) => {
            let Some(secs) = observed(rank, key, point, count) else {
                return;
            };
            let group = groups.at(point.time_unix_nanos);
            match role {
                Role::Phase(phase) => group.phases.observe(phase, secs),
                _ => {
                    group.duration_secs = Some(secs).filter(|secs| *secs >= 0.0);
                    group.is_first |= count == 1;
                }
            }
        }
        (Role::Kept(place), None) => match (point.kind, is_counter(place)) {
            (Kind::Cumulative, true) => match rank.growth.of_sum(key, point.value, point.start_unix_nanos) {
                Grown::By(growth) => groups.at(point.time_unix_nanos).values.add(place, growth),
                Grown::First(total) => {
                    groups.at(point.time_unix_nanos).first_sums.push((place, total));
                }
            },
            (Kind::Delta, true) => groups.at(point.time_unix_nanos).values.add(place, point.value),
            _ => groups.at(point.time_unix_nanos).values.set(place, point.value),
        },
        _ => {}
    }
}

/// Returns the observation of a histogram since its last point, or the mean of several.
fn observed(rank: &mut RankSteps, key: SeriesKey, point: &Point<'_>, count: u64) -> Option<f64> {
    match point.kind {
        Kind::Delta => (count > 0).then(|| point.value / count as f64),
        _ => rank
            .growth
            .of_histogram(key, (count, point.value), point.start_unix_nanos),
    }
}

fn is_counter(place: usize) -> bool {
    crate::steps::values::KEPT[place].instrument == pulsetrain_semconv::Instrument::Counter
}

fn origin_of(resource: &[u8]) -> Origin {
    let attributes = Resource::decode(resource).map(|resource| resource.attributes);
    Origin::of(attributes.unwrap_or_default())
}

impl Point<'_> {
    fn facts<'b>(
        &'b self,
        metric: &'static pulsetrain_semconv::Metric,
        origin: &'b Origin,
        resource: &'b [u8],
    ) -> PointFacts<'b> {
        PointFacts {
            metric,
            origin,
            resource,
            rank: None,
            attributes: self.attributes,
            time: self.time_unix_nanos,
            value: self.value,
            count: self.count,
            is_delta: self.kind == Kind::Delta,
            is_end: self.is_end,
        }
    }
}

/// Calls `each` for the points of a metric.
fn for_each<'a>(metric: &Metric<'a>, mut each: impl FnMut(Point<'a>)) -> Result<(), WireError> {
    match metric.data() {
        Some(MetricData::Gauge(gauge)) => numbers(gauge.data_points, Kind::Last, &mut each),
        Some(MetricData::Sum(sum)) => numbers(sum.data_points, kind(sum.aggregation_temporality), &mut each),
        Some(MetricData::Histogram(histogram)) => {
            let kind = kind(histogram.aggregation_temporality);
            for point in histogram.data_points {
                each(of_histogram(&point?, kind));
            }
            Ok(())
        }
        _ => Ok(()),
    }
}

fn numbers<'a>(
    points: Repeated<'a, NumberPoint<'a>>,
    kind: Kind,
    each: &mut impl FnMut(Point<'a>),
) -> Result<(), WireError> {
    for point in points {
        let point = point?;
        let is_end = point.flags & NumberPoint::NO_RECORDED_VALUE != 0;
        let value = point.value().map(|value| value.as_f64());
        if value.is_none() && !is_end {
            continue;
        }
        each(Point {
            attributes: point.attributes,
            start_unix_nanos: UnixNanos(point.start_time_unix_nano),
            time_unix_nanos: UnixNanos(point.time_unix_nano),
            value: value.unwrap_or(f64::NAN),
            count: None,
            kind,
            is_end,
        });
    }
    Ok(())
}

fn of_histogram<'a>(point: &HistogramPoint<'a>, kind: Kind) -> Point<'a> {
    Point {
        attributes: point.attributes,
        start_unix_nanos: UnixNanos(point.start_time_unix_nano),
        time_unix_nanos: UnixNanos(point.time_unix_nano),
        value: point.sum.unwrap_or(f64::NAN),
        count: Some(point.count),
        kind,
        is_end: point.flags & NumberPoint::NO_RECORDED_VALUE != 0,
    }
}

fn kind(temporality: i32) -> Kind {
    match Temporality::from(temporality) {
        Temporality::Delta => Kind::Delta,
        _ => Kind::Cumulative,
    }
}
