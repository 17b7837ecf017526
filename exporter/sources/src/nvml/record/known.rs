//! A GPU that is known: its subjects with what their series carry, and how its readings become series.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use pulsetrain_semconv::{Metric, attribute, metric};

use super::{
    book::{Book, Entry, Place, Texts},
    facts,
    health::Health,
    outlives_the_gpu,
    subject::{Carried, attributes_of},
    twins::{self, Component, Twin},
    xid,
};
use crate::nvml::{
    Belonging, Driver, Gpu, GpuNotice, GpuSemconv, Reason,
    reading::{Cadence, Labels, Reading, Sample, Whose},
};

/// Numbers for subjects, none twice.
#[derive(Debug, Default)]
pub(super) struct Ids(u32);

/// What series can be of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Of {
    /// What `gpu.*` is of.
    Own(Whose),
    /// What it is, with all that is known of it.
    Facts(Whose),
    /// A component by the standard names.
    Hw(Component),
}

/// A GPU.
#[derive(Default)]
pub(super) struct Known {
    gpu: Arc<Gpu>,
    driver_version: String,
    subjects: BTreeMap<Of, (u32, Carried)>,
    health: Health,
    /// What was told to be unavailable, and what is to be told.
    told: BTreeSet<(Reason, &'static str)>,
    untold: BTreeMap<Reason, Vec<&'static str>>,
}

/// What recording needs.
pub(super) struct Recorder<'a> {
    pub(super) semconv: GpuSemconv,
    pub(super) driver: &'a Driver,
    pub(super) belonging: &'a mut dyn Belonging,
    pub(super) book: &'a mut Book,
    pub(super) ids: &'a mut Ids,
    pub(super) time_unix_nanos: u64,
}

impl Known {
    /// Whether it is this very description of it.
    pub(super) fn is(&self, gpu: &Arc<Gpu>) -> bool {
        Arc::ptr_eq(&self.gpu, gpu)
    }

    /// NVML's number of it.
    pub(super) fn index(&self) -> u32 {
        self.gpu.index
    }

    /// The GPU.
    pub(super) fn gpu(&self) -> &Arc<Gpu> {
        &self.gpu
    }

