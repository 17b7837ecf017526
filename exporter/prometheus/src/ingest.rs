//! Decodes a batch for a receiver, the store or a history: resource by resource, metric by metric, point by
//! point.
//!
//! Points are decoded and labelled without a lock. `families` finds the family of a metric, `series` writes
//! labels, and `pending` buffers a few hundred points before they are added to their family.

mod families;
mod pending;
mod series;

use std::{sync::Arc, time::Duration};

use pulsetrain_otlp::{
    UnixNanos, WireError,
    view::{Metric, Temporality},
    walk::{self, AnyPoint, InResource, InScope, PointData},
};
use pulsetrain_pipeline::clock;

use self::{
    families::Families,
    pending::{Pending, PendingPoint},
    series::ScopeLabels,
};
use super::{
    PrometheusStore, Rejection,
    labels::Labeller,
    points::{self, PointError},
    store::{
        bounds::Bounds,
        budget::Budget,
        family::{Change, Family, FamilyKind, Point},
        target::ScrapeTarget,
        value::SampleValue,
    },
};

/// The maximum length of a series' labels in bytes.
pub(super) const MAX_LABEL_BYTES: usize = 16 << 10;
/// The tolerance for clock skew, one minute. A point further in the future gets its arrival time, because no
/// other point of its series would count until then.
const FUTURE: Duration = Duration::from_secs(60);
/// The number of bucket layouts that are cached and shared by histograms.
const REMEMBERED_BOUNDS: usize = 64;
/// The maximum number of bounds in a shared layout.
const MAX_SHARED_BOUNDS: usize = 256;

/// The number of rejected points, in the order of [`Rejection::ALL`].
pub(super) type RejectedPoints = [u64; Rejection::ALL.len()];

/// Receives the points of a batch, family by family.
pub(super) trait PointReceiver {
    /// Returns the latest credible time of a point, where `now` is the time of the machine.
    fn latest(now_unix_nanos: UnixNanos) -> UnixNanos;

    /// Records points of one family. Returns one rejection for each rejected point.
    fn record<'p>(
        &mut self,
        place: &PointContext<'_>,
        points: impl Iterator<Item = Point<'p>>,
    ) -> Vec<Rejection>;
}

/// The receiver that keeps the last value of every series: the store.
pub(super) struct LastValues(PrometheusStore);

impl PointReceiver for LastValues {
    /// After a point of the far future no other could follow.
    fn latest(now_unix_nanos: UnixNanos) -> UnixNanos {
        now_unix_nanos.saturating_add(FUTURE)
    }

    fn record<'p>(
        &mut self,
        place: &PointContext<'_>,
        points: impl Iterator<Item = Point<'p>>,
    ) -> Vec<Rejection> {
        let mut table = place.family.lock();
        let kind = place.family.head.kind;
        points
            .filter_map(|point| table.record(point, kind, self.0.limit()).err())
            .collect()
    }
}

/// Decodes OTLP.
pub(super) struct Ingest<R = LastValues> {
    /// Has the names of families and the labels of targets. With [`LastValues`] it also has the values.
    store: PrometheusStore,
    receiver: R,
    labeller: Labeller,
    families: Families,
    bounds: Vec<Arc<Bounds>>,
    pending: Pending,
    /// The labels of the current point.
    labels: String,
    rejected: RejectedPoints,
    /// The number of points of the batch with a time in the future.
    ahead: u64,
    now_unix_nanos: UnixNanos,
    now_seconds: u32,
}

/// The family, scope and target of points.
pub(super) struct PointContext<'a> {
    pub(super) family: &'a Arc<Family>,
    source: u16,
    seen_seconds: u32,
    target: &'a Arc<ScrapeTarget>,
    scope: &'a ScopeLabels,
    /// Whether the metric is one of the program itself.
    is_internal: bool,
}

impl Ingest {
    /// Returns a decoder that records the last value of every series in `store`.
    pub(super) fn new(store: PrometheusStore) -> Self {
        Self::into_receiver(store.clone(), LastValues(store))
    }
}

