//! Info, health and availability metrics of a GPU; they need no driver reading.

use std::{collections::BTreeSet, sync::Arc};

use pulsetrain_otlp::UnixNanos;
use pulsetrain_semconv::{Metric, attribute, metric};

use super::{GpuState, ObservedSeries, Recorder, SubjectKind};
use crate::{
    Gpu, GpuNotice, GpuSemconv, GpuTrouble, Reason,
    reading::{Cadence, Entity, flag},
    record::{store::Observation, survives_gpu_loss},
};

impl GpuState {
    pub(super) fn report_trouble(
        &mut self,
        gpu: &Arc<Gpu>,
        recorder: &mut Recorder<'_>,
        notices: &mut Vec<GpuNotice>,
    ) {
        if gpu.trouble == self.gpu.trouble {
            return;
        }
        let (index, uuid) = (gpu.index, gpu.uuid.clone());
        let Some(trouble) = gpu.trouble else {
            return notices.push(GpuNotice::Back { gpu: index, uuid });
        };
        notices.push(GpuNotice::Trouble {
            gpu: index,
            uuid,
            trouble,
        });
        let ids: Vec<u32> = self.subject_ids().collect();
        recorder.store.end(recorder.time_unix_nanos, |key, metric| {
            ids.contains(&key.subject) && !(gpu.is_ours() && survives_gpu_loss(key, metric))
        });
    }

    pub(super) fn record_facts(&mut self, recorder: &mut Recorder<'_>) {
        if self.gpu.trouble.is_some() {
            return;
        }
        let instances = self
            .gpu
            .instances
            .iter()
            .map(|instance| Entity::Instance(instance.index));
        let all: Vec<Entity> = std::iter::once(Entity::Gpu).chain(instances).collect();
        for entity in all {
            let info = ObservedSeries {
                subject: SubjectKind::Facts(entity),
                cadence: Cadence::Once,
                ..ObservedSeries::of_gpu(&metric::GPU_INFO)
            };
            self.observe(info, [None; 2], Observation::Held(1.0), recorder);
        }
        if self.gpu.mig == Some(true) {
            let split_into: BTreeSet<u32> = self
                .gpu
                .instances
                .iter()
                .map(|instance| instance.gpu_instance_id)
                .collect();
            let own = ObservedSeries::of_gpu(&metric::GPU_MIG_INSTANCES);
            let count = Observation::Now(split_into.len() as f64);
            self.observe(own, [None; 2], count, recorder);
        }
    }

    pub(super) fn record_health(&mut self, recorder: &mut Recorder<'_>) {
        let active = self.gpu.trouble.and_then(GpuTrouble::fault);
        for fault in ["lost", "unresponsive", "driver_error"] {
            let own = ObservedSeries::of_gpu(&metric::GPU_FAULT_ACTIVE);
            let texts = [Some((&attribute::GPU_FAULT, fault)), None];
            let holds = Observation::Held(flag(active == Some(fault)));
            self.observe(own, texts, holds, recorder);
        }
        if recorder.semconv == GpuSemconv::Gpu {
            return;
        }
        for hw in self.health.status(active.is_some()) {
            self.record_twin(&hw, Cadence::Tick, UnixNanos::UNKNOWN, recorder);
        }
    }

    pub(super) fn report_unavailable(&mut self, recorder: &mut Recorder<'_>) {
        let own = ObservedSeries {
            cadence: Cadence::Once,
            ..ObservedSeries::of_gpu(&metric::GPU_METRIC_UNAVAILABLE)
        };
        let gpu = Arc::clone(&self.gpu);
        let missing = gpu.missing();
        let (subject, _) = self.subject(SubjectKind::Own(Entity::Gpu), recorder);
        recorder.store.end(recorder.time_unix_nanos, |key, metric| {
            key.subject == subject
                && metric.ordinal == metric::GPU_METRIC_UNAVAILABLE.ordinal
                && !missing.iter().any(|(reason, metrics)| {
                    let mut names = metrics.iter().map(|metric| metric.name);
                    names.any(|name| key.has_texts(name, reason.as_str()))
                })
        });
        for (reason, metric) in missing
            .iter()
            .flat_map(|(reason, all)| all.iter().map(move |one| (*reason, *one)))
        {
            let texts = [
                Some((&attribute::GPU_METRIC_NAME, metric.name)),
                Some((&attribute::GPU_UNAVAILABLE_REASON, reason.as_str())),
            ];
            self.observe(own, texts, Observation::Held(1.0), recorder);
            if reason != Reason::TurnedOff && self.reported.insert((reason, metric.name)) {
                self.unreported.entry(reason).or_default().push(metric);
            }
        }
    }

    /// Returns whether the GPU does not provide a metric at all.
    pub(in crate::record) fn lacks(&self, metric: &Metric) -> bool {
        self.gpu
            .unavailable
            .iter()
            .any(|row| row.metric.ordinal == metric.ordinal && !row.partly)
    }
}
