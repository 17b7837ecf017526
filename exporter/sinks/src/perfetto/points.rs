//! The points of an input: each series, and what it showed when.

use std::collections::HashMap;

use pulsetrain_otlp::{
    WireError,
    view::{
        AnyValue, KeyValue, Message, Metric, MetricData, MetricsData, NumberPoint, Repeated, ResourceMetrics,
        Temporality,
    },
};
use pulsetrain_perfetto::CounterValue;

use super::{
    PerfettoConfig, PerfettoSummary, quantiles, resources::Resources, spans::first, values::short_text,
};

/// The unit of a state set: 1 for the present state, 0 for the others.
const STATE: &str = "{state}";

/// The quantiles of a distribution that are drawn.
const QUANTILES: [(f64, &str); 3] = [(0.5, ".p50"), (0.9, ".p90"), (0.99, ".p99")];

/// The series of an input.
#[derive(Debug, Default)]
pub(super) struct Points {
    index: HashMap<SeriesKey, u32>,
    pub(super) series: Vec<Series>,
    /// The states that processes were in: resource, track, state, time.
    pub(super) states: Vec<StatePoint>,
}

/// A series: what a counter is drawn of.
#[derive(Debug)]
pub(super) struct Series {
    pub(super) resource: u32,
    pub(super) name: String,
    pub(super) unit: String,
    pub(super) description: String,
    /// Counters with the same key are drawn to one scale.
    pub(super) scale: Option<String>,
    pub(super) values: Vec<(u64, CounterValue)>,
    /// Whether the points are differences, to be added up.
    pub(super) is_delta: bool,
}

/// That a process entered a state.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct StatePoint {
    pub(super) resource: u32,
    pub(super) track: String,
    pub(super) time: u64,
    pub(super) state: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct SeriesKey {
    resource: u32,
    name: String,
}

/// What the points of a metric share.
struct Around<'a> {
    resource: u32,
    metric: &'a Metric<'a>,
    is_delta: bool,
}

impl Points {
    /// Takes in a batch of metrics.
    pub(super) fn add(
        &mut self,
        batch: &[u8],
        config: &PerfettoConfig,
        resources: &mut Resources,
        summary: &mut PerfettoSummary,
    ) -> Result<(), WireError> {
        let mut all = MetricsData::decode(batch)?.resource_metrics.iter();
        while let Some(bytes) = all.next_bytes() {
            let bytes = bytes?;
            let within = ResourceMetrics::decode(bytes)?;
            let resource = resources.number(first(bytes, 1))?;
            let shown = config.shows_rank(resources.get(resource).rank);
            for scope in within.scope_metrics {
                for metric in scope?.metrics {
                    let metric = metric?;
                    if shown {
                        self.add_metric(resource, &metric, config, summary)?;
                    } else {
                        summary.filtered += 1;
                    }
                }
            }
        }
        Ok(())
    }

    fn add_metric(
        &mut self,
        resource: u32,
        metric: &Metric<'_>,
        config: &PerfettoConfig,
        summary: &mut PerfettoSummary,
    ) -> Result<(), WireError> {
        let is_delta = |temporality: i32| Temporality::from(temporality) == Temporality::Delta;
        let around = |is_delta| Around {
            resource,
            metric,
            is_delta,
        };
        let mut admit = |time: u64, flags: u32| {
            let shown = config.shows_time(time, time);
            let ended = flags & NumberPoint::NO_RECORDED_VALUE != 0;
            summary.filtered += u64::from(!shown);
            summary.without_value += u64::from(shown && ended);
            summary.points += u64::from(shown && !ended);
            shown && !ended
        };
        match metric.data() {
            Some(MetricData::Gauge(gauge)) => self.numbers(&around(false), gauge.data_points, admit),
            Some(MetricData::Sum(sum)) => self.numbers(
                &around(is_delta(sum.aggregation_temporality)),
                sum.data_points,
                admit,
            ),
            Some(MetricData::Histogram(histogram)) => {
                let around = around(is_delta(histogram.aggregation_temporality));
                for point in histogram.data_points {
                    let point = point?;
                    if admit(point.time_unix_nano, point.flags) {
                        let buckets = quantiles::explicit(&point)?;
                        self.distribution(
                            &around,
                            point.attributes,
                            point.time_unix_nano,
                            point.count,
                            point.sum,
                            &buckets,
                        )?;
                    }
                }
                Ok(())
            }
            Some(MetricData::ExponentialHistogram(histogram)) => {
                let around = around(is_delta(histogram.aggregation_temporality));
                for point in histogram.data_points {
                    let point = point?;
                    if admit(point.time_unix_nano, point.flags) {
                        let buckets = quantiles::exponential(&point)?;
                        self.distribution(
                            &around,
                            point.attributes,
                            point.time_unix_nano,
                            point.count,
                            point.sum,
                            &buckets,
                        )?;
                    }
                }
                Ok(())
            }
            Some(MetricData::Summary(points)) => {
                let around = around(false);
                for point in points.data_points {
                    let point = point?;
                    if !admit(point.time_unix_nano, point.flags) {
                        continue;
                    }
                    let time = point.time_unix_nano;
                    self.distribution(&around, point.attributes, time, point.count, Some(point.sum), &[])?;
                    for quantile in point.quantile_values {
                        let quantile = quantile?;
                        let statistic = format!(".p{}", quantile.quantile * 100.0);
                        self.push(
                            &around,
                            &statistic,
                            point.attributes,
                            time,
                            CounterValue::Double(quantile.value),
                        )?;
                    }
                }
                Ok(())
            }
            None => Ok(()),
        }
    }

