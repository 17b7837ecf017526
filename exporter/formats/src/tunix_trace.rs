//! Tunix's Perfetto traces (`tunix/perf`), both of its formats, as the spans of the registry: a trace a step, and the times of
//! the step worked out from its spans.
//!
//! [`slice_name`] takes the name of a slice apart and [`names`] says what it is; [`groups`] (version 1) and [`timelines`]
//! (version 2, with its tracks in [`places`]) find out what is inside what; [`work`] tells it, [`times`] computes, [`wall`]
//! knows when it was. `TUNIX_TRACES.md` beside this crate is the documentation.

mod conversion;
mod groups;
mod names;
mod parser;
mod places;
mod slice_name;
#[cfg(test)]
mod tests;
mod timelines;
mod times;
mod wall;
mod work;

use std::collections::HashSet;

use pulsetrain_perfetto::{EventKind, Item, Time, TraceEvent, Track};
use serde_json::Value as Json;

use self::{groups::Groups, timelines::Timelines, wall::WallClock};
use pulsetrain_record::{Recorder, SkipReason, SourcePosition};

pub use conversion::{TunixConversion, convert_tunix_trace};
pub(crate) use parser::{GROUPS_FORMAT, TIMELINES_FORMAT, first_record};

/// The name of the outermost track of version 1.
const ROOT_OF_GROUPS: &str = "Post-Training Run";

/// The formats of Tunix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Version {
    /// `perfetto_trace_*.pb`: groups, a fragment a step.
    Groups,
    /// `perfetto_trace_v2_*.pb`: timelines with lanes, slices with tags.
    Timelines,
}

impl Version {
    /// Returns the version that writes a track like this one, or `None` if other programs write such tracks too.
    pub fn of(track: &Track) -> Option<Self> {
        let name = track.name.as_str();
        if track.uuid == 100 && name == ROOT_OF_GROUPS {
            return Some(Self::Groups);
        }
        let is_group = matches!(name, "Host - Main threads" | "Host - Rollout threads");
        (is_group && (100_000..200_000).contains(&track.uuid)).then_some(Self::Timelines)
    }

    /// The row of the version in the table of formats.
    pub(crate) fn format(self) -> &'static crate::logs::LogFormat {
        match self {
            Self::Groups => &GROUPS_FORMAT,
            Self::Timelines => &TIMELINES_FORMAT,
        }
    }
}

/// Reads a trace item by item.
#[derive(Debug)]
pub(crate) struct TunixTrace {
    slices: Slices,
    wall: Option<WallClock>,
    /// The tracks that are read.
    tracks: HashSet<u64>,
    pub(crate) stray_ends: u64,
}

/// The most tracks of a trace, or of a fragment of version 1, that are read.
const MOST_TRACKS: usize = 1 << 14;

#[derive(Debug)]
enum Slices {
    Groups(Box<Groups>),
    Timelines(Box<Timelines>),
}

impl TunixTrace {
    /// Begins to read a trace of a version.
    pub(crate) fn new(version: Version) -> Self {
        Self {
            slices: match version {
                Version::Groups => Slices::Groups(Box::default()),
                Version::Timelines => Slices::Timelines(Box::default()),
            },
            wall: None,
            tracks: HashSet::new(),
            stray_ends: 0,
        }
    }

    /// The input begins again; version 2 is written anew with every step.
    fn restart(&mut self) {
        self.tracks.clear();
        if let Slices::Timelines(timelines) = &mut self.slices {
            timelines.restart();
        }
    }

    /// Whether it is written anew with every step.
    fn is_rewritten(&self) -> bool {
        matches!(self.slices, Slices::Timelines(_))
    }

    /// What was told, where it is written anew.
    fn snapshot(&self) -> Option<Json> {
        match &self.slices {
            Slices::Groups(_) => None,
            Slices::Timelines(timelines) => timelines.snapshot(),
        }
    }

    /// Takes over what was told by a follower before this one; says whether it makes sense.
    fn restore(&mut self, told: &Json) -> bool {
        match &mut self.slices {
            Slices::Groups(_) => false,
            Slices::Timelines(timelines) => timelines.restore(told),
        }
    }

