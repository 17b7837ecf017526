//! The tracks of version 2: which timeline a lane belongs to, and what a timeline is.

use std::collections::HashMap;

use super::work::Timeline;

/// The tracks.
#[derive(Debug, Default)]
pub(super) struct Places {
    tracks: HashMap<u64, (Option<u64>, String)>,
    timelines: HashMap<u64, Timeline>,
    nowhere: Timeline,
}

const CLUSTER: &str = " Cluster";
const HOST: &str = "host-";
const QUEUE: &str = "_queue";

impl Places {
    /// Takes in a track.
    pub(super) fn insert(&mut self, uuid: u64, parent: Option<u64>, name: &str) {
        self.tracks.insert(uuid, (parent, name.to_owned()));
        for (place, timeline) in &mut self.timelines {
            *timeline = read(&self.tracks, *place);
        }
    }

    /// The timeline of a track, with its number. A lane has no name and belongs to the track above it.
    pub(super) fn of(&mut self, uuid: u64) -> (u64, &Timeline) {
        let place = match self.tracks.get(&uuid) {
            Some((Some(parent), name)) if name.is_empty() => *parent,
            _ => uuid,
        };
        let timeline = match self.timelines.entry(place) {
            std::collections::hash_map::Entry::Occupied(entry) => entry.into_mut(),
            std::collections::hash_map::Entry::Vacant(entry) => entry.insert(read(&self.tracks, place)),
        };
        (place, timeline)
    }

    /// A timeline that [`of`](Self::of) has given.
    pub(super) fn timeline(&self, place: u64) -> &Timeline {
        self.timelines.get(&place).unwrap_or(&self.nowhere)
    }
}

fn read(tracks: &HashMap<u64, (Option<u64>, String)>, place: u64) -> Timeline {
    let Some((parent, name)) = tracks.get(&place) else {
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

/// The roles in `Actor, Reference Cluster`.
fn mesh(group: &str) -> Option<Vec<String>> {
    let roles = group.strip_suffix(CLUSTER)?.split(", ");
    Some(roles.map(str::to_lowercase).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lane_is_of_the_timeline_above_it_and_a_queue_of_its_device() {
        let mut places = Places::default();
        places.insert(100_002, None, "Actor, Reference Cluster");
        places.insert(100_000, None, "Host - Main threads");
        places.insert(200_000, Some(100_002), "tpu0");
        places.insert(200_001, Some(200_000), "");
        places.insert(300_000, Some(100_002), "tpu0_queue");
        places.insert(400_000, Some(100_000), "host-7");
        let (place, lane) = places.of(200_001);
        assert_eq!((place, lane.name.as_str()), (200_000, "tpu0"));
        assert_eq!(lane.mesh, ["actor", "reference"]);
        assert_eq!(places.of(300_000).1.device.as_deref(), Some("tpu0"));
        let host = places.of(400_000).1;
        assert!(!host.is_device && host.device.is_none() && host.mesh.is_empty());
    }
}
