//! The GPUs, with their last values and a short history for the GPU table.

use std::collections::{BTreeMap, VecDeque};

use pulsetrain_otlp::UnixNanos;

use super::{
    PageRejection,
    events::RunEvent,
    metrics::{Definition, MetricId},
    rejected::MAX_GPU_SERIES,
    run::Observed,
    series::{Bucket, Capacity, NO_STEP, Series},
};

/// The number of points of a GPU's history.
const POINTS: usize = 128;

/// The maximum number of times that a GPU's history is halved.
const MAX_THINNED: u32 = 4;

/// The maximum number of stored errors of one GPU.
const MAX_EVENTS: usize = 20;

/// A GPU.
#[derive(Debug, Default)]
pub(super) struct Gpu {
    pub(super) id: Box<str>,
    pub(super) index: Option<i64>,
    pub(super) host: Box<str>,
    /// The name of the model.
    pub(super) model: Box<str>,
    /// The run that uses it, if known.
    pub(super) run: Option<Box<str>>,
    pub(super) rank: Option<i64>,
    pub(super) last_nanos: UnixNanos,
    pub(super) metrics: BTreeMap<MetricId, Vec<Series>>,
    pub(super) events: VecDeque<RunEvent>,
    pub(super) revision: u64,
    pub(super) streamed_revision: u64,
    series: usize,
    /// The number of times that the capacity of its series was halved to save memory.
    thinned: u32,
}

impl Gpu {
    pub(super) fn new(host: &str, id: &str) -> Self {
        Self {
            host: host.into(),
            id: id.into(),
            ..Self::default()
        }
    }

    /// Adds a point to its series.
    ///
    /// # Errors
    /// The point is late, or its series is beyond the limit.
    pub(super) fn add(
        &mut self,
        metric: MetricId,
        definition: &Definition,
        label: &str,
        time_nanos: UnixNanos,
        value: Observed,
    ) -> Result<(), PageRejection> {
        let of_metric = self.metrics.entry(metric).or_default();
        let place = match of_metric.iter().position(|series| *series.label == *label) {
            Some(place) => place,
            None if value == Observed::End => return Ok(()),
            None if self.series >= MAX_GPU_SERIES => return Err(PageRejection::SeriesOfGpu),
            None => {
                let capacity = if definition.is_gpu_column {
                    Capacity::for_points(POINTS >> self.thinned)
                } else {
                    Capacity::LATEST
                };
                of_metric.push(Series::new(0, label, capacity));
                self.series += 1;
                of_metric.len() - 1
            }
        };
        let series = &mut of_metric[place];
        if series.is_late(time_nanos, value) {
            return Err(PageRejection::Late);
        }
        if let Some(value) = series.observe(value, time_nanos, definition.kind) {
            series.push(Bucket::new(time_nanos, NO_STEP, value, 0));
            self.last_nanos = self.last_nanos.max(time_nanos);
        }
        self.revision += 1;
        Ok(())
    }

    pub(super) fn can_be_thinned(&self) -> bool {
        self.thinned < MAX_THINNED
    }

    /// Halves the capacity of its series.
    pub(super) fn thin(&mut self) {
        if !self.can_be_thinned() {
            return;
        }
        self.thinned += 1;
        let every = self.metrics.values_mut().flatten();
        every
            .filter(|series| series.capacity() != Capacity::LATEST)
            .for_each(|series| series.resize(Capacity::for_points(POINTS >> self.thinned)));
    }

    pub(super) fn bytes(&self) -> usize {
        let series = self.metrics.values().flatten().map(Series::bytes).sum::<usize>();
        let events = self.events.iter().map(RunEvent::bytes).sum::<usize>();
        size_of::<Self>() + series + events
    }

    /// Adds an error of the GPU.
    pub(super) fn record(&mut self, event: RunEvent) {
        self.revision += 1;
        self.events.push_back(event);
        if self.events.len() > MAX_EVENTS {
            self.events.pop_front();
        }
    }
}
