//! Adds points to the series of their run and rank, or of their GPU.

use std::{collections::HashSet, fmt::Write, sync::LazyLock};

use pulsetrain_otlp::{
    UnixNanos, WireError,
    view::{
        KeyValue, Message, Metric, MetricData, MetricsData, NumberPoint, Repeated, ResourceMetrics,
        Temporality,
    },
};
use pulsetrain_semconv::attribute;

use super::{
    super::{
        PageRejection,
        events::bounded,
        history::History,
        layout,
        metrics::MetricId,
        run::{Observed, RunPoint},
        steps::StepKey,
    },
    origin::{Origin, find, integer, text},
};

/// The maximum length of a label in characters.
const MAX_LABEL_CHARACTERS: usize = 300;

/// A decoded point.
struct Point<'a> {
    attributes: Repeated<'a, KeyValue<'a>>,
    time_nanos: UnixNanos,
    /// The value, or `None` for an absent number and for a histogram without a sum.
    value: Option<Observed>,
}

/// Adds a batch of metrics.
pub(crate) fn metrics(history: &mut History, bytes: &[u8], now_millis: i64) -> Result<(), WireError> {
    for resource in MetricsData::decode(bytes)?.resource_metrics.iter() {
        let resource = resource?;
        let origin = Origin::of(resource.resource)?;
        let steps = Steps::of(&resource)?;
        let mut adding = ResourcePoints {
            history,
            origin,
            steps,
            now_millis,
            label: String::new(),
        };
        adding.note_steps();
        for scope in resource.scope_metrics.iter() {
            for metric in scope?.metrics.iter() {
                adding.metric(&metric?)?;
            }
        }
    }
    Ok(())
}

/// Adds the points of one resource.
struct ResourcePoints<'h> {
    history: &'h mut History,
    origin: Origin,
    steps: Steps,
    now_millis: i64,
    label: String,
}

/// The end times and numbers of the steps in a resource's batch, in order.
struct Steps(Vec<(UnixNanos, i64)>);

impl Steps {
    fn of(resource: &ResourceMetrics<'_>) -> Result<Self, WireError> {
        let mut steps = Vec::new();
        for scope in resource.scope_metrics.iter() {
            for metric in scope?.metrics.iter() {
                let metric = metric?;
                if metric.name != *layout::STEP_NUMBER.name {
                    continue;
                }
                each_point(&metric, |point| {
                    if let Some(Observed::Value(step)) = point.value {
                        steps.push((point.time_nanos, step as i64));
                    }
                    Ok(())
                })?;
            }
        }
        steps.sort_unstable();
        Ok(Self(steps))
    }

    /// Returns the step that ended at that time, or the last one before it.
    fn at(&self, time_nanos: UnixNanos) -> Option<i64> {
        let after = self.0.partition_point(|(time, _)| *time <= time_nanos);
        self.0.get(after.checked_sub(1)?).map(|(_, step)| *step)
    }
}

