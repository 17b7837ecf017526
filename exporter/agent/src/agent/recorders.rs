//! The running flight recorders, for the triggers of a trace: a signal, or a local request.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use pulsetrain_sinks::FlightRecorder;

use crate::log::{self, Subject};

/// The recorders by the names of their sinks; clones share them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Recorders(Arc<Mutex<BTreeMap<String, FlightRecorder>>>);

impl Recorders {
    pub(crate) fn is_empty(&self) -> bool {
        self.lock().is_empty()
    }

    pub(crate) fn insert(&self, name: &str, recorder: FlightRecorder) {
        self.lock().insert(name.to_owned(), recorder);
    }

    pub(super) fn remove(&self, name: &str) {
        self.lock().remove(name);
    }

    /// Returns the recorder of this name, or the first recorder without a name.
    pub(super) fn get(&self, name: Option<&str>) -> Option<FlightRecorder> {
        let recorders = self.lock();
        match name {
            Some(name) => recorders.get(name).cloned(),
            None => recorders.values().next().cloned(),
        }
    }

    /// Returns the recorders with the names of their sinks.
    pub(super) fn all(&self) -> Vec<(String, FlightRecorder)> {
        let recorders = self.lock();
        let all = recorders.iter();
        all.map(|(name, recorder)| (name.clone(), recorder.clone()))
            .collect()
    }

    /// Saves each recorder to a file, and logs the path or the error.
    pub(crate) async fn save(&self) {
        let recorders = self.lock().clone();
        if recorders.is_empty() {
            let message = "there is no sink of the kind flight_recorder to write a trace of";
            log::warn(Subject::Program, message);
        }
        for (name, recorder) in recorders {
            let sink = Subject::Sink(&name);
            match recorder.save().await {
                Ok(path) => log::info(sink, format_args!("wrote {}", path.display())),
                Err(error) => log::error(sink, format_args!("{error}; check the folder and the disk")),
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, FlightRecorder>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
