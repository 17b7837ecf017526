//! From a batch to the store: resource by resource, metric by metric, point by point.
//!
//! Points are read and labelled without any lock; `pending` holds them until a few hundred go into their family at once.

mod pending;

use std::{borrow::Cow, collections::HashMap, sync::Arc};

use pulsetrain_otlp::{
    WireError,
    view::{
        Exemplar, KeyValue, Message, Metric, MetricData, MetricsData, NumberPoint, Repeated, Resource,
        ResourceMetrics, ScopeMetrics, Temporality,
    },
};
use pulsetrain_pipeline::clock;
use pulsetrain_semconv::Instrument;

use self::pending::{Pending, PendingPoint};
use super::{
    PrometheusStore, Refusal,
    labels::{self, Labeller},
    names,
    points::{self, PointError},
    store::{
        bounds::Bounds,
        family::{Change, Family, Head, Kind},
        target::Target,
        value::Value,
    },
};

/// How the names begin of what tells of the program itself.
const OURSELVES: &[u8] = b"pulsetrain.";
/// The most bytes of a series' labels.
const MOST_LABEL_BYTES: usize = 16 << 10;
/// A point that is further in the future than this is taken for one of now: otherwise nothing could ever follow it.
const FUTURE_NANOS: u64 = 3_600_000_000_000;
/// So many metrics are remembered with their families; then memory starts anew.
const REMEMBERED_METRICS: usize = 10_000;
/// So many sets of bounds are remembered, to be shared by the histograms that have them.
const REMEMBERED_BOUNDS: usize = 64;

/// The points refused, in the order of [`Refusal::ALL`].
pub(super) type Refused = [u64; Refusal::ALL.len()];

/// The part of the sink that knows OTLP.
pub(super) struct Ingest {
    store: PrometheusStore,
    labeller: Labeller,
    /// By name, unit and kind: the family, and the metric's number among those that share it.
    families: HashMap<String, Result<(Arc<Family>, u16), Refusal>>,
    bounds: Vec<Arc<Bounds>>,
    pending: Pending,
    text: String,
    refused: Refused,
    now_unix_nanos: u64,
}

/// Where the points of a metric belong.
struct Place<'a> {
    family: &'a Arc<Family>,
    source: u16,
    target: &'a Arc<Target>,
    scope: &'a [(Arc<str>, String)],
    /// Whether it tells of the program itself.
    is_of_ourselves: bool,
}

/// What the four kinds of points have in common.
struct Parts<'a> {
    attributes: Repeated<'a, KeyValue<'a>>,
    exemplars: Repeated<'a, Exemplar<'a>>,
    start_unix_nanos: u64,
    time_unix_nanos: u64,
    flags: u32,
}

/// Reads the parts that points of every kind have under the same names.
macro_rules! parts {
    ($point:expr, $exemplars:expr) => {
        Parts {
            attributes: $point.attributes,
            exemplars: $exemplars,
            start_unix_nanos: $point.start_time_unix_nano,
            time_unix_nanos: $point.time_unix_nano,
            flags: $point.flags,
        }
    };
}

impl Ingest {
    pub(super) fn new(store: PrometheusStore) -> Self {
        Self {
            labeller: Labeller::new(store.config().translation),
            store,
            families: HashMap::new(),
            bounds: Vec::new(),
            pending: Pending::default(),
            text: String::new(),
            refused: Refused::default(),
            now_unix_nanos: 0,
        }
    }

    /// Takes in a batch of metrics and says what of it was refused.
    pub(super) fn batch(&mut self, bytes: &[u8]) -> Result<Refused, WireError> {
        self.refused = Refused::default();
        self.now_unix_nanos = u64::try_from(clock::unix_now().as_nanos()).unwrap_or(u64::MAX);
        let walked = self.resources(bytes);
        for (refusal, points) in Refusal::ALL.iter().zip(self.refused) {
            self.store.refuse(*refusal, points);
        }
        walked.map(|()| self.refused)
    }

