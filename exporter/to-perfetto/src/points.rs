//! The points of an input: each series with its values over time.

use std::collections::HashMap;

use indexmap::{IndexMap, IndexSet};
use pulsetrain_otlp::{
    view::{Message, Metric},
    walk::{AnyPoint, PointKind},
};
use pulsetrain_perfetto::CounterValue;
use pulsetrain_pipeline::spill::{MemoryBudget, Sorter};

use super::{
    PerfettoConfig, PerfettoError, PerfettoSummary,
    labels::Labels,
    metric_heads::MetricHead,
    readings::{EncodedPoint, Reading},
    series::{LabelText, SeriesKey, Stream},
    span_trees::LATEST,
    walk::{self, Input},
};

/// The limit for the bounds of a distribution. An exponential one has 160 at a time, and others after a change of scale.
const MAX_BOUNDS: usize = 640;

/// The points of an input.
#[derive(Debug, Default)]
pub(super) struct Points {
    /// The bounds of all buckets of a distribution that were ever not empty, in ascending order.
    bounds: HashMap<SeriesKey, Vec<f64>>,
    pub(super) series: IndexMap<SeriesKey, Series>,
    streams: IndexSet<Stream>,
    /// Names of metrics with the number of their counters: several counters are under one heading.
    families: IndexMap<NameKey, u32>,
    units: IndexSet<String>,
    /// The rows of states by their streams.
    pub(super) state_tracks: IndexSet<u32>,
    pub(super) labels: Labels,
    /// Metrics without their points. A full trace contains each once.
    pub(super) heads: IndexSet<MetricHead>,
    pub(super) readings: Sorter,
    pub(super) draws_buckets: bool,
}

/// A series, which is drawn as one counter.
#[derive(Debug)]
pub(super) struct Series {
    /// The length of the name without the labels.
    pub(super) labels_at: usize,
    /// The unit without UCUM's braces around counted things.
    pub(super) unit: String,
    pub(super) description: String,
    /// Counters with the same key share one scale.
    pub(super) scale: Option<String>,
    /// Whether the points are deltas, which are added up.
    pub(super) is_delta: bool,
}

/// The name of a metric in a resource.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct NameKey {
    pub(super) resource: u32,
    pub(super) name: String,
}

/// The properties that the points of a metric share.
#[derive(Clone, Copy)]
pub(super) struct MetricContext<'a> {
    pub(super) resource: u32,
    pub(super) metric: &'a Metric<'a>,
    /// The number of its stream.
    pub(super) stream: u32,
    pub(super) is_delta: bool,
    /// The number of the metric, if complete points are written.
    pub(super) head: Option<u32>,
}

impl Points {
    pub(super) fn new(room: MemoryBudget, draws_buckets: bool) -> Self {
        Self {
            readings: Sorter::new(room),
            draws_buckets,
            ..Self::default()
        }
    }

    /// Adds a batch of metrics.
    pub(super) fn add(&mut self, batch: &[u8], input: &mut Input<'_>) -> Result<(), PerfettoError> {
        let config = input.config;
        input.each_item(batch, |bytes, around, scopes, summary| {
            let walk::ItemContext { resource, scope } = around;
            let metric = Metric::decode(bytes)?;
            let head = config.attributes.is_full().then(|| {
                let head = MetricHead::new(resource, scope, bytes);
                self.heads.insert_full(head).0 as u32
            });
            let around = walk::ItemContext {
                resource,
                scope: scopes.without_schema(scope),
            };
            self.add_metric(around, &metric, head, config, summary)
        })
    }

    fn add_metric(
        &mut self,
        walk::ItemContext { resource, scope }: walk::ItemContext,
        metric: &Metric<'_>,
        head: Option<u32>,
        config: &PerfettoConfig,
        summary: &mut PerfettoSummary,
    ) -> Result<(), PerfettoError> {
        let Some(data) = metric.data() else {
            return Ok(());
        };
        let is_delta = data.kind().is_delta();
        let kind = match data.kind() {
            PointKind::Gauge => "gauge",
            PointKind::Sum { .. } => "sum",
            PointKind::Histogram { .. } => "histogram",
            PointKind::ExponentialHistogram { .. } => "exponential histogram",
            PointKind::Summary => "summary",
        };
        let name = metric.name.to_str_lossy().into_owned();
        let family = self.families.entry(NameKey { resource, name });
        let family_number = family.index() as u32;
        family.or_default();
        let stream = Stream {
            family: family_number,
            scope,
            kind,
            is_delta,
            unit: self.units.insert_full(metric.unit.to_str_lossy().into_owned()).0 as u32,
        };
        let around = MetricContext {
            resource,
            metric,
            stream: self.streams.insert_full(stream).0 as u32,
            is_delta,
            head,
        };
        let mut point_filter = PointFilter {
            points: self,
            config,
            summary,
        };
        data.try_each_point(|point| point_filter.add(&around, &point))
    }

