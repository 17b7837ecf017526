//! Adds points to the series of their run and rank, or of their GPU.

use std::{collections::HashSet, fmt::Write, sync::LazyLock};

use pulsetrain_otlp::{
    UnixNanos, WireError,
    json::value_text,
    view::{KeyValue, Metric, Repeated, Temporality},
    walk::{self, AnyPoint, PointKind},
};
use pulsetrain_run::{SeriesPoint, StepTimes, integer};
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
    origin::{Origin, find},
};

/// The maximum length of a label in characters.
const MAX_LABEL_CHARACTERS: usize = 300;

/// Adds a batch of metrics.
pub(crate) fn metrics(history: &mut History, bytes: &[u8], now_millis: i64) -> Result<(), WireError> {
    for resource in walk::metrics(bytes) {
        let resource = resource?;
        let origin = Origin::from_attributes(resource.attributes())?;
        let steps = StepTimes::from_resource(&resource)?;
        let mut adding = ResourcePoints {
            history,
            origin,
            steps,
            now_millis,
            label: String::new(),
        };
        adding.record_steps();
        for metric in resource.items() {
            adding.metric(&metric?)?;
        }
    }
    Ok(())
}

/// Adds the points of one resource.
struct ResourcePoints<'h> {
    history: &'h mut History,
    origin: Origin,
    /// The steps that the resource reports in this batch.
    steps: StepTimes,
    now_millis: i64,
    label: String,
}

impl ResourcePoints<'_> {
    fn record_steps(&mut self) {
        let Some((last_nanos, last)) = self.steps.last() else {
            return;
        };
        // A rejected run is counted with its points.
        let Ok(Some(run)) = self.origin.run(self.history, true, self.now_millis) else {
            return;
        };
        for (time_nanos, step) in self.steps.iter() {
            run.clock.record(time_nanos, step);
        }
        if last_nanos >= run.last_step_nanos {
            run.last_step_nanos = last_nanos;
            run.step = Some(last);
        }
        run.member(self.origin.rank).step = Some(last);
    }

    fn metric(&mut self, metric: &Metric<'_>) -> Result<(), WireError> {
        let id = self.history.catalogue.id(metric);
        metric.try_each_point(|point| {
            let added = match (id, observed(&point)) {
                (None, _) => Err(PageRejection::Metrics),
                (_, None) => Err(PageRejection::NoValue),
                (Some(id), Some(value)) => match find(&point.attributes(), &attribute::GPU_ID)? {
                    Some(gpu) => self.gpu_point(id, &bounded(&value_text(gpu)), &point, value)?,
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
        point: &AnyPoint<'_, '_>,
        value: Observed,
    ) -> Result<Result<(), PageRejection>, WireError> {
        write_label(&point.attributes(), &mut self.label)?;
        Ok(self.add_to_run(metric, point.time(), value))
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
        point: &AnyPoint<'_, '_>,
        value: Observed,
    ) -> Result<Result<(), PageRejection>, WireError> {
        write_label(&point.attributes(), &mut self.label)?;
        let key = (self.origin.host.clone(), gpu.into());
        if let Err(rejection) = self.history.add_gpu(&key) {
            return Ok(Err(rejection));
        }
        let History { gpus, catalogue, .. } = &mut *self.history;
        let Some(gpu) = gpus.get_mut(&key) else {
            return Ok(Ok(()));
        };
        for pair in point.attributes().iter() {
            let pair = pair?;
            let (key, value) = (pair.key.to_str_lossy(), pair.value.unwrap_or_default());
            if key == attribute::GPU_INDEX.name {
                gpu.index = integer(value);
            } else if key == attribute::GPU_NAME.name {
                gpu.model = bounded(&value_text(value));
            } else if key == attribute::TRAIN_RANK.name {
                gpu.rank = integer(value);
            } else if key == attribute::TRAIN_RUN_ID.name {
                gpu.run = Some(bounded(&value_text(value)));
            }
        }
        if self.origin.has_run_id() && gpu.run.is_none() {
            gpu.run = Some(self.origin.run_id().into());
            gpu.rank = gpu.rank.or(self.origin.rank);
        }
        let definition = catalogue.definition(metric);
        Ok(gpu.add(metric, definition, &self.label, point.time(), value))
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
            parts.push((key, value_text(pair.value.unwrap_or_default())));
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

/// Returns the value of a point, or `None` for an absent number and for a distribution without a sum.
fn observed(point: &AnyPoint<'_, '_>) -> Option<Observed> {
    if point.is_end() {
        return Some(Observed::End);
    }
    let is_level = match point.kind {
        PointKind::Gauge => true,
        PointKind::Sum {
            temporality,
            is_monotonic,
        } => !is_monotonic && temporality != Temporality::Delta,
        _ => false,
    };
    if is_level {
        return Some(Observed::Value(point.number()?.as_f64()));
    }
    let has_sum = point
        .distribution()
        .is_none_or(|distribution| distribution.sum.is_some());
    SeriesPoint::from_point(point)
        .filter(|_| has_sum)
        .map(Observed::Point)
}
