//! Energy and activity of steps as metrics: cumulative series for each resource that reports steps.

use pulsetrain_otlp::{
    UnixNanos,
    view::NumberValue,
    write::{Envelope, MetricsWriter, PointParts, Value},
};
use pulsetrain_pipeline::Batch;
use pulsetrain_semconv::{Metric, SCHEMA_URL, attribute, metric};

use super::{
    step_energy::{Status, StepEnergy},
    window::Window,
};
use crate::{SCOPE, histogram::Histogram};

/// The most resources that are kept; at the limit the series of the resource without steps for the longest time are reset.
const MAX_RESOURCES: usize = 1024;

/// Records energy and activity of steps.
#[derive(Debug, Default)]
pub(super) struct Recorder {
    resources: Vec<Resource>,
}

/// The series of one resource.
#[derive(Debug)]
struct Resource {
    bytes: Vec<u8>,
    envelope: Envelope,
    writer: MetricsWriter,
    start_unix_nanos: UnixNanos,
    last_unix_nanos: UnixNanos,
    energy: Histogram,
    mean_power: Histogram,
    peak_power: Histogram,
    throttle: Histogram,
    /// The number of steps by status.
    steps: Vec<(Status, i64)>,
    /// The energy in steps and outside of them.
    used: [f64; 2],
}

/// A part of a run in which its GPUs used energy (`gpu.run.phase`).
#[derive(Clone, Copy, Debug)]
pub(super) enum Phase {
    Step,
    Outside,
}

impl Phase {
    fn as_str(self) -> &'static str {
        match self {
            Self::Step => "step",
            Self::Outside => "outside",
        }
    }
}

impl Recorder {
    /// Records a step of a resource.
    pub(super) fn record(
        &mut self,
        resource: &[u8],
        window: Window,
        energy: &StepEnergy,
        joules_per_token: Option<f64>,
    ) {
        let resource = self.resource(resource, window);
        let time = window.end;
        resource.count(time, energy.status);
        if energy.status.is_complete() {
            resource.observe(|resource| &mut resource.energy, time, energy.energy_joules);
        }
        resource.observe(|resource| &mut resource.mean_power, time, energy.mean_watts);
        resource.observe(|resource| &mut resource.peak_power, time, energy.peak_watts);
        let throttle = energy.throttle.as_ref().map(|(_, secs)| *secs);
        resource.observe(|resource| &mut resource.throttle, time, throttle);
        resource.gauge(&metric::GPU_STEP_BUSY_RATIO, time, energy.busy_ratio);
        resource.gauge(&metric::PERF_ENERGY_PER_TOKEN, time, joules_per_token);
    }

    /// Records energy that a resource used in one phase of its run.
    pub(super) fn add_energy(&mut self, resource: &[u8], window: Window, phase: Phase, joules: f64) {
        self.resource(resource, window)
            .add_energy(window.end, phase, joules);
    }

    /// Returns the points since the last call as batches derived from `batch`.
    pub(super) fn batches(&mut self, batch: &Batch) -> impl Iterator<Item = Batch> {
        self.resources.iter_mut().filter_map(|resource| {
            let encoded = resource.writer.finish(&resource.envelope)?;
            Some(batch.derived(encoded.signal, encoded.items, encoded.bytes))
        })
    }

    fn resource(&mut self, bytes: &[u8], window: Window) -> &mut Resource {
        let place = match self.resources.iter().position(|resource| resource.bytes == bytes) {
            Some(place) => place,
            None => {
                self.make_room();
                self.resources.push(Resource::new(bytes, window.start));
                self.resources.len() - 1
            }
        };
        let resource = &mut self.resources[place];
        resource.last_unix_nanos = resource.last_unix_nanos.max(window.end);
        resource
    }

    /// Evicts only resources whose points are all sent.
    fn make_room(&mut self) {
        if self.resources.len() < MAX_RESOURCES {
            return;
        }
        let silent = self.resources.iter().enumerate();
        let silent = silent
            .filter(|(_, resource)| resource.writer.is_empty())
            .min_by_key(|(_, resource)| resource.last_unix_nanos)
            .map(|(place, _)| place);
        if let Some(place) = silent {
            self.resources.swap_remove(place);
        }
    }
}

impl Resource {
    fn new(bytes: &[u8], start_unix_nanos: UnixNanos) -> Self {
        Self {
            bytes: bytes.to_vec(),
            envelope: Envelope::of_resource(bytes, SCOPE, env!("CARGO_PKG_VERSION"), SCHEMA_URL),
            writer: MetricsWriter::default(),
            start_unix_nanos,
            last_unix_nanos: start_unix_nanos,
            energy: Histogram::new(&metric::GPU_STEP_ENERGY),
            mean_power: Histogram::new(&metric::GPU_STEP_MEAN_POWER),
            peak_power: Histogram::new(&metric::GPU_STEP_PEAK_POWER),
            throttle: Histogram::new(&metric::GPU_STEP_THROTTLE_TIME),
            steps: Vec::new(),
            used: [0.0; 2],
        }
    }

    fn observe(
        &mut self,
        of: impl Fn(&mut Self) -> &mut Histogram,
        time_unix_nanos: UnixNanos,
        value: Option<f64>,
    ) {
        let Some(value) = value else { return };
        let point = PointParts {
            start_unix_nanos: self.start_unix_nanos,
            time_unix_nanos,
            attributes: &[],
        };
        let histogram = of(self);
        histogram.observe(value);
        let histogram = histogram.clone();
        self.writer
            .histogram(histogram.metric(), point, histogram.parts());
    }

    fn gauge(&mut self, metric: &'static Metric, time_unix_nanos: UnixNanos, value: Option<f64>) {
        let Some(value) = value else { return };
        let point = PointParts {
            time_unix_nanos,
            ..PointParts::default()
        };
        self.writer.number(metric, point, NumberValue::Double(value));
    }

    fn add_energy(&mut self, time_unix_nanos: UnixNanos, phase: Phase, joules: f64) {
        let used = &mut self.used[phase as usize];
        *used += joules;
        let point = PointParts {
            start_unix_nanos: self.start_unix_nanos,
            time_unix_nanos,
            attributes: &[(&attribute::GPU_RUN_PHASE, Value::Text(phase.as_str()))],
        };
        self.writer
            .number(&metric::GPU_RUN_ENERGY, point, NumberValue::Double(*used));
    }

    fn count(&mut self, time_unix_nanos: UnixNanos, status: Status) {
        let place = match self.steps.iter().position(|(known, _)| *known == status) {
            Some(place) => place,
            None => {
                self.steps.push((status, 0));
                self.steps.len() - 1
            }
        };
        let (_, count) = &mut self.steps[place];
        *count += 1;
        let point = PointParts {
            start_unix_nanos: self.start_unix_nanos,
            time_unix_nanos,
            attributes: &[(&attribute::GPU_STEP_ENERGY_STATUS, Value::Text(status.as_str()))],
        };
        self.writer
            .number(&metric::GPU_STEPS, point, NumberValue::Int(*count));
    }
}
