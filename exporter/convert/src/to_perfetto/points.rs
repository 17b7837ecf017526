//! The points of an input: each series with its values over time.

use std::collections::HashMap;

use indexmap::{IndexMap, IndexSet};
use pulsetrain_otlp::{
    WireError,
    view::{
        ExponentialHistogramPoint, HistogramPoint, KeyValue, Message, Metric, MetricData, NumberPoint,
        Repeated, SummaryPoint, Temporality,
    },
};
use pulsetrain_perfetto::CounterValue;
use pulsetrain_pipeline::spill::{MemoryBudget, Sorter};

use super::{
    PerfettoConfig, PerfettoError, PerfettoSummary,
    labels::Labels,
    metric_heads::MetricHead,
    readings::{EncodedPoint, Reading},
    span_trees::LATEST,
    walk::{self, Input},
};
use pulsetrain_otlp::json::value_text;

/// The limit for the bounds of a distribution. An exponential one has 160 at a time, and others after a change of scale.
const MAX_BOUNDS: usize = 640;

/// The points of an input.
#[derive(Debug, Default)]
pub(super) struct Points {
    /// The bounds of all buckets of a distribution that were ever not empty, in ascending order.
    bounds: HashMap<NameKey, Vec<f64>>,
    pub(super) series: IndexMap<NameKey, Series>,
    /// Metrics with the number of their counters: several counters are under one heading.
    pub(super) families: IndexMap<NameKey, u32>,
    pub(super) state_tracks: IndexSet<NameKey>,
    pub(super) labels: Labels,
    /// Metrics without their points. A full trace contains each once.
    pub(super) heads: IndexSet<MetricHead>,
    pub(super) readings: Sorter,
    pub(super) draws_buckets: bool,
}

/// A series, which is drawn as one counter.
#[derive(Debug)]
pub(super) struct Series {
    /// The metric, by its number in [`Points::families`].
    pub(super) family: u32,
    pub(super) unit: String,
    pub(super) description: String,
    /// Counters with the same key share one scale.
    pub(super) scale: Option<String>,
    /// Whether the points are deltas, which are added up.
    pub(super) is_delta: bool,
}

/// A series, a metric or a row of states of a resource.
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
    pub(super) is_delta: bool,
    /// The number of the metric, if complete points are written.
    pub(super) head: Option<u32>,
}

/// The common fields of every kind of point.
trait Point<'a>: Message<'a> {
    fn time(&self) -> u64;
    fn flags(&self) -> u32;
}

macro_rules! point {
    ($($name:ident),*) => {$(
        impl<'a> Point<'a> for $name<'a> {
            fn time(&self) -> u64 {
                self.time_unix_nano
            }

            fn flags(&self) -> u32 {
                self.flags
            }
        }
    )*};
}

