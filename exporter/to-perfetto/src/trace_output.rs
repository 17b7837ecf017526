//! The trace that is being written, in one file or in several. In every file, a track is described when something is first
//! drawn on it, so that each file can be opened separately.

use std::{
    collections::{HashMap, HashSet, hash_map::Entry},
    hash::Hash,
    io::{self, Write},
};

use pulsetrain_otlp::{
    WireError,
    view::{Message, Resource, Status},
};
use pulsetrain_perfetto::{
    Counter, CounterTrack, GroupTrack, LaneTrack, Process, ProcessTrack, StateTrack, TraceWriter,
    WriterConfig,
};

use super::{
    AttributePolicy, PerfettoConfig, PerfettoError, identity, resources::Resources, scopes::Scopes, values,
};
use crate::vocabulary::{BY_TRACE, VERSION};

/// The rank of the heading of all counters among a process's tracks: below the rows of spans.
const METRICS_RANK: i32 = 100_000;
/// The rank of the row of log records: below the counters.
const LOGS_RANK: i32 = 200_000;
/// The rank of states: above the rows of spans.
const STATE_RANK: i32 = -1;
/// The rank of the row of errors: above the states.
const ERRORS_RANK: i32 = -2;

/// The files of a trace.
pub trait PerfettoParts {
    /// One file.
    type Part: Write;

    /// Begins a file; they are counted from 0.
    fn open(&mut self, number: u32) -> io::Result<Self::Part>;

    /// Ends a file.
    fn close(&mut self, part: Self::Part) -> io::Result<()>;

    /// Ends a file in which nothing is drawn.
    fn discard(&mut self, part: Self::Part) -> io::Result<()> {
        self.close(part)
    }
}

/// The data that are known before anything is drawn.
#[derive(Clone, Copy)]
pub(super) struct DrawContext<'a> {
    pub(super) config: &'a PerfettoConfig,
    pub(super) resources: &'a Resources,
    pub(super) scopes: &'a Scopes,
    /// The sort rank of each process, and its pid.
    pub(super) places: &'a [i32],
    pub(super) pids: &'a [i32],
}

/// A trace, and the tracks of its current file.
pub(super) struct TraceOutput<'a, P: PerfettoParts> {
    pub(super) about: DrawContext<'a>,
    pub(super) trace: TraceWriter<P::Part>,
    parts: &'a mut P,
    number: u32,
    /// The number of bytes after which the next file begins.
    split: u64,
    tracks: Tracks,
    /// The processes of all files.
    drawn: HashSet<u32>,
}

#[derive(Debug, Default)]
struct Tracks {
    processes: HashMap<u32, ProcessTrack>,
    /// The headings of counters, by resource.
    metrics: HashMap<u32, GroupTrack>,
    /// The headings of metrics with several counters, by family.
    families: HashMap<u32, GroupTrack>,
    logs: HashMap<u32, LaneTrack>,
    errors: HashMap<u32, LaneTrack>,
    /// The lanes by group and index.
    lanes: HashMap<(u32, u32), LaneTrack>,
    counters: HashMap<u32, CounterTrack>,
    states: HashMap<u32, StateTrack>,
}

impl<'a, P: PerfettoParts> TraceOutput<'a, P> {
    pub(super) fn new(about: DrawContext<'a>, parts: &'a mut P, split: Option<u64>) -> io::Result<Self> {
        Ok(Self {
            about,
            trace: writer(parts, 0)?,
            parts,
            number: 0,
            split: split.unwrap_or(u64::MAX),
            tracks: Tracks::default(),
            drawn: HashSet::new(),
        })
    }

    /// Returns whether the file has reached its maximum size.
    pub(super) fn is_full(&self) -> bool {
        self.trace.bytes() >= self.split
    }

    /// Returns the maximum size of a file in bytes.
    pub(super) fn split(&self) -> u64 {
        self.split
    }

    /// Continues in the next file.
    pub(super) fn start_next_file(&mut self) -> io::Result<()> {
        self.number += 1;
        let next = writer(self.parts, self.number)?;
        let full = std::mem::replace(&mut self.trace, next);
        self.parts.close(full.finish()?)?;
        self.tracks = Tracks::default();
        Ok(())
    }

