//! The trace that is being written, in one file or in several: tracks are described when something is first drawn on them, in
//! every file anew, so that each file can be opened by itself.

use std::{
    collections::{HashMap, HashSet},
    io::{self, Write},
};

use pulsetrain_otlp::{
    WireError,
    view::{Message, Resource},
};
use pulsetrain_perfetto::{
    Counter, CounterTrack, GroupTrack, LaneTrack, Process, ProcessTrack, StateTrack, TraceWriter,
    WriterConfig,
};

use super::{
    AttributePolicy, PerfettoConfig, PerfettoError, identity, resources::Resources, scopes::Scopes, values,
};

/// Where the heading of all counters stands among a process's tracks: below the rows of spans.
const METRICS_RANK: i32 = 100_000;
/// Where the row of log records stands: below the counters.
const LOGS_RANK: i32 = 200_000;
/// Where states stand: above everything.
const STATE_RANK: i32 = -1;

/// How many lanes remember their strings at once; some 40 KiB each.
const LIVE_LANES: usize = 256;

/// Where the files of a trace go.
pub trait PerfettoParts {
    /// One file.
    type Part: Write;

    /// Begins a file; they are counted from 0.
    fn open(&mut self, number: u32) -> io::Result<Self::Part>;

    /// Ends a file.
    fn close(&mut self, part: Self::Part) -> io::Result<()>;
}

/// What is known before anything is drawn.
#[derive(Clone, Copy)]
pub(super) struct About<'a> {
    pub(super) config: &'a PerfettoConfig,
    pub(super) resources: &'a Resources,
    pub(super) scopes: &'a Scopes,
    /// The place of each process among all, and its number.
    pub(super) places: &'a [i32],
    pub(super) pids: &'a [i32],
}

/// A trace, and the tracks that it has so far.
pub(super) struct Canvas<'a, P: PerfettoParts> {
    pub(super) about: About<'a>,
    pub(super) trace: TraceWriter<P::Part>,
    parts: &'a mut P,
    number: u32,
    /// After how many bytes the next file is begun.
    split: u64,
    tracks: Tracks,
    live: HashSet<LaneTrack>,
    /// The processes of all files.
    drawn: HashSet<u32>,
}

#[derive(Debug, Default)]
struct Tracks {
    processes: HashMap<u32, ProcessTrack>,
    /// The headings of counters and the rows of logs, by resource.
    metrics: HashMap<u32, GroupTrack>,
    logs: HashMap<u32, LaneTrack>,
    /// By group and place.
    lanes: HashMap<(u32, u32), LaneTrack>,
    counters: HashMap<u32, CounterTrack>,
    states: HashMap<u32, StateTrack>,
}

impl<'a, P: PerfettoParts> Canvas<'a, P> {
    pub(super) fn new(about: About<'a>, parts: &'a mut P, split: Option<u64>) -> io::Result<Self> {
        Ok(Self {
            about,
            trace: writer(parts, 0)?,
            parts,
            number: 0,
            split: split.unwrap_or(u64::MAX),
            tracks: Tracks::default(),
            live: HashSet::new(),
            drawn: HashSet::new(),
        })
    }

    /// Whether the file has as much as it may have.
    pub(super) fn is_full(&self) -> bool {
        self.trace.bytes() >= self.split
    }

    /// How many bytes a file may have.
    pub(super) fn split(&self) -> u64 {
        self.split
    }

    /// Goes on in the next file.
    pub(super) fn turn_page(&mut self) -> io::Result<()> {
        self.number += 1;
        let next = writer(self.parts, self.number)?;
        let full = std::mem::replace(&mut self.trace, next);
        self.parts.close(full.finish()?)?;
        self.tracks = Tracks::default();
        self.live.clear();
        Ok(())
    }

    /// Ends the last file and says how many there are, and how many processes.
    pub(super) fn finish(self) -> io::Result<(u32, u64)> {
        self.parts.close(self.trace.finish()?)?;
        Ok((self.number + 1, self.drawn.len() as u64))
    }