    /// What has become unavailable since this was asked last, by reason.
    pub(super) fn take_untold(&mut self) -> BTreeMap<Reason, Vec<&'static str>> {
        std::mem::take(&mut self.untold)
    }

    /// Ends all that is of it.
    pub(super) fn end(&self, book: &mut Book, now_unix_nanos: u64) {
        let ids: Vec<u32> = self.subjects.values().map(|(id, _)| *id).collect();
        book.end(now_unix_nanos, |key, _| ids.contains(&key.subject));
    }

    /// Sees the GPU as it is now: what belongs to somebody else is renamed, what is gone ends.
    pub(super) fn update(
        &mut self,
        gpu: &Arc<Gpu>,
        has_news: bool,
        recorder: &mut Recorder<'_>,
        notices: &mut Vec<GpuNotice>,
    ) {
        let changed = !self.is(gpu);
        self.note_loss(gpu, recorder, notices);
        self.gpu = Arc::clone(gpu);
        let new_driver = self.driver_version != recorder.driver.version;
        if new_driver {
            self.driver_version.clone_from(&recorder.driver.version);
        }
        if changed || new_driver || has_news {
            self.refresh_subjects(recorder);
        }
        if changed {
            self.note_unavailable(recorder);
            if !self.lacks(&metric::GPU_XID_ERRORS) {
                xid::record_zeroes(self, recorder);
            }
        }
        self.record_facts(recorder);
    }

    fn note_loss(&mut self, gpu: &Arc<Gpu>, recorder: &mut Recorder<'_>, notices: &mut Vec<GpuNotice>) {
        if gpu.lost == self.gpu.lost {
            return;
        }
        let (index, uuid) = (gpu.index, gpu.uuid.clone());
        if !gpu.lost {
            return notices.push(GpuNotice::Back { gpu: index, uuid });
        }
        notices.push(GpuNotice::Lost { gpu: index, uuid });
        let ids: Vec<u32> = self.subjects.values().map(|(id, _)| *id).collect();
        recorder.book.end(recorder.time_unix_nanos, |key, metric| {
            ids.contains(&key.subject) && !outlives_the_gpu(key, metric)
        });
    }

    /// Asks anew what the series of each subject carry.
    fn refresh_subjects(&mut self, recorder: &mut Recorder<'_>) {
        let all: Vec<Of> = self.subjects.keys().copied().collect();
        for of in all {
            let is_there = self.is_there(of);
            let carried = is_there.then(|| self.carried(of, recorder));
            let Some((id, known)) = self.subjects.get_mut(&of) else {
                continue;
            };
            match carried {
                None => {
                    let gone = *id;
                    recorder
                        .book
                        .end(recorder.time_unix_nanos, |key, _| key.subject == gone);
                    self.subjects.remove(&of);
                }
                Some(carried) if carried != *known => {
                    recorder.book.rename(*id, &carried, recorder.time_unix_nanos);
                    *known = carried;
                }
                Some(_) => {}
            }
        }
    }

    fn is_there(&self, of: Of) -> bool {
        let has_instance = |index| self.gpu.instances.iter().any(|instance| instance.index == index);
        match of {
            Of::Own(whose) | Of::Facts(whose) => match whose {
                Whose::Gpu => true,
                Whose::Instance(index) => has_instance(index),
                Whose::Process(pid) => self.gpu.processes.iter().any(|process| process.pid == pid),
            },
            Of::Hw(Component::Instance(index)) => has_instance(index),
            Of::Hw(_) => true,
        }
    }

    fn carried(&self, of: Of, recorder: &mut Recorder<'_>) -> Carried {
        match of {
            Of::Own(whose) => attributes_of(&self.gpu, whose, recorder.belonging),
            Of::Facts(whose) => facts::attributes(&self.gpu, whose, recorder.driver, recorder.belonging),
            Of::Hw(component) => {
                twins::attributes(&self.gpu, component, &self.driver_version, recorder.belonging)
            }
        }
    }

    /// The number of a subject, and what its series carry.
    fn subject(&mut self, of: Of, recorder: &mut Recorder<'_>) -> (u32, Carried) {
        if let Some((id, carried)) = self.subjects.get(&of) {
            return (*id, Arc::clone(carried));
        }
        let carried = self.carried(of, recorder);
        recorder.ids.0 += 1;
        let id = recorder.ids.0;
        self.subjects.insert(of, (id, Arc::clone(&carried)));
        (id, carried)
    }

    /// Takes down all that was read of it.
    pub(super) fn record(&mut self, readings: &[Reading], recorder: &mut Recorder<'_>) {
        let mut memory = BTreeMap::<Whose, (f64, f64)>::new();
        for reading in readings {
            // A process that has ended meanwhile.
            if !self.is_there(Of::Own(reading.whose)) {
                continue;
            }
            self.health.observe(reading);
            if let Sample::Now(bytes) = reading.value {
                if reading.metric.ordinal == metric::GPU_MEMORY_USED.ordinal {
                    memory.entry(reading.whose).or_default().0 = bytes;
                } else if reading.metric.ordinal == metric::GPU_MEMORY_LIMIT.ordinal {
                    memory.entry(reading.whose).or_default().1 = bytes;
                }
            }
            self.record_one(reading, recorder);
        }
        self.record_health(recorder);
        if recorder.semconv != GpuSemconv::Gpu {
            for (whose, (used, limit)) in memory.into_iter().filter(|(_, (_, limit))| *limit > 0.0) {
                if let Some(component) = Component::of(whose) {
                    self.record_twin(
                        &Twin::memory_utilization(component, used / limit),
                        Cadence::Tick,
                        0,
                        recorder,
                    );
                }
            }
        }
    }

    fn record_one(&mut self, reading: &Reading, recorder: &mut Recorder<'_>) {
        let twin = match recorder.semconv {
            GpuSemconv::Gpu => None,
            GpuSemconv::Hw | GpuSemconv::Both => twins::of(reading),
        };
        if let Some(twin) = &twin {
            self.record_twin(twin, reading.cadence, reading.time_unix_nanos, recorder);
        }
        if twin.is_some() && recorder.semconv == GpuSemconv::Hw {
            return;
        }
        let own = Own {
            whose: reading.whose,
            metric: reading.metric,
            labels: reading.labels,
            cadence: reading.cadence,
            driver_unix_nanos: reading.time_unix_nanos,
        };
        match reading.value {
            Sample::State(attribute, state) => {
                let pulsetrain_semconv::AttributeKind::Enum(states) = attribute.kind else {
                    return;
                };
                for name in states {
                    let holds = f64::from(u8::from(*name == state));
                    let texts = [Some((attribute, *name)), None];
                    self.enter(own, texts, Entry::Held(holds), recorder);
                }
            }
            value => {
                if let Some(entry) = entry_of(reading.metric, value, reading.cadence) {
                    self.enter(own, [None; 2], entry, recorder);
                }
            }
        }
    }

    /// Takes down a value of a series of `gpu.*`.
    pub(super) fn enter(&mut self, own: Own, texts: Texts, entry: Entry, recorder: &mut Recorder<'_>) {
        let (subject, carried) = self.subject(Of::Own(own.whose), recorder);
        let place = Place {
            subject,
            carried: &carried,
            metric: own.metric,
            labels: own.labels,
            texts,
            time_unix_nanos: recorder.time_unix_nanos,
            driver_unix_nanos: own.driver_unix_nanos,
            cadence: own.cadence,
        };
        recorder.book.enter(place, entry);
    }

    /// Takes down a value of a series of `hw.*`.
    pub(super) fn record_twin(
        &mut self,
        twin: &Twin,
        cadence: Cadence,
        driver_unix_nanos: u64,
        recorder: &mut Recorder<'_>,
    ) {
        let (subject, carried) = self.subject(Of::Hw(twin.component), recorder);
        let place = Place {
            subject,
            carried: &carried,
            metric: twin.metric,
            labels: Labels::default(),
            texts: twin.texts,
            time_unix_nanos: recorder.time_unix_nanos,
            driver_unix_nanos,
            cadence,
        };
        recorder.book.enter(place, twin.entry);
    }

    fn record_facts(&mut self, recorder: &mut Recorder<'_>) {
        if self.gpu.lost {
            return;
        }
        let instances = self
            .gpu
            .instances
            .iter()
            .map(|instance| Whose::Instance(instance.index));
        let all: Vec<Whose> = std::iter::once(Whose::Gpu).chain(instances).collect();
        for whose in all {
            let (subject, carried) = self.subject(Of::Facts(whose), recorder);
            let place = Place {
                subject,
                carried: &carried,
                metric: &metric::GPU_INFO,
                labels: Labels::default(),
                texts: [None; 2],
                time_unix_nanos: recorder.time_unix_nanos,
                driver_unix_nanos: 0,
                cadence: Cadence::Once,
            };
            recorder.book.enter(place, Entry::Held(1.0));
        }
        if self.gpu.mig == Some(true) {
            let split_into: BTreeSet<u32> = self
                .gpu
                .instances
                .iter()
                .map(|instance| instance.gpu_instance_id)
                .collect();
            let own = Own::of_gpu(&metric::GPU_MIG_INSTANCES);
            self.enter(own, [None; 2], Entry::Now(split_into.len() as f64), recorder);
        }
    }

    fn record_health(&mut self, recorder: &mut Recorder<'_>) {
        let lost = self.gpu.lost;
        let fault = [Some((&attribute::GPU_FAULT, "lost")), None];
        let own = Own::of_gpu(&metric::GPU_FAULT_ACTIVE);
        self.enter(own, fault, Entry::Held(f64::from(u8::from(lost))), recorder);
        if recorder.semconv == GpuSemconv::Gpu {
            return;
        }
        for twin in self.health.status(lost) {
            self.record_twin(&twin, Cadence::Tick, 0, recorder);
        }
    }

    fn note_unavailable(&mut self, recorder: &mut Recorder<'_>) {
        let own = Own {
            cadence: Cadence::Once,
            ..Own::of_gpu(&metric::GPU_METRIC_UNAVAILABLE)
        };
        let gpu = Arc::clone(&self.gpu);
        let lacking: BTreeSet<(&'static str, Reason)> = gpu
            .unavailable
            .iter()
            .filter(|row| !row.partly)
            .map(|row| (row.metric.name, row.reason))
            .collect();
        let (subject, _) = self.subject(Of::Own(Whose::Gpu), recorder);
        recorder.book.end(recorder.time_unix_nanos, |key, metric| {
            key.subject == subject
                && metric.ordinal == metric::GPU_METRIC_UNAVAILABLE.ordinal
                && !lacking
                    .iter()
                    .any(|(name, reason)| key.says(name, reason.as_str()))
        });
        for (name, reason) in lacking {
            let texts = [
                Some((&attribute::GPU_METRIC_NAME, name)),
                Some((&attribute::GPU_UNAVAILABLE_REASON, reason.as_str())),
            ];
            self.enter(own, texts, Entry::Held(1.0), recorder);
            if reason != Reason::TurnedOff && self.told.insert((reason, name)) {
                self.untold.entry(reason).or_default().push(name);
            }
        }
    }

    /// Whether it gives nothing for a metric.
    fn lacks(&self, metric: &Metric) -> bool {
        self.gpu
            .unavailable
            .iter()
            .any(|row| row.metric.ordinal == metric.ordinal && !row.partly)
    }
}