    /// Writes counts as attributes of the trace, unless nothing is drawn in it.
    pub(super) fn describe(&mut self, counts: impl Iterator<Item = (&'static str, u64)>) -> io::Result<()> {
        if self.trace.bytes() == 0 {
            return Ok(());
        }
        for (name, count) in counts {
            let key = format!("pulsetrain.{name}");
            self.trace.trace_attribute(&key, &count.to_string())?;
        }
        Ok(())
    }

    /// Ends the last file. Returns the number of files and of processes.
    pub(super) fn finish(self) -> io::Result<(u32, u64)> {
        if self.trace.bytes() == 0 {
            self.parts.discard(self.trace.finish()?)?;
            return Ok((self.number, self.drawn.len() as u64));
        }
        self.parts.close(self.trace.finish()?)?;
        Ok((self.number + 1, self.drawn.len() as u64))
    }

    /// Returns the track of a process. A new one gets an instant with its resource at `time`.
    pub(super) fn process(&mut self, resource: u32, time: u64) -> Result<ProcessTrack, PerfettoError> {
        if let Some(track) = self.tracks.processes.get(&resource) {
            return Ok(*track);
        }
        if self.tracks.processes.is_empty() {
            self.trace.trace_attribute(VERSION, env!("CARGO_PKG_VERSION"))?;
            if self.about.config.by_trace {
                self.trace.trace_attribute(BY_TRACE, "trace")?;
            }
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
        self.describe_resource(process, resource, time)?;
        Ok(process)
    }

    fn describe_resource(
        &mut self,
        process: ProcessTrack,
        number: u32,
        time: u64,
    ) -> Result<(), PerfettoError> {
        let DrawContext {
            config,
            resources,
            scopes,
            ..
        } = self.about;
        let entry = resources.get(number);
        let resource = Resource::decode(&entry.bytes)?;
        let scope = |number: &u32| Some((*number, scopes.get(*number)?));
        let used = entry.scopes.iter().filter_map(scope);
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

    /// Returns a lane of a group; the first lane is 0.
    pub(super) fn lane(
        &mut self,
        (group, place): (u32, u32),
        process: ProcessTrack,
        name: &str,
        rank: i32,
    ) -> io::Result<LaneTrack> {
        let new = || self.trace.lane(process, name, rank);
        find_or_add(&mut self.tracks.lanes, (group, place), new)
    }

    /// Returns the heading of a process's counters.
    pub(super) fn metrics(&mut self, resource: u32, time: u64) -> Result<GroupTrack, PerfettoError> {
        let process = self.process(resource, time)?;
        let new = || self.trace.group(process, "metrics", METRICS_RANK);
        Ok(find_or_add(&mut self.tracks.metrics, resource, new)?)
    }

    /// Returns the heading of a metric with several counters, below that of all counters of its process.
    pub(super) fn metric(
        &mut self,
        (family, name): (u32, &str),
        resource: u32,
        time: u64,
    ) -> Result<GroupTrack, PerfettoError> {
        let metrics = self.metrics(resource, time)?;
        let new = || self.trace.group(metrics, name, 0);
        Ok(find_or_add(&mut self.tracks.families, family, new)?)
    }

    /// Returns a counter.
    pub(super) fn counter(
        &mut self,
        series: u32,
        heading: GroupTrack,
        about: &Counter<'_>,
    ) -> io::Result<CounterTrack> {
        let new = || self.trace.counter(heading, about);
        find_or_add(&mut self.tracks.counters, series, new)
    }

    /// Returns a row of states.
    pub(super) fn state(
        &mut self,
        number: u32,
        resource: u32,
        name: &str,
        time: u64,
    ) -> Result<StateTrack, PerfettoError> {
        let process = self.process(resource, time)?;
        let new = || self.trace.state(process, name, STATE_RANK);
        Ok(find_or_add(&mut self.tracks.states, number, new)?)
    }

    /// Draws the end of a failed span on the row of errors of its process.
    pub(super) fn error(
        &mut self,
        resource: u32,
        (end, name): (u64, &[u8]),
        status: &Status<'_>,
    ) -> Result<(), PerfettoError> {
        let process = self.process(resource, end)?;
        let new = || self.trace.lane(process, "errors", ERRORS_RANK);
        let row = find_or_add(&mut self.tracks.errors, resource, new)?;
        // The name differs from that of the span, so that a query by name finds only the span.
        let failed = [name, b" failed"].concat();
        Ok(self.trace.instant(row, end, failed, |event| {
            event.annotations().map(identity::KEY, |map| {
                map.add(identity::ERROR_OF, name);
                identity::text(map, "status_message", status.message.as_bytes());
            });
        })?)
    }

    /// Returns the row of a process's log records.
    pub(super) fn logs(&mut self, resource: u32, time: u64) -> Result<LaneTrack, PerfettoError> {
        let process = self.process(resource, time)?;
        let new = || self.trace.lane(process, "logs", LOGS_RANK);
        Ok(find_or_add(&mut self.tracks.logs, resource, new)?)
    }
}

/// Returns the track under a key, which `new` adds to the trace the first time.
fn find_or_add<K: Eq + Hash, T: Copy>(
    tracks: &mut HashMap<K, T>,
    key: K,
    new: impl FnOnce() -> io::Result<T>,
) -> io::Result<T> {
    match tracks.entry(key) {
        Entry::Occupied(known) => Ok(*known.get()),
        Entry::Vacant(vacant) => Ok(*vacant.insert(new()?)),
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