    /// Takes the next item of the trace.
    pub(crate) fn item(&mut self, item: Item, position: SourcePosition, recorder: &mut Recorder<'_>) {
        let track = match &item {
            Item::Track(track) => Some(track.uuid),
            Item::Event(event) => Some(event.track_uuid),
            _ => None,
        };
        if track.is_some_and(|uuid| !self.admits(uuid)) {
            return recorder.report(SkipReason::TooManyNames, position, || {
                format!("the trace has more than {MOST_TRACKS} tracks; slices on further ones are left out")
            });
        }
        match item {
            Item::Track(track) => self.track(&track, recorder),
            Item::Event(event) => self.event(event, position, recorder),
            _ => {}
        }
    }

    /// Whether there is room for a track.
    fn admits(&mut self, uuid: u64) -> bool {
        let has_room = self.tracks.len() < MOST_TRACKS || self.tracks.contains(&uuid);
        if has_room {
            self.tracks.insert(uuid);
        }
        has_room
    }

    fn track(&mut self, track: &Track, recorder: &mut Recorder<'_>) {
        if track.name == ROOT_OF_GROUPS {
            // The tracks of the next fragment have other numbers.
            self.tracks.clear();
        }
        let wall = self.wall.unwrap_or(WallClock::new(0, 0));
        match &mut self.slices {
            Slices::Groups(groups) => groups.track(track.uuid, &track.name, &wall, recorder),
            Slices::Timelines(timelines) => timelines.track(track, &wall, recorder),
        }
    }

    fn event(&mut self, event: TraceEvent, position: SourcePosition, recorder: &mut Recorder<'_>) {
        let time = WallClock::nanos(event.time);
        let wall = self.wall(event.time, position, recorder);
        let uuid = event.track_uuid;
        let is_paired = match (&mut self.slices, event.kind) {
            (Slices::Groups(groups), EventKind::Begin) => {
                groups.begin(uuid, time, &event.name, recorder);
                true
            }
            (Slices::Timelines(timelines), EventKind::Begin) => {
                timelines.begin(uuid, time, event.name, &wall, recorder);
                true
            }
            (Slices::Groups(groups), EventKind::End) => groups.close(uuid, time, &wall, recorder),
            (Slices::Timelines(timelines), EventKind::End) => timelines.close(uuid, time, &wall, recorder),
            _ => true,
        };
        if !is_paired {
            self.stray_ends += 1;
            let message = || format!("a slice ends on track {uuid} where none began");
            recorder.report(SkipReason::MalformedRecord, position, message);
        }
    }

    /// The clock, which the first event sets: version 1 counts from anywhere, version 2 from when its tracer was made.
    fn wall(&mut self, time: Time, position: SourcePosition, recorder: &mut Recorder<'_>) -> WallClock {
        *self.wall.get_or_insert_with(|| {
            let Time::Clock { nanos, .. } = time else {
                return WallClock::new(0, 0);
            };
            let start = recorder.run().start_unix_nanos;
            if start == 0 {
                recorder.report(SkipReason::NoWallClock, position, || {
                    "neither the trace nor its file's name says when it was, so its times count from 1970; \
                     name its beginning with --start-time"
                        .to_owned()
                });
            }
            match self.slices {
                Slices::Groups(_) => WallClock::new(start, nanos),
                Slices::Timelines(_) => WallClock::new(start, 0),
            }
        })
    }

    /// No more of the trace is there for the moment.
    fn pause(&mut self, recorder: &mut Recorder<'_>) {
        if let (Slices::Timelines(timelines), Some(wall)) = (&mut self.slices, self.wall) {
            timelines.pause(&wall, recorder);
        }
    }

    /// The trace is over.
    pub(crate) fn end(&mut self, recorder: &mut Recorder<'_>) {
        let wall = self.wall.unwrap_or(WallClock::new(0, 0));
        match &mut self.slices {
            Slices::Groups(groups) => groups.end(&wall, recorder),
            Slices::Timelines(timelines) => timelines.end(&wall, recorder),
        }
    }
}