point!(
    NumberPoint,
    HistogramPoint,
    ExponentialHistogramPoint,
    SummaryPoint
);

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
        input.each_item(batch, |bytes, walk::ItemContext { resource, scope }, summary| {
            let metric = Metric::decode(bytes)?;
            let head = config.attributes.is_full().then(|| {
                let head = MetricHead::of(resource, scope, bytes);
                self.heads.insert_full(head).0 as u32
            });
            self.add_metric(resource, &metric, head, config, summary)
        })
    }

    fn add_metric(
        &mut self,
        resource: u32,
        metric: &Metric<'_>,
        head: Option<u32>,
        config: &PerfettoConfig,
        summary: &mut PerfettoSummary,
    ) -> Result<(), PerfettoError> {
        let around = |temporality: i32| MetricContext {
            resource,
            metric,
            is_delta: Temporality::from(temporality) == Temporality::Delta,
            head,
        };
        let mut point_filter = PointFilter {
            points: self,
            config,
            summary,
        };
        match metric.data() {
            Some(MetricData::Gauge(gauge)) => {
                point_filter.take(around(0), &gauge.data_points, Points::number)
            }
            Some(MetricData::Sum(sum)) => point_filter.take(
                around(sum.aggregation_temporality),
                &sum.data_points,
                Points::number,
            ),
            Some(MetricData::Histogram(histogram)) => {
                let around = around(histogram.aggregation_temporality);
                point_filter.take(around, &histogram.data_points, Points::histogram)
            }
            Some(MetricData::ExponentialHistogram(histogram)) => {
                let around = around(histogram.aggregation_temporality);
                point_filter.take(around, &histogram.data_points, Points::exponential)
            }
            Some(MetricData::Summary(points)) => {
                point_filter.take(around(0), &points.data_points, Points::summary)
            }
            None => Ok(()),
        }
    }

    pub(super) fn state_track(&mut self, resource: u32, name: String) -> u32 {
        self.state_tracks.insert_full(NameKey { resource, name }).0 as u32
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
        attributes: Repeated<'_, KeyValue<'_>>,
        time: u64,
        value: CounterValue,
        carried: Option<EncodedPoint<'_>>,
    ) -> Result<(), PerfettoError> {
        let series = self.series(around, statistic, &labels(attributes)?);
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
        attributes: Repeated<'_, KeyValue<'_>>,
        more: impl Iterator<Item = f64>,
    ) -> Result<Vec<f64>, PerfettoError> {
        let key = NameKey {
            resource: around.resource,
            name: format!("{}{}", around.metric.name.to_str_lossy(), labels(attributes)?),
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
        Ok(all)
    }

    fn series(&mut self, around: &MetricContext<'_>, statistic: &str, labels: &str) -> u32 {
        let metric = around.metric.name.to_str_lossy();
        let key = NameKey {
            resource: around.resource,
            name: format!("{metric}{statistic}{labels}"),
        };
        if let Some(known) = self.series.get_index_of(&key) {
            return known as u32;
        }
        let family = self.families.entry(NameKey {
            resource: around.resource,
            name: metric.clone().into_owned(),
        });
        let family_number = family.index() as u32;
        *family.or_default() += 1;
        let counts = statistic == ".count" || statistic.starts_with(".le_");
        let unit = around.metric.unit.to_str_lossy();
        let series = Series {
            family: family_number,
            unit: if counts { String::new() } else { unit.into_owned() },
            description: around.metric.description.to_str_lossy().into_owned(),
            scale: statistic.starts_with(".p").then(|| format!("{metric}{labels}")),
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
    fn take<'a, P: Point<'a>>(
        &mut self,
        around: MetricContext<'_>,
        points: &Repeated<'a, P>,
        draw: impl Fn(&mut Points, &MetricContext<'_>, &P, Option<EncodedPoint<'a>>) -> Result<(), PerfettoError>,
    ) -> Result<(), PerfettoError> {
        let mut each = points.iter();
        while let Some(bytes) = each.next_bytes() {
            let bytes = bytes?;
            let point = P::decode(bytes)?;
            let carried = around.head.map(|metric| EncodedPoint { metric, bytes });
            let (time, summary) = (point.time(), &mut *self.summary);
            if !self.config.shows_time(time, time) {
                summary.filtered += 1;
            } else if point.flags() & NumberPoint::NO_RECORDED_VALUE != 0 {
                summary.without_value += 1;
                self.points.carry(&around, time, carried)?;
            } else {
                summary.points += 1;
                summary.without_time += u64::from(time == 0);
                summary.beyond_range += u64::from(time > LATEST);
                draw(self.points, &around, &point, carried)?;
            }
        }
        Ok(())
    }
}

/// Formats attributes as ` {key=value, ...}` in sorted order; the result is empty without attributes.
fn labels(attributes: Repeated<'_, KeyValue<'_>>) -> Result<String, WireError> {
    let mut labels = Vec::new();
    for attribute in attributes {
        let attribute = attribute?;
        let value = value_text(attribute.value.unwrap_or_default());
        labels.push(format!("{}={value}", attribute.key));
    }
    labels.sort_unstable();
    Ok(if labels.is_empty() {
        String::new()
    } else {
        format!(" {{{}}}", labels.join(", "))
    })
}