    /// The track of a process; where it is new, its resource is said at this time.
    pub(super) fn process(&mut self, resource: u32, time: u64) -> Result<ProcessTrack, PerfettoError> {
        if let Some(track) = self.tracks.processes.get(&resource) {
            return Ok(*track);
        }
        let entry = self.about.resources.get(resource);
        let labels: Vec<&str> = entry.labels.iter().map(String::as_str).collect();
        let process = self.trace.process(&Process {
            pid: self.about.pids[resource as usize],
            name: &entry.name,
            labels: &labels,
            rank: self.about.places[resource as usize],
        })?;
        self.tracks.processes.insert(resource, process);
        self.drawn.insert(resource);
        self.say_resource(process, resource, time)?;
        Ok(process)
    }

    fn say_resource(&mut self, process: ProcessTrack, number: u32, time: u64) -> Result<(), PerfettoError> {
        let About {
            config,
            resources,
            scopes,
            ..
        } = self.about;
        let entry = resources.get(number);
        let resource = Resource::decode(&entry.bytes)?;
        let used = entry.scopes.iter().map(|scope| (*scope, scopes.get(*scope)));
        let mut outcome: Result<(), WireError> = Ok(());
        self.trace.instant(process, time, "resource", |event| {
            let mut out = event.annotations();
            if config.attributes.is_full() {
                outcome = identity::add_resource(&entry.bytes, used, &mut out);
            }
            let added = values::attributes(resource.attributes, &AttributePolicy::Full, &mut out);
            outcome = outcome.and(added);
        })?;
        Ok(outcome?)
    }

    /// A lane of a group, where lane 0 is the first.
    pub(super) fn lane(
        &mut self,
        (group, place): (u32, u32),
        process: ProcessTrack,
        name: &str,
        rank: i32,
    ) -> io::Result<LaneTrack> {
        let lane = match self.tracks.lanes.get(&(group, place)) {
            Some(lane) => *lane,
            None => {
                let lane = self.trace.lane(process, name, rank)?;
                self.tracks.lanes.insert((group, place), lane);
                lane
            }
        };
        if self.live.insert(lane) && self.live.len() > LIVE_LANES {
            self.live.drain().for_each(|lane| self.trace.forget(lane));
            self.live.insert(lane);
        }
        Ok(lane)
    }

    /// The heading of a process's counters.
    pub(super) fn metrics(&mut self, resource: u32, time: u64) -> Result<GroupTrack, PerfettoError> {
        let process = self.process(resource, time)?;
        if let Some(track) = self.tracks.metrics.get(&resource) {
            return Ok(*track);
        }
        let track = self.trace.group(process, "metrics", METRICS_RANK)?;
        self.tracks.metrics.insert(resource, track);
        Ok(track)
    }

    /// A counter.
    pub(super) fn counter(
        &mut self,
        series: u32,
        heading: GroupTrack,
        about: &Counter<'_>,
    ) -> io::Result<CounterTrack> {
        if let Some(track) = self.tracks.counters.get(&series) {
            return Ok(*track);
        }
        let track = self.trace.counter(heading, about)?;
        self.tracks.counters.insert(series, track);
        Ok(track)
    }

    /// A row of states.
    pub(super) fn state(
        &mut self,
        number: u32,
        resource: u32,
        name: &str,
        time: u64,
    ) -> Result<StateTrack, PerfettoError> {
        let process = self.process(resource, time)?;
        if let Some(track) = self.tracks.states.get(&number) {
            return Ok(*track);
        }
        let track = self.trace.state(process, name, STATE_RANK)?;
        self.tracks.states.insert(number, track);
        Ok(track)
    }

    /// The row of a process's log records.
    pub(super) fn logs(&mut self, resource: u32, time: u64) -> Result<LaneTrack, PerfettoError> {
        let process = self.process(resource, time)?;
        if let Some(track) = self.tracks.logs.get(&resource) {
            return Ok(*track);
        }
        let track = self.trace.lane(process, "logs", LOGS_RANK)?;
        self.tracks.logs.insert(resource, track);
        Ok(track)
    }
}

fn writer<P: PerfettoParts>(parts: &mut P, number: u32) -> io::Result<TraceWriter<P::Part>> {
    let config = WriterConfig {
        // Files of one trace may be opened together.
        seed: u64::from(number) << 40,
        ..WriterConfig::default()
    };
    Ok(TraceWriter::with_config(parts.open(number)?, config))
}