    pub(super) fn forget_families(&mut self) {
        self.families.clear();
    }

    fn resources(&mut self, bytes: &[u8]) -> Result<(), WireError> {
        for resource in MetricsData::decode(bytes)?.resource_metrics.iter() {
            let resource = resource?;
            let target = self.target(&resource)?;
            for scope in resource.scope_metrics.iter() {
                self.scope(&scope?, &target)?;
            }
        }
        Ok(())
    }

    fn target(&mut self, resource: &ResourceMetrics<'_>) -> Result<Arc<Target>, WireError> {
        let promoted = &self.store.config().resource_labels;
        let resource: Resource<'_> = resource.resource.unwrap_or_default();
        let now = self.store.now_millis();
        self.store
            .targets()
            .enter(&resource, promoted, &mut self.labeller, now)
    }

    fn scope(&mut self, metrics: &ScopeMetrics<'_>, target: &Arc<Target>) -> Result<(), WireError> {
        let scope = if self.store.config().scope_labels {
            scope_labels(metrics)
        } else {
            Vec::new()
        };
        for metric in metrics.metrics.iter() {
            self.metric(&metric?, target, &scope)?;
        }
        Ok(())
    }

    fn metric(
        &mut self,
        metric: &Metric<'_>,
        target: &Arc<Target>,
        scope: &[(Arc<str>, String)],
    ) -> Result<(), WireError> {
        let Some(data) = metric.data() else {
            return Ok(());
        };
        let (family, source) = match self.family(metric, &data) {
            Ok(found) => found,
            Err(refusal) => {
                self.refused[refusal as usize] += point_count(&data) as u64;
                return Ok(());
            }
        };
        let place = Place {
            family: &family,
            source,
            target,
            scope,
            is_of_ourselves: is_of_ourselves(metric),
        };
        let walked = self.data(&data, &place);
        self.flush(&place);
        walked
    }

    fn family(&mut self, metric: &Metric<'_>, data: &MetricData<'_>) -> Result<(Arc<Family>, u16), Refusal> {
        let (kind, instrument) = kind_of(data);
        let (name, unit) = (metric.name.to_str_lossy(), metric.unit.to_str_lossy());
        self.text.clear();
        self.text.extend([&name, "\0", &unit, "\0"]);
        self.text.push(char::from(kind as u8));
        self.text.push(char::from(instrument as u8));
        if let Some(found) = self.families.get(self.text.as_str()) {
            return found.clone();
        }
        let found = self.new_family(metric, &name, &unit, kind, instrument);
        if self.families.len() == REMEMBERED_METRICS {
            self.families.clear();
        }
        // Room may come again; every other refusal holds for as long as the families stand.
        if !matches!(found, Err(Refusal::SeriesLimit)) {
            self.families.insert(self.text.clone(), found.clone());
        }
        found
    }

    fn new_family(
        &self,
        metric: &Metric<'_>,
        name: &str,
        unit: &str,
        kind: Kind,
        instrument: Instrument,
    ) -> Result<(Arc<Family>, u16), Refusal> {
        let translation = self.store.config().translation;
        let family = names::family_name(translation, name, unit, instrument).ok_or(Refusal::BadName)?;
        if family.len() > MOST_LABEL_BYTES {
            return Err(Refusal::LabelsTooLong);
        }
        let head = Head {
            unit: names::unit_of(&family, unit),
            name: family,
            help: metric.description.to_str_lossy().into_owned(),
            kind,
        };
        let family = self.store.family(head, is_of_ourselves(metric))?;
        let source = family.lock().source(name).ok_or(Refusal::NameCollision)?;
        Ok((family, source))
    }

