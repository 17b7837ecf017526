//! Finds the family of a metric. A cache avoids repeated translation of names.

use std::{collections::HashMap, sync::Arc};

use pulsetrain_otlp::view::{Metric, MetricData};
use pulsetrain_semconv::Instrument;

use super::{
    super::{
        PrometheusStore, Rejection, names,
        store::family::{Family, FamilyKind, Head},
    },
    MAX_LABEL_BYTES,
};

/// The prefix of the program's own metrics.
const INTERNAL_PREFIX: &[u8] = b"pulsetrain.";
/// The maximum number of cached metrics. Beyond it the cache is cleared.
const REMEMBERED_METRICS: usize = 10_000;
/// The maximum length of a cached name and unit.
const MAX_REMEMBERED_BYTES: usize = 1 << 10;
/// The maximum length of a description in bytes. The rest is cut off.
const MAX_HELP_BYTES: usize = 1 << 10;

/// A family, and the metric's number among those that share it.
type FamilyResult = Result<(Arc<Family>, u16), Rejection>;

/// The cache of families by name, unit and kind of the metric.
#[derive(Default)]
pub(super) struct Families {
    known: HashMap<String, FamilyResult>,
    key: String,
}

impl Families {
    /// Returns the family of a metric, and creates it if it is new.
    pub(super) fn find(
        &mut self,
        metric: &Metric<'_>,
        data: &MetricData<'_>,
        store: &PrometheusStore,
    ) -> FamilyResult {
        let (kind, instrument) = kind_of(data);
        let (name, unit) = (metric.name.to_str_lossy(), metric.unit.to_str_lossy());
        self.key.clear();
        self.key.extend([&name, "\0", &unit, "\0"]);
        self.key.push(char::from(kind as u8));
        self.key.push(char::from(instrument as u8));
        if let Some(found) = self.known.get(self.key.as_str()) {
            return found.clone();
        }
        let found = enter(store, metric, &name, &unit, kind, instrument);
        if self.known.len() == REMEMBERED_METRICS {
            self.known.clear();
        }
        // A limit may be lifted by evictions. Every other rejection lasts as long as the families exist.
        let is_lasting = !matches!(found, Err(Rejection::SeriesLimit | Rejection::MemoryLimit));
        if is_lasting && self.key.len() <= MAX_REMEMBERED_BYTES {
            self.known.insert(self.key.clone(), found.clone());
        }
        found
    }

    pub(super) fn forget(&mut self) {
        self.known.clear();
    }
}

/// Returns whether a metric is one of the program itself.
pub(super) fn is_internal(metric: &Metric<'_>) -> bool {
    metric.name.as_bytes().starts_with(INTERNAL_PREFIX)
}

/// Returns the family of the store, which another metric may have created.
fn enter(
    store: &PrometheusStore,
    metric: &Metric<'_>,
    name: &str,
    unit: &str,
    kind: FamilyKind,
    instrument: Instrument,
) -> FamilyResult {
    if name.len() + unit.len() > MAX_LABEL_BYTES {
        return Err(Rejection::LabelsTooLong);
    }
    let translation = store.config().translation;
    let family = names::family_name(translation, name, unit, instrument).ok_or(Rejection::BadName)?;
    if kind == FamilyKind::Counter && family == "_total" {
        // OpenMetrics has the family under its name without the suffix.
        return Err(Rejection::BadName);
    }
    if family.len() > MAX_LABEL_BYTES {
        return Err(Rejection::LabelsTooLong);
    }
    let head = Head {
        unit: names::unit_of(&family, unit),
        name: family,
        help: help(&metric.description.to_str_lossy()),
        kind,
    };
    let family = store.family(head, is_internal(metric))?;
    let source = family.lock().source(name).ok_or(Rejection::NameCollision)?;
    Ok((family, source))
}

/// Returns the help text of a description.
fn help(description: &str) -> String {
    let end = description.floor_char_boundary(MAX_HELP_BYTES);
    // Prometheus' text parsers treat NUL as the end of the page.
    description[..end].replace('\0', "\u{fffd}")
}

fn kind_of(data: &MetricData<'_>) -> (FamilyKind, Instrument) {
    match data {
        MetricData::Gauge(_) => (FamilyKind::Gauge, Instrument::Gauge),
        MetricData::Sum(sum) if sum.is_monotonic => (FamilyKind::Counter, Instrument::Counter),
        MetricData::Sum(_) => (FamilyKind::Gauge, Instrument::UpDownCounter),
        MetricData::Histogram(_) | MetricData::ExponentialHistogram(_) => {
            (FamilyKind::Histogram, Instrument::Histogram)
        }
        // The name of a summary has the suffixes of a histogram: its unit only.
        MetricData::Summary(_) => (FamilyKind::Summary, Instrument::Histogram),
    }
}
