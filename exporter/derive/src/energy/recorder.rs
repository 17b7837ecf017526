//! Energy and activity of steps as metrics: cumulative series for each resource that reports steps.

use pulsetrain_otlp::{
    UnixNanos,
    write::{AttributeValue, Envelope},
};
use pulsetrain_pipeline::Batch;
use pulsetrain_record::{SeriesLimits, SeriesWriter};
use pulsetrain_semconv::{SCHEMA_URL, attribute, metric};

use super::{step_energy::StepEnergy, window::Window};
use crate::SCOPE;

/// The most resources that are kept; at the limit the series of the resource without steps for the longest time are reset.
const MAX_RESOURCES: usize = 1024;

/// The limits for the series of a resource, which differ by the few values of an enum.
const SERIES: SeriesLimits = SeriesLimits {
    per_metric: 64,
    ended: 0,
};

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
    series: SeriesWriter,
    last_unix_nanos: UnixNanos,
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
        let status = [(
            &attribute::GPU_STEP_ENERGY_STATUS,
            AttributeValue::Text(energy.status.as_str()),
        )];
        let mut record = |metric, value: Option<f64>, attributes: &[_]| {
            if let Some(value) = value {
                // A value that is not valid for a sum is not sent.
                let _ = resource.series.record(metric, window.end, value, attributes);
            }
        };
        record(&metric::GPU_STEPS, Some(1.0), &status);
        let complete = energy.energy_joules.filter(|_| energy.status.is_complete());
        record(&metric::GPU_STEP_ENERGY, complete, &[]);
        record(&metric::GPU_STEP_MEAN_POWER, energy.mean_watts, &[]);
        record(&metric::GPU_STEP_PEAK_POWER, energy.peak_watts, &[]);
        let throttle = energy.throttle.as_ref().map(|(_, secs)| *secs);
        record(&metric::GPU_STEP_THROTTLE_TIME, throttle, &[]);
        record(&metric::GPU_STEP_BUSY_RATIO, energy.busy_ratio, &[]);
        record(&metric::PERF_ENERGY_PER_TOKEN, joules_per_token, &[]);
    }

    /// Records energy that a resource used in one phase of its run.
    pub(super) fn add_energy(&mut self, resource: &[u8], window: Window, phase: Phase, joules: f64) {
        let phase = [(&attribute::GPU_RUN_PHASE, AttributeValue::Text(phase.as_str()))];
        let resource = self.resource(resource, window);
        let _ = resource
            .series
            .record(&metric::GPU_RUN_ENERGY, window.end, joules, &phase);
    }

    /// Returns the points since the last call as batches derived from `batch`.
    pub(super) fn batches(&mut self, batch: &Batch) -> impl Iterator<Item = Batch> {
        self.resources.iter_mut().filter_map(|resource| {
            let encoded = resource.series.finish(&resource.envelope)?;
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
            .filter(|(_, resource)| resource.series.is_empty())
            .min_by_key(|(_, resource)| resource.last_unix_nanos)
            .map(|(place, _)| place);
        if let Some(place) = silent {
            self.resources.swap_remove(place);
        }
    }
}

impl Resource {
    fn new(bytes: &[u8], start_unix_nanos: UnixNanos) -> Self {
        let mut series = SeriesWriter::new(SERIES);
        series.start_at(start_unix_nanos);
        Self {
            bytes: bytes.to_vec(),
            envelope: Envelope::of_resource(bytes, SCOPE, env!("CARGO_PKG_VERSION"), SCHEMA_URL),
            series,
            last_unix_nanos: start_unix_nanos,
        }
    }
}