    fn data(&mut self, data: &MetricData<'_>, place: &Place<'_>) -> Result<(), WireError> {
        match data {
            MetricData::Gauge(gauge) => self.each(&gauge.data_points, |ingest, point| {
                ingest.point(place, &parts!(point, point.exemplars), None, || {
                    points::number(point)
                })
            }),
            MetricData::Sum(sum) => {
                let temporality = sum.aggregation_temporality.into();
                self.each(&sum.data_points, |ingest, point| {
                    ingest.point(place, &parts!(point, point.exemplars), Some(temporality), || {
                        points::number(point)
                    })
                })
            }
            MetricData::Histogram(histogram) => {
                let temporality = histogram.aggregation_temporality.into();
                self.each(&histogram.data_points, |ingest, point| {
                    let mut known = std::mem::take(&mut ingest.bounds);
                    let value = || points::histogram(point, |bounds| shared(&mut known, bounds));
                    let taken =
                        ingest.point(place, &parts!(point, point.exemplars), Some(temporality), value);
                    ingest.bounds = known;
                    taken
                })
            }
            MetricData::ExponentialHistogram(histogram) => {
                let temporality = histogram.aggregation_temporality.into();
                self.each(&histogram.data_points, |ingest, point| {
                    ingest.point(place, &parts!(point, point.exemplars), Some(temporality), || {
                        points::native(point)
                    })
                })
            }
            MetricData::Summary(summary) => self.each(&summary.data_points, |ingest, point| {
                ingest.point(place, &parts!(point, Repeated::default()), None, || {
                    points::summary(point)
                })
            }),
        }
    }

    /// Takes in one point after the other; a refused one is counted and does not stop the others.
    fn each<'a, P: Message<'a>>(
        &mut self,
        points: &Repeated<'a, P>,
        mut take: impl FnMut(&mut Self, &P) -> Result<(), PointError>,
    ) -> Result<(), WireError> {
        for point in points.iter() {
            match take(self, &point?) {
                Ok(()) => {}
                Err(PointError::Refused(refusal)) => self.refused[refusal as usize] += 1,
                Err(PointError::Wire(error)) => return Err(error),
            }
        }
        Ok(())
    }

    /// Takes in a point; `temporality` is none where the kind has none.
    fn point(
        &mut self,
        place: &Place<'_>,
        parts: &Parts<'_>,
        temporality: Option<Temporality>,
        value: impl FnOnce() -> Result<Value, PointError>,
    ) -> Result<(), PointError> {
        let kind = place.family.head.kind;
        let (change, exemplars) = if parts.flags & NumberPoint::NO_RECORDED_VALUE != 0 {
            (Change::End, Vec::new())
        } else {
            let value = value()?;
            let exemplars = match kind {
                Kind::Counter | Kind::Histogram => points::exemplars(&parts.exemplars, &value)?,
                _ => Vec::new(),
            };
            (change(value, temporality)?, exemplars)
        };
        self.write_labels(place, &parts.attributes, kind)?;
        let point = PendingPoint {
            // What is not counted does not begin anew: the start of a gauge says nothing.
            start_unix_nanos: temporality.map_or(0, |_| parts.start_unix_nanos),
            time_unix_nanos: self.credible(parts.time_unix_nanos),
            change,
            exemplars,
        };
        if self.pending.push(&self.text, point) {
            self.flush(place);
        }
        Ok(())
    }

    fn flush(&mut self, place: &Place<'_>) {
        for refusal in self.pending.flush(place, self.store.room()) {
            self.refused[refusal as usize] += 1;
        }
    }

    /// The time of a point, or now where it has none or one of the far future.
    fn credible(&self, unix_nanos: u64) -> u64 {
        let latest = self.now_unix_nanos.saturating_add(FUTURE_NANOS);
        if (1..=latest).contains(&unix_nanos) {
            unix_nanos
        } else {
            self.now_unix_nanos
        }
    }

