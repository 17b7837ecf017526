//! The subjects that series are of, each with a number and what all its series carry.

use std::sync::Arc;

use super::{Known, Of, Recorder};
use crate::{
    reading::Whose,
    record::{
        facts,
        subject::{Carried, attributes_of},
        twins::{self, Component},
    },
};

impl Known {
    /// Asks anew what the series of each subject carry.
    pub(super) fn refresh_subjects(&mut self, recorder: &mut Recorder<'_>) {
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

    pub(super) fn is_there(&self, of: Of) -> bool {
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
    pub(super) fn subject(&mut self, of: Of, recorder: &mut Recorder<'_>) -> (u32, Carried) {
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
