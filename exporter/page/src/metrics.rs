//! The catalogue of metrics, with definitions from the registry or from their sender.

use std::collections::HashMap;

use pulsetrain_otlp::view;
use pulsetrain_run::MAX_NAME_BYTES;
use pulsetrain_semconv::{Instrument, Metric, metric};

use super::{layout, rejected::MAX_METRICS};

/// The index of a metric in the [`Catalogue`].
pub(super) type MetricId = u32;

/// The conversion of points to values of a curve.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MetricKind {
    /// The value as it is.
    Value,
    /// The increase a second.
    Rate,
    /// The mean of the observations since the last point.
    Mean,
    /// A state: 1 or 0.
    State,
}

/// The definition of a metric.
#[derive(Debug)]
pub(super) struct Definition {
    pub(super) name: Box<str>,
    pub(super) unit: Box<str>,
    pub(super) brief: Box<str>,
    pub(super) kind: MetricKind,
    pub(super) is_rank_column: bool,
    pub(super) is_gpu_column: bool,
    pub(super) is_headline: bool,
    pub(super) phase: Option<&'static str>,
}

/// All metrics so far.
#[derive(Debug, Default)]
pub(super) struct Catalogue {
    definitions: Vec<Definition>,
    by_name: HashMap<Box<str>, MetricId>,
}

impl Catalogue {
    /// Returns the id of a metric, or `None` at the limit of metrics, and for a name or unit that is too long.
    pub(super) fn id(&mut self, metric: &view::Metric<'_>) -> Option<MetricId> {
        let name = metric.name.to_str_lossy();
        if let Some(id) = self.by_name.get(&*name) {
            return Some(*id);
        }
        let is_named =
            (1..=MAX_NAME_BYTES).contains(&name.len()) && metric.unit.as_bytes().len() <= MAX_NAME_BYTES;
        if self.definitions.len() >= MAX_METRICS || !is_named {
            return None;
        }
        let id = self.definitions.len() as MetricId;
        self.definitions.push(Definition::new(&name, metric));
        self.by_name.insert(name.into(), id);
        Some(id)
    }

    /// Returns the id of a known metric.
    pub(super) fn find(&self, name: &str) -> Option<MetricId> {
        self.by_name.get(name).copied()
    }

    /// Returns the definition of a metric.
    pub(super) fn definition(&self, id: MetricId) -> &Definition {
        &self.definitions[id as usize]
    }
}

impl Definition {
    fn new(name: &str, sent: &view::Metric<'_>) -> Self {
        let known = registered(name);
        let sent_unit = sent.unit.to_str_lossy();
        let unit = known.map_or(&*sent_unit, |metric| metric.unit);
        let brief = known.map_or(sent.description.to_str_lossy(), |metric| metric.brief.into());
        Self {
            name: name.into(),
            unit: unit.into(),
            brief: brief.chars().take(400).collect(),
            kind: kind(unit, known, sent),
            is_rank_column: layout::is_rank_column(name),
            is_gpu_column: layout::is_gpu_column(name),
            is_headline: layout::is_headline(name),
            phase: layout::phase_of_metric(name),
        }
    }
}

fn registered(name: &str) -> Option<&'static Metric> {
    metric::ALL.iter().copied().find(|metric| metric.name == name)
}

fn kind(unit: &str, known: Option<&Metric>, sent: &view::Metric<'_>) -> MetricKind {
    if unit == "{state}" || unit == "{info}" {
        return MetricKind::State;
    }
    let is_counter = match known {
        Some(metric) => metric.instrument == Instrument::Counter,
        None => sent.sum.is_some_and(|sum| sum.is_monotonic),
    };
    let is_distribution =
        sent.histogram.is_some() || sent.exponential_histogram.is_some() || sent.summary.is_some();
    match (is_distribution, is_counter) {
        (true, _) => MetricKind::Mean,
        (false, true) => MetricKind::Rate,
        (false, false) => MetricKind::Value,
    }
}