    /// Writes the labels of a series into `text`: those of the point, of its scope and of its target.
    fn write_labels(
        &mut self,
        place: &Place<'_>,
        attributes: &Repeated<'_, KeyValue<'_>>,
        kind: Kind,
    ) -> Result<(), PointError> {
        let mut all = self.labeller.labels(attributes, |key| !is_reserved(key, kind))?;
        for (name, value) in &place.target.labels {
            let found = all.iter_mut().find(|(other, _)| other == name);
            match found {
                Some((_, mine)) if matches!(&**name, "job" | "instance") => *mine = Cow::Borrowed(value),
                Some(_) => {}
                None => all.push((Arc::clone(name), Cow::Borrowed(value))),
            }
        }
        for (name, value) in place.scope {
            all.retain(|(other, _)| other != name);
            all.push((Arc::clone(name), Cow::Borrowed(value)));
        }
        all.sort_by(|(a, _), (b, _)| a.cmp(b));
        self.text.clear();
        labels::write(
            all.iter().map(|(name, value)| (&**name, &**value)),
            &mut self.text,
        );
        if self.text.len() > MOST_LABEL_BYTES {
            return Err(PointError::Refused(Refusal::LabelsTooLong));
        }
        Ok(())
    }
}

/// Names that the page writes itself.
fn is_reserved(key: &str, kind: Kind) -> bool {
    key == "__name__"
        || (key == "le" && kind == Kind::Histogram)
        || (key == "quantile" && kind == Kind::Summary)
}

/// What a value does to its series, by the temporality of its metric.
fn change(value: Value, temporality: Option<Temporality>) -> Result<Change, PointError> {
    match (temporality, &value) {
        (None | Some(Temporality::Cumulative), _) => Ok(Change::Set(value)),
        (Some(Temporality::Delta), Value::Number(_) | Value::Histogram(_)) => Ok(Change::Add(value)),
        _ => Err(PointError::Refused(Refusal::Temporality)),
    }
}

fn kind_of(data: &MetricData<'_>) -> (Kind, Instrument) {
    match data {
        MetricData::Gauge(_) => (Kind::Gauge, Instrument::Gauge),
        MetricData::Sum(sum) if sum.is_monotonic => (Kind::Counter, Instrument::Counter),
        MetricData::Sum(_) => (Kind::Gauge, Instrument::UpDownCounter),
        MetricData::Histogram(_) | MetricData::ExponentialHistogram(_) => {
            (Kind::Histogram, Instrument::Histogram)
        }
        // A summary's name has the suffixes of a histogram's: its unit and nothing else.
        MetricData::Summary(_) => (Kind::Summary, Instrument::Histogram),
    }
}

/// Bounds with these values, shared with the histograms that had the same ones lately.
fn shared(known: &mut Vec<Arc<Bounds>>, values: Vec<f64>) -> Arc<Bounds> {
    if let Some(bounds) = known.iter().find(|bounds| bounds.values() == values) {
        return Arc::clone(bounds);
    }
    if known.len() == REMEMBERED_BOUNDS {
        known.clear();
    }
    let bounds = Arc::new(Bounds::new(values));
    known.push(Arc::clone(&bounds));
    bounds
}

fn point_count(data: &MetricData<'_>) -> usize {
    match data {
        MetricData::Gauge(gauge) => gauge.data_points.len(),
        MetricData::Sum(sum) => sum.data_points.len(),
        MetricData::Histogram(histogram) => histogram.data_points.len(),
        MetricData::ExponentialHistogram(histogram) => histogram.data_points.len(),
        MetricData::Summary(summary) => summary.data_points.len(),
    }
}

fn is_of_ourselves(metric: &Metric<'_>) -> bool {
    metric.name.as_bytes().starts_with(OURSELVES)
}

fn scope_labels(metrics: &ScopeMetrics<'_>) -> Vec<(Arc<str>, String)> {
    let scope = metrics.scope.unwrap_or_default();
    let labels = [
        ("otel_scope_name", scope.name),
        ("otel_scope_version", scope.version),
        ("otel_scope_schema_url", metrics.schema_url),
    ];
    labels
        .into_iter()
        .filter(|(_, value)| !value.is_empty())
        .map(|(name, value)| (name.into(), value.to_str_lossy().into_owned()))
        .collect()
}
