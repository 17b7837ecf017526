//! The track tree of version 2: maps each lane to its timeline.

use std::collections::HashMap;

use super::slice_span::Timeline;

/// The tracks and timelines of a trace.
#[derive(Debug, Default)]
pub(super) struct TrackTree {
    tracks: HashMap<u64, (Option<u64>, String)>,
    timelines: HashMap<u64, Timeline>,
    unknown: Timeline,
}

const CLUSTER: &str = " Cluster";
const HOST: &str = "host-";
const QUEUE: &str = "_queue";

impl TrackTree {
    /// Adds a track and updates the timelines.
    pub(super) fn insert(&mut self, uuid: u64, parent: Option<u64>, name: &str) {
        self.tracks.insert(uuid, (parent, name.to_owned()));
        for (timeline_id, timeline) in &mut self.timelines {
            *timeline = read(&self.tracks, *timeline_id);
        }
    }

    /// Returns the timeline of a track and its id. A lane has no name and belongs to its parent track.
    pub(super) fn timeline_of(&mut self, uuid: u64) -> (u64, &Timeline) {
        let timeline_id = match self.tracks.get(&uuid) {
            Some((Some(parent), name)) if name.is_empty() => *parent,
            _ => uuid,
        };
        let timeline = match self.timelines.entry(timeline_id) {
            std::collections::hash_map::Entry::Occupied(entry) => entry.into_mut(),
            std::collections::hash_map::Entry::Vacant(entry) => entry.insert(read(&self.tracks, timeline_id)),
        };
        (timeline_id, timeline)
    }

    /// Returns a timeline that [`timeline_of`](Self::timeline_of) has returned, or an unknown one.
    pub(super) fn timeline(&self, timeline_id: u64) -> &Timeline {
        self.timelines.get(&timeline_id).unwrap_or(&self.unknown)
    }
}

fn read(tracks: &HashMap<u64, (Option<u64>, String)>, timeline_id: u64) -> Timeline {
    let Some((parent, name)) = tracks.get(&timeline_id) else {
        return Timeline::default();
    };
    let is_device = !name.starts_with(HOST);
    let group = parent
        .and_then(|parent| tracks.get(&parent))
        .map(|(_, name)| name.as_str());
    Timeline {
        device: is_device.then(|| name.strip_suffix(QUEUE).unwrap_or(name).to_owned()),
        is_device,
        mesh: group.and_then(mesh).unwrap_or_default(),
        name: name.clone(),
    }
}

/// Returns the roles in `Actor, Reference Cluster`.
fn mesh(group: &str) -> Option<Vec<String>> {
    let roles = group.strip_suffix(CLUSTER)?.split(", ");
    Some(roles.map(str::to_lowercase).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lanes_belong_to_their_parent_timeline_and_queues_to_their_device() {
        let mut tracks = TrackTree::default();
        tracks.insert(100_002, None, "Actor, Reference Cluster");
        tracks.insert(100_000, None, "Host - Main threads");
        tracks.insert(200_000, Some(100_002), "tpu0");
        tracks.insert(200_001, Some(200_000), "");
        tracks.insert(300_000, Some(100_002), "tpu0_queue");
        tracks.insert(400_000, Some(100_000), "host-7");
        let (timeline_id, lane) = tracks.timeline_of(200_001);
        assert_eq!((timeline_id, lane.name.as_str()), (200_000, "tpu0"));
        assert_eq!(lane.mesh, ["actor", "reference"]);
        assert_eq!(tracks.timeline_of(300_000).1.device.as_deref(), Some("tpu0"));
        let host = tracks.timeline_of(400_000).1;
        assert!(!host.is_device && host.device.is_none() && host.mesh.is_empty());
    }
}