impl<R: PointReceiver> Ingest<R> {
    /// Returns a decoder that passes points to `receiver`, with the names and labels of `store`.
    pub(super) fn into_receiver(store: PrometheusStore, receiver: R) -> Self {
        Self {
            labeller: Labeller::new(store.config().translation),
            store,
            receiver,
            families: Families::default(),
            bounds: Vec::new(),
            pending: Pending::default(),
            labels: String::new(),
            rejected: RejectedPoints::default(),
            ahead: 0,
            now_unix_nanos: UnixNanos::UNKNOWN,
            now_seconds: 0,
        }
    }

    /// Adds a batch of metrics. Returns the number of rejected points.
    pub(super) fn batch(&mut self, bytes: &[u8]) -> Result<RejectedPoints, WireError> {
        self.rejected = RejectedPoints::default();
        self.now_unix_nanos = clock::unix_nanos();
        self.now_seconds = self.store.now_seconds();
        let walked = self.resources(bytes);
        for (rejection, points) in Rejection::ALL.iter().zip(self.rejected) {
            self.store.reject(*rejection, points);
        }
        self.store.report_ahead(std::mem::take(&mut self.ahead));
        walked.map(|()| self.rejected)
    }

    pub(super) fn receiver(&mut self) -> &mut R {
        &mut self.receiver
    }

    pub(super) fn into_inner(self) -> R {
        self.receiver
    }

    pub(super) fn forget_families(&mut self) {
        self.families.forget();
    }

    fn resources(&mut self, bytes: &[u8]) -> Result<(), WireError> {
        for resource in walk::metrics(bytes) {
            let resource = resource?;
            let target = match self.target(&resource) {
                Ok(target) => target,
                Err(PointError::Rejected(rejection)) => {
                    self.rejected[rejection as usize] += points_of(&resource)?;
                    continue;
                }
                Err(PointError::Wire(error)) => return Err(error),
            };
            for scope in resource.scopes() {
                self.scope(&scope?, &target)?;
            }
        }
        Ok(())
    }