/// A series of `gpu.*`.
#[derive(Clone, Copy)]
pub(super) struct Own {
    pub(super) whose: Whose,
    pub(super) metric: &'static Metric,
    pub(super) labels: Labels,
    pub(super) cadence: Cadence,
    pub(super) driver_unix_nanos: u64,
}

impl Own {
    /// One of the whole GPU without more to tell it by.
    pub(super) fn of_gpu(metric: &'static Metric) -> Self {
        Self {
            whose: Whose::Gpu,
            metric,
            labels: Labels::default(),
            cadence: Cadence::Tick,
            driver_unix_nanos: 0,
        }
    }
}

/// The value as it is entered: what is a state or never changes is said when it changes.
pub(super) fn entry_of(metric: &Metric, value: Sample, cadence: Cadence) -> Option<Entry> {
    Some(match value {
        Sample::Now(value) if cadence == Cadence::Once || matches!(metric.unit, "{state}" | "{link}") => {
            Entry::Held(value)
        }
        Sample::Now(value) => Entry::Now(value),
        Sample::Total { raw, scale, wraps } => Entry::Total { raw, scale, wraps },
        Sample::Observed(value) => Entry::Observed(value),
        Sample::NothingObserved => Entry::NothingObserved,
        Sample::State(..) => return None,
    })
}
