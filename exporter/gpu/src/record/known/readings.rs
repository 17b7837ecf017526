//! Readings as values of series, under the names `gpu.*`, `hw.*` or both.

use std::collections::BTreeMap;

use pulsetrain_otlp::UnixNanos;
use pulsetrain_semconv::{AttributeKind, Metric, metric};

use super::{GpuState, ObservedSeries, Recorder, SubjectKind};
use crate::{
    GpuSemconv,
    reading::{Cadence, Entity, Reading, Sample, flag},
    record::{
        hw_semconv::{self, Component, HwMetric},
        store::Observation,
    },
};

impl GpuState {
    /// Records all readings of the GPU.
    pub(in crate::record) fn record(&mut self, readings: &[Reading], recorder: &mut Recorder<'_>) {
        let mut memory = BTreeMap::<Entity, (f64, f64)>::new();
        for reading in readings {
            // A process that has ended in the meantime.
            if !self.is_there(SubjectKind::Own(reading.entity)) {
                continue;
            }
            self.health.observe(reading);
            if let Sample::Now(bytes) = reading.value {
                let is = |metric: &Metric| reading.metric.ordinal == metric.ordinal;
                if is(&metric::GPU_MEMORY_USED) || is(&metric::GPU_MIG_MEMORY_USED) {
                    memory.entry(reading.entity).or_default().0 = bytes;
                } else if is(&metric::GPU_MEMORY_LIMIT) || is(&metric::GPU_MIG_MEMORY_LIMIT) {
                    memory.entry(reading.entity).or_default().1 = bytes;
                }
            }
            self.record_one(reading, recorder);
        }
        self.record_health(recorder);
        if recorder.semconv != GpuSemconv::Gpu {
            for (entity, (used, limit)) in memory.into_iter().filter(|(_, (_, limit))| *limit > 0.0) {
                if let Some(component) = Component::from_entity(entity) {
                    self.record_twin(
                        &HwMetric::memory_utilization(component, used / limit),
                        Cadence::Tick,
                        UnixNanos::UNKNOWN,
                        recorder,
                    );
                }
            }
        }
    }

    fn record_one(&mut self, reading: &Reading, recorder: &mut Recorder<'_>) {
        let hw = match recorder.semconv {
            GpuSemconv::Gpu => None,
            GpuSemconv::Hw | GpuSemconv::Both => hw_semconv::for_reading(reading),
        };
        if let Some(hw) = &hw {
            self.record_twin(hw, reading.cadence, reading.time_unix_nanos, recorder);
        }
        if hw.is_some() && recorder.semconv == GpuSemconv::Hw {
            return;
        }
        let own = ObservedSeries {
            subject: SubjectKind::Own(reading.entity),
            metric: reading.metric,
            labels: reading.labels,
            cadence: reading.cadence,
            driver_unix_nanos: reading.time_unix_nanos,
        };
        match reading.value {
            Sample::State(attribute, state) => {
                let AttributeKind::Enum(states) = attribute.kind else {
                    return;
                };
                for name in states {
                    let texts = [Some((attribute, *name)), None];
                    self.observe(own, texts, Observation::Held(flag(*name == state)), recorder);
                }
            }
            value => {
                if let Some(entry) = entry_of(reading.metric, value, reading.cadence) {
                    self.observe(own, [None; 2], entry, recorder);
                }
            }
        }
    }
}

/// Returns the observation of a value: states and constants are written when they change.
pub(in crate::record) fn entry_of(metric: &Metric, value: Sample, cadence: Cadence) -> Option<Observation> {
    Some(match value {
        Sample::Now(value) if cadence == Cadence::Once || matches!(metric.unit, "{state}" | "{link}") => {
            Observation::Held(value)
        }
        Sample::Now(value) => Observation::Now(value),
        Sample::Total { raw, scale, wraps } => Observation::Total { raw, scale, wraps },
        Sample::Earlier { raw, scale } => Observation::Earlier { raw, scale },
        Sample::Observed(value) => Observation::Observed(value),
        Sample::NothingObserved => Observation::NothingObserved,
        Sample::State(..) => return None,
    })
}
