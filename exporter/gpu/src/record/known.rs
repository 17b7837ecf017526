//! The state of one GPU: its `subjects` with the attributes of their series, its `readings`, and its `info_metrics`.

mod info_metrics;
mod readings;
mod subjects;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use pulsetrain_otlp::UnixNanos;
use pulsetrain_semconv::Metric;

pub(super) use self::readings::entry_of;
use super::{
    events,
    health::Health,
    hw_semconv::{Component, HwMetric},
    store::{Observation, ObservationContext, SeriesStore, Texts},
    subject::EntityAttributes,
};
use crate::{
    Driver, Gpu, GpuAttribution, GpuNotice, GpuSemconv, MissingMetric, Reason, Vendor,
    reading::{Cadence, Entity, Labels},
};

/// A source of unique ids for subjects.
#[derive(Debug, Default)]
pub(super) struct Ids(u32);

/// The kind of a subject of series.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum SubjectKind {
    /// The subject of the `gpu.*` metrics of an entity.
    Own(Entity),
    /// The subject of the info metric of an entity, with all known properties.
    Facts(Entity),
    /// The subject of the `hw.*` metrics of a component.
    Hw(Component),
}

/// The state of a GPU.
#[derive(Default)]
pub(super) struct GpuState {
    gpu: Arc<Gpu>,
    driver_version: String,
    subjects: BTreeMap<SubjectKind, (u32, EntityAttributes)>,
    health: Health,
    /// The unavailable metrics that were reported, and those to report.
    reported: BTreeSet<(Reason, &'static str)>,
    unreported: BTreeMap<Reason, Vec<MissingMetric>>,
}

/// The context of a recording.
pub(super) struct Recorder<'a> {
    pub(super) semconv: GpuSemconv,
    pub(super) driver: &'a Driver,
    pub(super) attribution: &'a mut dyn GpuAttribution,
    pub(super) store: &'a mut SeriesStore,
    pub(super) ids: &'a mut Ids,
    pub(super) time_unix_nanos: UnixNanos,
}

impl GpuState {
    /// Returns whether `gpu` is the same description as the current one.
    pub(super) fn is(&self, gpu: &Arc<Gpu>) -> bool {
        Arc::ptr_eq(&self.gpu, gpu)
    }

    /// Returns the NVML index of the GPU.
    pub(super) fn index(&self) -> u32 {
        self.gpu.index
    }

    /// Returns the description of the GPU.
    pub(super) fn gpu(&self) -> &Arc<Gpu> {
        &self.gpu
    }

    /// Takes the metrics that have become unavailable since the last call, by reason.
    pub(super) fn take_unreported(&mut self) -> BTreeMap<Reason, Vec<MissingMetric>> {
        std::mem::take(&mut self.unreported)
    }

    /// Returns the ids of its subjects.
    pub(super) fn subject_ids(&self) -> impl Iterator<Item = u32> {
        self.subjects.values().map(|(id, _)| *id)
    }

    /// Ends all series of the GPU.
    pub(super) fn end(&self, store: &mut SeriesStore, now_unix_nanos: UnixNanos) {
        let ids: Vec<u32> = self.subject_ids().collect();
        store.end(now_unix_nanos, |key, _| ids.contains(&key.subject));
    }

    /// Updates the state of the GPU. Series with changed attributes are renamed, those of missing subjects end.
    pub(super) fn update(
        &mut self,
        gpu: &Arc<Gpu>,
        attributes_may_have_changed: bool,
        recorder: &mut Recorder<'_>,
        notices: &mut Vec<GpuNotice>,
    ) {
        let changed = !self.is(gpu);
        self.report_trouble(gpu, recorder, notices);
        self.gpu = Arc::clone(gpu);
        let new_driver = self.driver_version != recorder.driver.version;
        if new_driver {
            self.driver_version.clone_from(&recorder.driver.version);
        }
        if changed || new_driver || attributes_may_have_changed {
            self.refresh_subjects(recorder);
        }
        // The errors of a GPU that has never answered are unknown.
        if changed && gpu.trouble.is_none() {
            self.report_unavailable(recorder);
            if self.gpu().vendor == Vendor::Nvidia {
                events::record_zeroes(self, recorder);
            }
        }
        self.record_facts(recorder);
    }

    /// Records a value of a series.
    pub(super) fn observe(
        &mut self,
        series: ObservedSeries,
        texts: Texts,
        entry: Observation,
        recorder: &mut Recorder<'_>,
    ) {
        let (subject, carried) = self.subject(series.subject, recorder);
        let place = ObservationContext {
            subject,
            carried: &carried,
            metric: series.metric,
            labels: series.labels,
            texts,
            time_unix_nanos: recorder.time_unix_nanos,
            driver_unix_nanos: series.driver_unix_nanos,
            cadence: series.cadence,
        };
        recorder.store.observe(place, entry);
    }

    /// Records a value of a series of `hw.*`.
    pub(super) fn record_twin(
        &mut self,
        hw: &HwMetric,
        cadence: Cadence,
        driver_unix_nanos: UnixNanos,
        recorder: &mut Recorder<'_>,
    ) {
        let twin = ObservedSeries {
            subject: SubjectKind::Hw(hw.component),
            cadence,
            driver_unix_nanos,
            ..ObservedSeries::of_gpu(hw.metric)
        };
        self.observe(twin, hw.texts, hw.entry, recorder);
    }
}

/// The series of an observation, without its texts.
#[derive(Clone, Copy)]
pub(super) struct ObservedSeries {
    pub(super) subject: SubjectKind,
    pub(super) metric: &'static Metric,
    pub(super) labels: Labels,
    pub(super) cadence: Cadence,
    pub(super) driver_unix_nanos: UnixNanos,
}

impl ObservedSeries {
    /// Returns a series of the GPU without further attributes.
    pub(super) fn of_gpu(metric: &'static Metric) -> Self {
        Self {
            subject: SubjectKind::Own(Entity::Gpu),
            metric,
            labels: Labels::default(),
            cadence: Cadence::Tick,
            driver_unix_nanos: UnixNanos::UNKNOWN,
        }
    }
}