impl ResourcePoints<'_> {
    fn note_steps(&mut self) {
        let Some((last_nanos, last)) = self.steps.0.last().copied() else {
            return;
        };
        // A rejected run is counted with its points.
        let Ok(Some(run)) = self.origin.run(self.history, true, self.now_millis) else {
            return;
        };
        for (time_nanos, step) in &self.steps.0 {
            run.clock.note(*time_nanos, *step);
        }
        if last_nanos >= run.last_step_nanos {
            run.last_step_nanos = last_nanos;
            run.step = Some(last);
        }
        run.member(self.origin.rank).step = Some(last);
    }

    fn metric(&mut self, metric: &Metric<'_>) -> Result<(), WireError> {
        let id = self.history.catalogue.id(metric);
        each_point(metric, |point| {
            let added = match (id, point.value) {
                (None, _) => Err(PageRejection::Metrics),
                (_, None) => Err(PageRejection::NoValue),
                (Some(id), Some(value)) => match find(&point.attributes, &attribute::GPU_ID)? {
                    Some(gpu) => self.gpu_point(id, &bounded(&text(gpu)), &point, value)?,
                    None => self.run_point(id, &point, value)?,
                },
            };
            if let Err(rejection) = added {
                self.history.counts.rejected.count(rejection);
            }
            Ok(())
        })
    }

    fn run_point(
        &mut self,
        metric: MetricId,
        point: &Point<'_>,
        value: Observed,
    ) -> Result<Result<(), PageRejection>, WireError> {
        write_label(&point.attributes, &mut self.label)?;
        Ok(self.add_to_run(metric, point.time_nanos, value))
    }

    fn add_to_run(
        &mut self,
        metric: MetricId,
        time_nanos: UnixNanos,
        value: Observed,
    ) -> Result<(), PageRejection> {
        let is_training = layout::is_of_a_run(&self.history.catalogue.definition(metric).name);
        if self
            .origin
            .run(self.history, is_training, self.now_millis)?
            .is_none()
        {
            return Ok(());
        }
        let History {
            runs,
            catalogue,
            config,
            ..
        } = &mut *self.history;
        let (Some(run), definition) = (runs.get_mut(self.origin.run_id()), catalogue.definition(metric))
        else {
            return Ok(());
        };
        let step = self.steps.at(time_nanos);
        let added = RunPoint {
            rank: self.origin.rank,
            metric,
            label: &self.label,
            time_nanos,
            step,
            attempt: self.origin.attempt,
            value,
        };
        let value = run.add(&added, definition, config)?;
        let is_duration = *definition.name == *layout::STEP_DURATION.name;
        if let (Some(seconds), Some(number)) = (value, step)
            && (is_duration || definition.phase.is_some())
        {
            let key = StepKey {
                number,
                attempt: self.origin.attempt(),
                rank: self.origin.rank.unwrap_or(0),
            };
            let most = run.max_steps(config);
            run.steps.point(key, definition.phase, seconds, time_nanos, most);
        }
        Ok(())
    }

    fn gpu_point(
        &mut self,
        metric: MetricId,
        gpu: &str,
        point: &Point<'_>,
        value: Observed,
    ) -> Result<Result<(), PageRejection>, WireError> {
        write_label(&point.attributes, &mut self.label)?;
        let key = (self.origin.host.clone(), gpu.into());
        if let Err(rejection) = self.history.add_gpu(&key) {
            return Ok(Err(rejection));
        }
        let History { gpus, catalogue, .. } = &mut *self.history;
        let Some(gpu) = gpus.get_mut(&key) else {
            return Ok(Ok(()));
        };
        for pair in point.attributes.iter() {
            let pair = pair?;
            let (key, value) = (pair.key.to_str_lossy(), pair.value.unwrap_or_default());
            if key == attribute::GPU_INDEX.name {
                gpu.index = integer(value);
            } else if key == attribute::GPU_NAME.name {
                gpu.model = bounded(&text(value));
            } else if key == attribute::TRAIN_RANK.name {
                gpu.rank = integer(value);
            } else if key == attribute::TRAIN_RUN_ID.name {
                gpu.run = Some(bounded(&text(value)));
            }
        }
        if self.origin.has_run_id() && gpu.run.is_none() {
            gpu.run = Some(self.origin.run_id().into());
            gpu.rank = gpu.rank.or(self.origin.rank);
        }
        let definition = catalogue.definition(metric);
        Ok(gpu.add(metric, definition, &self.label, point.time_nanos, value))
    }
}

