//! The subjects of series, each with an id and the attributes that all its series carry.

use std::sync::Arc;

use super::{GpuState, Recorder, SubjectKind};
use crate::{
    reading::Entity,
    record::{
        facts,
        hw_semconv::{self, Component},
        subject::{EntityAttributes, attributes_of},
    },
};

impl GpuState {
    /// Updates the attributes of all subjects.
    pub(super) fn refresh_subjects(&mut self, recorder: &mut Recorder<'_>) {
        let all: Vec<SubjectKind> = self.subjects.keys().copied().collect();
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
                        .store
                        .end(recorder.time_unix_nanos, |key, _| key.subject == gone);
                    self.subjects.remove(&of);
                }
                Some(carried) if carried != *known => {
                    recorder.store.rename(*id, &carried, recorder.time_unix_nanos);
                    *known = carried;
                }
                Some(_) => {}
            }
        }
    }

    pub(super) fn is_there(&self, of: SubjectKind) -> bool {
        let has_instance = |index| self.gpu.instances.iter().any(|instance| instance.index == index);
        match of {
            SubjectKind::Own(entity) | SubjectKind::Facts(entity) => match entity {
                Entity::Gpu => true,
                Entity::Instance(index) => has_instance(index),
                Entity::Process(pid) => self.gpu.processes.iter().any(|process| process.pid == pid),
            },
            SubjectKind::Hw(Component::Instance(index)) => has_instance(index),
            SubjectKind::Hw(_) => true,
        }
    }

    fn carried(&self, of: SubjectKind, recorder: &mut Recorder<'_>) -> EntityAttributes {
        match of {
            SubjectKind::Own(entity) => attributes_of(&self.gpu, entity, recorder.attribution),
            SubjectKind::Facts(entity) => {
                facts::attributes(&self.gpu, entity, recorder.driver, recorder.attribution)
            }
            SubjectKind::Hw(component) => {
                hw_semconv::attributes(&self.gpu, component, &self.driver_version, recorder.attribution)
            }
        }
    }

    /// Returns the id of a subject, and the attributes that its series carry.
    pub(super) fn subject(
        &mut self,
        of: SubjectKind,
        recorder: &mut Recorder<'_>,
    ) -> (u32, EntityAttributes) {
        if let Some((id, carried)) = self.subjects.get(&of) {
            return (*id, Arc::clone(carried));
        }
        let carried = self.carried(of, recorder);
        recorder.ids.0 += 1;
        let id = recorder.ids.0;
        self.subjects.insert(of, (id, Arc::clone(&carried)));
        (id, carried)
    }
}