    /// Returns a series by its number.
    pub(super) fn series_of(&self, number: u32) -> (&SeriesKey, &Series) {
        let known = self.series.get_index(number as usize);
        known.expect("invariant: readings have numbers of series")
    }

    pub(super) fn stream(&self, number: u32) -> &Stream {
        &self.streams[number as usize]
    }

    /// Returns the unit of a stream without braces.
    pub(super) fn unit(&self, stream: &Stream) -> String {
        self.units[stream.unit as usize].replace(['{', '}'], "")
    }

    /// Returns the name of the metric of a stream, and the number of its counters.
    pub(super) fn metric(&self, stream: u32) -> (&NameKey, u32) {
        let family = self.families.get_index(self.stream(stream).family as usize);
        let (name, counters) = family.expect("invariant: streams have numbers of families");
        (name, *counters)
    }

    /// Returns the number of the row of states of a stream.
    pub(super) fn state_track(&mut self, stream: u32) -> u32 {
        self.state_tracks.insert_full(stream).0 as u32
    }

    /// Stores a point without a counter value, if complete points are written.
    pub(super) fn carry(
        &mut self,
        around: &MetricContext<'_>,
        time: u64,
        carried: Option<EncodedPoint<'_>>,
    ) -> Result<(), PerfettoError> {
        if let Some(carried) = carried {
            let resource = around.resource;
            let reading = Reading::Point { resource, carried };
            self.readings.push((time, 0), |out| reading.pack(out))?;
        }
        Ok(())
    }

    pub(super) fn push(
        &mut self,
        around: &MetricContext<'_>,
        statistic: &str,
        labels: &LabelText,
        time: u64,
        value: CounterValue,
        carried: Option<EncodedPoint<'_>>,
    ) -> Result<(), PerfettoError> {
        let series = self.series(around, statistic, labels);
        let reading = Reading::Count {
            series,
            value,
            carried,
        };
        Ok(self.readings.push((time, 0), |out| reading.pack(out))?)
    }

    /// Returns the known bounds of a distribution, merged with `more`.
    pub(super) fn bounds(
        &mut self,
        around: &MetricContext<'_>,
        labels: &LabelText,
        more: impl Iterator<Item = f64>,
    ) -> Vec<f64> {
        let LabelText { shown, typed } = labels.clone();
        let key = SeriesKey {
            stream: around.stream,
            name: shown,
            typed,
        };
        let known = self.bounds.entry(key).or_default();
        let mut all = known.clone();
        for bound in more {
            if let Err(place) = all.binary_search_by(|known| known.total_cmp(&bound)) {
                all.insert(place, bound);
            }
        }
        if all.len() <= MAX_BOUNDS {
            known.clone_from(&all);
        }
        all
    }

    fn series(&mut self, around: &MetricContext<'_>, statistic: &str, labels: &LabelText) -> u32 {
        let metric = around.metric.name.to_str_lossy();
        let LabelText { shown, typed } = labels;
        let key = SeriesKey {
            stream: around.stream,
            name: format!("{metric}{statistic}{shown}"),
            typed: typed.clone(),
        };
        if let Some(known) = self.series.get_index_of(&key) {
            return known as u32;
        }
        let stream = *self.stream(around.stream);
        self.families[stream.family as usize] += 1;
        let counts = statistic == ".count" || statistic.starts_with(".le_");
        // Quantiles and limits.
        let is_of_values = statistic.starts_with(".p") || statistic.starts_with(".m");
        let unit = self.unit(&stream);
        let series = Series {
            labels_at: metric.len() + statistic.len(),
            scale: is_of_values.then(|| format!("{metric} {unit}{shown}")),
            unit: if counts { String::new() } else { unit },
            description: around.metric.description.to_str_lossy().into_owned(),
            is_delta: around.is_delta,
        };
        self.series.insert_full(key, series).0 as u32
    }
}

/// Filters incoming points: points outside the window are dropped, points without a value are counted.
struct PointFilter<'a> {
    points: &'a mut Points,
    config: &'a PerfettoConfig,
    summary: &'a mut PerfettoSummary,
}

impl PointFilter<'_> {
    fn add(&mut self, around: &MetricContext<'_>, point: &AnyPoint<'_, '_>) -> Result<(), PerfettoError> {
        let bytes = point.bytes;
        let carried = around.head.map(|metric| EncodedPoint { metric, bytes });
        let (time, summary) = (point.time().0, &mut *self.summary);
        if !self.config.shows_time(time, time) {
            summary.filtered += 1;
        } else if point.is_end() {
            summary.without_value += 1;
            self.points.carry(around, time, carried)?;
        } else {
            summary.points += 1;
            summary.without_time += u64::from(time == 0);
            summary.beyond_range += u64::from(time > LATEST);
            self.points.draw(around, point, carried)?;
        }
        Ok(())
    }
}