/// Writes the attributes that distinguish the series of a metric, as `key=value`.
fn write_label(attributes: &Repeated<'_, KeyValue<'_>>, out: &mut String) -> Result<(), WireError> {
    static DESCRIPTIVE: LazyLock<HashSet<&'static str>> = LazyLock::new(|| {
        let all = attribute::ALL.iter();
        all.filter(|attribute| attribute.descriptive)
            .map(|attribute| attribute.name)
            .collect()
    });
    out.clear();
    if attributes.is_empty() {
        return Ok(());
    }
    let mut parts = Vec::new();
    for pair in attributes.iter() {
        let pair = pair?;
        let key = pair.key.to_str_lossy();
        if !layout::is_owner(&key) && !DESCRIPTIVE.contains(&*key) {
            parts.push((key, text(pair.value.unwrap_or_default())));
        }
    }
    parts.sort_unstable();
    for (place, (key, value)) in parts.iter().enumerate() {
        let comma = if place > 0 { ", " } else { "" };
        // Writing to a string cannot fail.
        let _ = write!(out, "{comma}{key}={value}");
    }
    if let Some((end, _)) = out.char_indices().nth(MAX_LABEL_CHARACTERS) {
        out.truncate(end);
    }
    Ok(())
}

/// Calls `add` with each point.
fn each_point<'a>(
    metric: &Metric<'a>,
    mut add: impl FnMut(Point<'a>) -> Result<(), WireError>,
) -> Result<(), WireError> {
    macro_rules! each {
        ($points:expr, $observed:expr) => {
            for point in $points.iter() {
                let point = point?;
                let value = if point.flags & NumberPoint::NO_RECORDED_VALUE != 0 {
                    Some(Observed::End)
                } else {
                    $observed(&point)
                };
                let (attributes, time_nanos) = (point.attributes, UnixNanos(point.time_unix_nano));
                add(Point {
                    attributes,
                    time_nanos,
                    value,
                })?;
            }
        };
    }
    match metric.data() {
        None => {}
        Some(MetricData::Gauge(gauge)) => each!(gauge.data_points, |point: &NumberPoint<'_>| {
            point.value().map(|value| Observed::Value(value.as_f64()))
        }),
        Some(MetricData::Sum(sum)) => {
            let is_delta = is_delta(sum.aggregation_temporality);
            each!(sum.data_points, |point: &NumberPoint<'_>| {
                let value = point.value()?.as_f64();
                if sum.is_monotonic || is_delta {
                    Some(observed(
                        value,
                        0,
                        (
                            UnixNanos(point.start_time_unix_nano),
                            UnixNanos(point.time_unix_nano),
                        ),
                        is_delta,
                    ))
                } else {
                    Some(Observed::Value(value))
                }
            });
        }
        Some(MetricData::Histogram(histogram)) => {
            let is_delta = is_delta(histogram.aggregation_temporality);
            each!(
                histogram.data_points,
                |point: &pulsetrain_otlp::view::HistogramPoint<'_>| {
                    let span = (
                        UnixNanos(point.start_time_unix_nano),
                        UnixNanos(point.time_unix_nano),
                    );
                    Some(observed(point.sum?, point.count, span, is_delta))
                }
            );
        }
        Some(MetricData::ExponentialHistogram(histogram)) => {
            let is_delta = is_delta(histogram.aggregation_temporality);
            each!(
                histogram.data_points,
                |point: &pulsetrain_otlp::view::ExponentialHistogramPoint<'_>| {
                    let span = (
                        UnixNanos(point.start_time_unix_nano),
                        UnixNanos(point.time_unix_nano),
                    );
                    Some(observed(point.sum?, point.count, span, is_delta))
                }
            );
        }
        Some(MetricData::Summary(summary)) => {
            each!(
                summary.data_points,
                |point: &pulsetrain_otlp::view::SummaryPoint<'_>| {
                    let span = (
                        UnixNanos(point.start_time_unix_nano),
                        UnixNanos(point.time_unix_nano),
                    );
                    Some(observed(point.sum, point.count, span, false))
                }
            );
        }
    }
    Ok(())
}

fn is_delta(temporality: i32) -> bool {
    Temporality::from(temporality) == Temporality::Delta
}

fn observed(
    sum: f64,
    count: u64,
    (start_nanos, end_nanos): (UnixNanos, UnixNanos),
    is_delta: bool,
) -> Observed {
    if is_delta {
        let seconds = end_nanos.nanos_since(start_nanos) as f64 / 1e9;
        Observed::Delta { sum, count, seconds }
    } else {
        Observed::Cumulative {
            sum,
            count,
            start_nanos,
        }
    }
}