    fn numbers(
        &mut self,
        around: &Around<'_>,
        points: Repeated<'_, NumberPoint<'_>>,
        mut admit: impl FnMut(u64, u32) -> bool,
    ) -> Result<(), WireError> {
        use pulsetrain_otlp::view::NumberValue;
        for point in points {
            let point = point?;
            // A point that only says that its series has ended has no value, and is to be counted all the same.
            let admitted = admit(point.time_unix_nano, point.flags);
            let Some(value) = point.value().filter(|_| admitted) else {
                continue;
            };
            if around.metric.unit == STATE {
                self.state(around, &point, value.as_f64())?;
                continue;
            }
            let value = match value {
                NumberValue::Int(value) => CounterValue::Int(value),
                NumberValue::Double(value) => CounterValue::Double(value),
            };
            self.push(around, "", point.attributes, point.time_unix_nano, value)?;
        }
        Ok(())
    }

    /// A state set has a point for each state; the one that is 1 is the present one.
    fn state(&mut self, around: &Around<'_>, point: &NumberPoint<'_>, value: f64) -> Result<(), WireError> {
        if value == 0.0 {
            return Ok(());
        }
        for attribute in point.attributes {
            if let AnyValue::String(state) = attribute?.value.unwrap_or_default() {
                self.states.push(StatePoint {
                    resource: around.resource,
                    track: around.metric.name.to_str_lossy().into_owned(),
                    time: point.time_unix_nano,
                    state: state.to_str_lossy().into_owned(),
                });
            }
        }
        Ok(())
    }

    fn distribution(
        &mut self,
        around: &Around<'_>,
        attributes: Repeated<'_, KeyValue<'_>>,
        time: u64,
        count: u64,
        sum: Option<f64>,
        buckets: &[quantiles::Bucket],
    ) -> Result<(), WireError> {
        self.push(
            around,
            ".count",
            attributes,
            time,
            CounterValue::Int(count as i64),
        )?;
        if let Some(sum) = sum {
            self.push(around, ".sum", attributes, time, CounterValue::Double(sum))?;
        }
        let settled = Around {
            is_delta: false,
            ..*around
        };
        for (quantile, statistic) in QUANTILES {
            if let Some(value) = quantiles::estimate(buckets, quantile) {
                self.push(&settled, statistic, attributes, time, CounterValue::Double(value))?;
            }
        }
        let mut total = 0;
        for bucket in buckets.iter().filter(|bucket| bucket.count > 0) {
            total += bucket.count;
            let statistic = format!(".le_{}", bucket.to);
            self.push(
                around,
                &statistic,
                attributes,
                time,
                CounterValue::Int(total as i64),
            )?;
        }
        Ok(())
    }

    fn push(
        &mut self,
        around: &Around<'_>,
        statistic: &str,
        attributes: Repeated<'_, KeyValue<'_>>,
        time: u64,
        value: CounterValue,
    ) -> Result<(), WireError> {
        let labels = labels(attributes)?;
        let metric = around.metric.name.to_str_lossy();
        let key = SeriesKey {
            resource: around.resource,
            name: format!("{metric}{statistic}{labels}"),
        };
        let next = self.series.len() as u32;
        let number = *self.index.entry(key).or_insert_with_key(|key| {
            let counts = statistic == ".count" || statistic.starts_with(".le_");
            let unit = around.metric.unit.to_str_lossy();
            self.series.push(Series {
                resource: key.resource,
                name: key.name.clone(),
                unit: if counts { String::new() } else { unit.into_owned() },
                description: around.metric.description.to_str_lossy().into_owned(),
                scale: statistic.starts_with(".p").then(|| format!("{metric}{labels}")),
                values: Vec::new(),
                is_delta: around.is_delta,
            });
            next
        });
        self.series[number as usize].values.push((time, value));
        Ok(())
    }
}

/// ` {key=value, ...}` in the order of the keys; nothing where there are none.
fn labels(attributes: Repeated<'_, KeyValue<'_>>) -> Result<String, WireError> {
    let mut labels = Vec::new();
    for attribute in attributes {
        let attribute = attribute?;
        let value = short_text(attribute.value.unwrap_or_default());
        labels.push(format!("{}={value}", attribute.key));
    }
    labels.sort_unstable();
    Ok(if labels.is_empty() {
        String::new()
    } else {
        format!(" {{{}}}", labels.join(", "))
    })
}
