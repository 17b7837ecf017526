//! Finds the process of an event, and the headings above its track.

use std::collections::HashMap;

use pulsetrain_otlp::write::Buffer;
use pulsetrain_perfetto::{AnnotationData, HEADING, Track, TrackKind};

use super::values::{self, Entries};

/// The thread attributes of a track: the row of an event.
#[derive(Debug, Default)]
pub(super) struct Thread {
    /// The names from below the process down to the track, with slashes between them.
    name: String,
    /// The id of the thread that the track belongs to.
    id: Option<i64>,
}

impl Thread {
    /// Adds the known values as attributes in field `number`, unless the annotations have the same key.
    pub(super) fn add(&self, number: u32, annotations: &Entries, out: &mut Buffer) {
        let lacks = |key: &str| annotations.iter().all(|(own, _)| own != key);
        if !self.name.is_empty() && lacks("thread.name") {
            let name = AnnotationData::Text(self.name.clone());
            values::attribute(number, "thread.name", &name, out);
        }
        if let Some(id) = self.id.filter(|_| lacks("thread.id")) {
            values::attribute(number, "thread.id", &AnnotationData::Int(id), out);
        }
    }
}

/// The tracks of a trace.
#[derive(Debug, Default)]
pub(super) struct Tracks {
    all: HashMap<u64, Track>,
    /// The tracks of processes by pid.
    processes: HashMap<i32, u64>,
}

impl Tracks {
    /// Adds a descriptor; a later one for the same track replaces it.
    pub(super) fn insert(&mut self, track: Track) {
        if let TrackKind::Process { pid, .. } = track.kind {
            self.processes.insert(pid, track.uuid);
        }
        self.all.insert(track.uuid, track);
    }

    /// Returns the last descriptor of a track.
    pub(super) fn get(&self, uuid: u64) -> Option<&Track> {
        self.all.get(&uuid)
    }

    /// Returns the track and its ancestors, the outermost last. A cycle of parents ends the path.
    fn path(&self, uuid: u64) -> Vec<&Track> {
        let mut path: Vec<&Track> = Vec::new();
        let mut next = self.get(uuid);
        while let Some(track) = next.filter(|track| path.iter().all(|seen| seen.uuid != track.uuid)) {
            path.push(track);
            next = track.parent.and_then(|parent| self.get(parent));
        }
        path
    }

    /// Returns the uuid of the process of a track, or of its outermost ancestor.
    pub(super) fn process(&self, uuid: u64) -> u64 {
        let path = self.path(uuid);
        let process = path
            .iter()
            .find(|track| matches!(track.kind, TrackKind::Process { .. }));
        process.or(path.last()).map_or(uuid, |track| track.uuid)
    }

    /// Returns the track of the process with a pid.
    pub(super) fn process_of(&self, pid: i32) -> Option<u64> {
        self.processes.get(&pid).copied()
    }

    /// Returns the name of a track.
    pub(super) fn name(&self, uuid: u64) -> &str {
        self.get(uuid).map_or("", |track| match &track.kind {
            TrackKind::Process { name, .. } | TrackKind::Thread { name, .. } => name,
            _ => &track.name,
        })
    }

    /// Returns the thread of a track.
    pub(super) fn thread(&self, uuid: u64) -> Thread {
        let id = self.path(uuid).into_iter().find_map(|track| match track.kind {
            TrackKind::Thread { tid, .. } => Some(tid),
            _ => None,
        });
        Thread {
            name: self.label(uuid),
            id,
        }
    }

    fn label(&self, uuid: u64) -> String {
        let process = self.process(uuid);
        let below = self
            .path(uuid)
            .into_iter()
            .take_while(|track| track.uuid != process);
        let mut names: Vec<&str> = below
            .filter(|track| track.parent != Some(process) || track.name != HEADING)
            .map(|track| self.name(track.uuid))
            .filter(|name| !name.is_empty())
            .collect();
        names.reverse();
        names.join("/")
    }
}