    fn target<'a>(&mut self, resource: &InResource<'a, Metric<'a>>) -> Result<Arc<ScrapeTarget>, PointError> {
        let promoted = &self.store.config().resource_labels;
        let resource = resource.resource.unwrap_or_default();
        let now = self.store.now_millis();
        self.store.targets().enter(
            &resource,
            promoted,
            &mut self.labeller,
            now,
            self.store.limit().budget(),
        )
    }

    fn scope<'a>(
        &mut self,
        metrics: &InScope<'a, Metric<'a>>,
        target: &Arc<ScrapeTarget>,
    ) -> Result<(), WireError> {
        let scope = if self.store.config().scope_labels {
            series::of_scope(metrics)
        } else {
            ScopeLabels::new()
        };
        for metric in metrics.items.iter() {
            self.metric(&metric?, target, &scope)?;
        }
        Ok(())
    }

    fn metric(
        &mut self,
        metric: &Metric<'_>,
        target: &Arc<ScrapeTarget>,
        scope: &ScopeLabels,
    ) -> Result<(), WireError> {
        let Some(data) = metric.data() else {
            return Ok(());
        };
        let (family, source) = match self.families.find(metric, &data, &self.store) {
            Ok(found) => found,
            Err(rejection) => {
                self.rejected[rejection as usize] += data.point_count() as u64;
                return Ok(());
            }
        };
        let place = PointContext {
            family: &family,
            source,
            seen_seconds: self.now_seconds,
            target,
            scope,
            is_internal: families::is_internal(metric),
        };
        let walked = data.try_each_point(|point| self.add(&place, &point));
        self.flush(&place);
        walked
    }

    /// Adds a point. A rejected point is counted and does not stop the others.
    #[inline]
    fn add(&mut self, place: &PointContext<'_>, point: &AnyPoint<'_, '_>) -> Result<(), WireError> {
        match self.point(place, point) {
            Ok(()) => Ok(()),
            Err(PointError::Rejected(rejection)) => {
                self.rejected[rejection as usize] += 1;
                Ok(())
            }
            Err(PointError::Wire(error)) => Err(error),
        }
    }

    #[inline]
    fn point(&mut self, place: &PointContext<'_>, point: &AnyPoint<'_, '_>) -> Result<(), PointError> {
        let kind = place.family.head.kind;
        let temporality = point.kind.temporality();
        let (change, exemplars) = if point.is_end() {
            (Change::End, Vec::new())
        } else {
            let value = self.value(point)?;
            if kind == FamilyKind::Counter && !matches!(value, SampleValue::Number(count) if count >= 0.0) {
                // OpenMetrics 1.0, "Counter": neither NaN nor negative.
                return Err(PointError::Rejected(Rejection::Malformed));
            }
            let exemplars = match kind {
                FamilyKind::Counter | FamilyKind::Histogram => points::exemplars(&point.exemplars(), &value)?,
                _ => Vec::new(),
            };
            (change(value, temporality)?, exemplars)
        };
        series::write_labels(place, &point.attributes(), &mut self.labeller, &mut self.labels)?;
        let point = PendingPoint {
            // The start time of a gauge has no meaning, so it marks no reset.
            start_unix_nanos: temporality.map_or(UnixNanos::UNKNOWN, |_| point.start()),
            time_unix_nanos: self.credible(point.time()),
            change,
            exemplars,
        };
        if self.pending.push(&self.labels, point) {
            self.flush(place);
        }
        Ok(())
    }

    #[inline]
    fn value(&mut self, point: &AnyPoint<'_, '_>) -> Result<SampleValue, PointError> {
        match point.data {
            PointData::Number(point) => points::number(point),
            PointData::Histogram(point) => points::histogram(point, |bounds| {
                shared(&mut self.bounds, bounds, self.store.limit().budget())
            }),
            PointData::ExponentialHistogram(point) => points::native(point),
            PointData::Summary(point) => points::summary(point),
        }
    }

    fn flush(&mut self, place: &PointContext<'_>) {
        for rejection in self.pending.flush(place, &mut self.receiver) {
            self.rejected[rejection as usize] += 1;
        }
    }

    /// Returns the time of a point, or now if it has none or an incredible one.
    fn credible(&mut self, unix_nanos: UnixNanos) -> UnixNanos {
        let is_ahead = unix_nanos > R::latest(self.now_unix_nanos);
        self.ahead += u64::from(is_ahead);
        match is_ahead || !unix_nanos.is_known() {
            true => self.now_unix_nanos,
            false => unix_nanos,
        }
    }
}

/// Returns the change of a series by a value, depending on the temporality of its metric.
fn change(value: SampleValue, temporality: Option<Temporality>) -> Result<Change, PointError> {
    match (temporality, &value) {
        (None | Some(Temporality::Cumulative), _) => Ok(Change::Set(value)),
        (
            Some(Temporality::Delta),
            SampleValue::Number(_) | SampleValue::Histogram(_) | SampleValue::Native(_),
        ) => Ok(Change::Add(value)),
        _ => Err(PointError::Rejected(Rejection::Temporality)),
    }
}

/// Returns bounds with these values, shared with recent histograms.
fn shared(
    known: &mut Vec<Arc<Bounds>>,
    values: Vec<f64>,
    budget: &Arc<Budget>,
) -> Result<Arc<Bounds>, Rejection> {
    if let Some(bounds) = known.iter().find(|bounds| bounds.values() == values) {
        return Ok(Arc::clone(bounds));
    }
    let is_shared = values.len() <= MAX_SHARED_BOUNDS;
    let bounds = Arc::new(Bounds::charged(values, budget)?);
    if is_shared {
        if known.len() == REMEMBERED_BOUNDS {
            known.clear();
        }
        known.push(Arc::clone(&bounds));
    }
    Ok(bounds)
}

fn points_of<'a>(resource: &InResource<'a, Metric<'a>>) -> Result<u64, WireError> {
    let mut points = 0;
    for metric in resource.items() {
        points += metric?.data().map_or(0, |data| data.point_count() as u64);
    }
    Ok(points)
}
