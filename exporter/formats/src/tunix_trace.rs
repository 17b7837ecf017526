//! Converts Tunix's Perfetto traces (`tunix/perf`, both formats) to the spans of the registry: one trace a step, and the times
//! of the step computed from its spans.
//!
//! [`slice_name`] parses the name of a slice and [`names`] maps it to a span. [`groups`] (version 1) and [`timelines`] (version
//! 2, with its tracks in [`tracks`]) rebuild the tree. [`slice_span`] records the spans, [`times`] computes metrics and
//! [`wall`] converts times. `TUNIX_TRACES.md` in this crate is the documentation.

mod conversion;
mod groups;
mod names;
mod parser;

mod slice_name;
mod slice_span;
#[cfg(test)]
mod tests;
mod timelines;
mod times;
mod tracks;
mod wall;

use std::collections::HashSet;

use pulsetrain_otlp::UnixNanos;
use pulsetrain_perfetto::{EventKind, Item, Time, TraceEvent, Track};
use serde_json::Value as Json;

use self::{groups::Groups, timelines::Timelines, wall::WallClock};
use pulsetrain_record::{Recorder, SkipReason, SourcePosition};

pub use conversion::{TunixConversion, convert_tunix_trace};
pub(crate) use parser::{GROUPS_FORMAT, TIMELINES_FORMAT, first_record};

/// The name of the outermost track of version 1.
const ROOT_OF_GROUPS: &str = "Post-Training Run";

/// The two trace formats of Tunix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Version {
    /// `perfetto_trace_*.pb`: groups, a fragment a step.
    Groups,
    /// `perfetto_trace_v2_*.pb`: timelines with lanes, slices with tags.
    Timelines,
}

impl Version {
    /// Returns the version that writes a track like this one, or `None` if other programs write such tracks too.
    pub fn from_track(track: &Track) -> Option<Self> {
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

/// Converts a trace item by item.
#[derive(Debug)]
pub(crate) struct TunixTrace {
    slices: Slices,
    wall: Option<WallClock>,
    /// The tracks that have been admitted, at most [`MAX_TRACKS`].
    tracks: HashSet<u64>,
    pub(crate) stray_ends: u64,
}

/// The most tracks of a trace, or of a fragment of version 1, that are read.
const MAX_TRACKS: usize = 1 << 14;

#[derive(Debug)]
enum Slices {
    Groups(Box<Groups>),
    Timelines(Box<Timelines>),
}

impl TunixTrace {
    /// Creates a converter for one version.
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

    /// Restarts at the beginning of the file, which the writer of version 2 rewrites with every step.
    fn restart(&mut self) {
        self.tracks.clear();
        if let Slices::Timelines(timelines) = &mut self.slices {
            timelines.restart();
        }
    }

    /// Returns whether the writer rewrites the file with every step.
    fn is_rewritten(&self) -> bool {
        matches!(self.slices, Slices::Timelines(_))
    }

    /// Returns the state for a restart, or `None` for version 1, whose file only grows.
    fn snapshot(&self) -> Option<Json> {
        match &self.slices {
            Slices::Groups(_) => None,
            Slices::Timelines(timelines) => timelines.snapshot(),
        }
    }

    /// Restores the state of a previous follower. Returns `false` if the state is invalid.
    fn restore(&mut self, state: &Json) -> bool {
        match &mut self.slices {
            Slices::Groups(_) => false,
            Slices::Timelines(timelines) => timelines.restore(state),
        }
    }

    /// Converts the next item of the trace.
    pub(crate) fn item(&mut self, item: Item, position: SourcePosition, recorder: &mut Recorder<'_>) {
        let track = match &item {
            Item::Track(track) => Some(track.uuid),
            Item::Event(event) => Some(event.track_uuid),
            _ => None,
        };
        if track.is_some_and(|uuid| !self.admits(uuid)) {
            return recorder.report(SkipReason::TooManyNames, position, || {
                format!("the trace has more than {MAX_TRACKS} tracks; slices on further ones are left out")
            });
        }
        match item {
            Item::Track(track) => self.track(&track, recorder),
            Item::Event(event) => self.event(event, position, recorder),
            _ => {}
        }
    }

    /// Admits a track unless the limit is reached.
    fn admits(&mut self, uuid: u64) -> bool {
        let has_room = self.tracks.len() < MAX_TRACKS || self.tracks.contains(&uuid);
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
        let wall = self.wall.unwrap_or(WallClock::new(UnixNanos::UNKNOWN, 0));
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

    /// Returns the wall clock, which the first event sets. The clock of version 1 has no defined origin; that of version 2
    /// starts when its tracer was created.
    fn wall(&mut self, time: Time, position: SourcePosition, recorder: &mut Recorder<'_>) -> WallClock {
        *self.wall.get_or_insert_with(|| {
            let Time::Clock { nanos, .. } = time else {
                return WallClock::new(UnixNanos::UNKNOWN, 0);
            };
            let start = recorder.run().start_unix_nanos;
            if !start.is_known() {
                recorder.report(SkipReason::NoWallClock, position, || {
                    "neither the trace nor its file's name has a date, so its times count from 1970; \
                     give the beginning with --start-time"
                        .to_owned()
                });
            }
            match self.slices {
                Slices::Groups(_) => WallClock::new(start, nanos),
                Slices::Timelines(_) => WallClock::new(start, 0),
            }
        })
    }

    /// Flushes finished slices when the end of the available data is reached.
    fn pause(&mut self, recorder: &mut Recorder<'_>) {
        if let (Slices::Timelines(timelines), Some(wall)) = (&mut self.slices, self.wall) {
            timelines.pause(&wall, recorder);
        }
    }

    /// Ends the trace and closes open slices.
    pub(crate) fn end(&mut self, recorder: &mut Recorder<'_>) {
        let wall = self.wall.unwrap_or(WallClock::new(UnixNanos::UNKNOWN, 0));
        match &mut self.slices {
            Slices::Groups(groups) => groups.end(&wall, recorder),
            Slices::Timelines(timelines) => timelines.end(&wall, recorder),
        }
    }
}
