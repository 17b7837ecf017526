//! Processes, threads and counters of a Chrome JSON trace, and the slices that are open on them.

use std::{
    collections::{BTreeMap, btree_map::Entry},
    hash::{DefaultHasher, Hash, Hasher},
    io::{self, Write},
};

use pulsetrain_perfetto::{
    AnnotationList, AnnotationValue, Annotations, Counter, CounterTrack, Event as Written, EventTrack,
    Process, ProcessTrack, TraceWriter,
};
use serde_json::{Map, Value};

use super::{
    event::{Event, EventError, RowKey, key, number},
    pairs::{Complete, UNFINISHED},
};
use pulsetrain_to_perfetto::vocabulary::EMPTY;

/// The first number for processes without a number of their own, such as `"pid": "Traces"`.
const FIRST_OWN_PID: i32 = 1_000_000_000;

/// The metadata of processes and threads, and their tracks in the output trace.
#[derive(Default)]
pub(super) struct Rows {
    names: BTreeMap<String, ProcessNames>,
    processes: BTreeMap<String, ProcessTrack>,
    threads: BTreeMap<RowKey, Row>,
    counters: BTreeMap<(String, String), CounterTrack>,
}

#[derive(Default)]
struct ProcessNames {
    name: String,
    label: String,
    order: i32,
    threads: BTreeMap<String, String>,
}

/// The slices of a thread, on lanes on which they do not cross.
struct Row {
    process: ProcessTrack,
    name: String,
    lanes: Vec<Lane>,
    /// Arrows that are not yet attached to a slice that begins at their time.
    arrows: Vec<Arrow>,
}

struct Lane {
    track: EventTrack,
    /// The ends of the open slices, outermost first.
    ends: Vec<u64>,
}

#[derive(Clone)]
struct Arrow {
    time: u64,
    id: u64,
    is_last: bool,
    name: String,
    /// The lane with the slice that is open at its time.
    lane: usize,
}

impl Rows {
    /// Stores the metadata of a process or a thread.
    pub(super) fn describe(&mut self, event: &Event<'_>) -> Result<(), EventError> {
        let names = self.names.entry(key(&event.pid)).or_default();
        let (text, place) = match &*event.name {
            "process_name" => (event.text("name"), &mut names.name),
            "process_labels" => (event.text("labels"), &mut names.label),
            "thread_name" => (
                event.text("name"),
                names.threads.entry(key(&event.tid)).or_default(),
            ),
            "process_sort_index" => {
                let index = event.args.get("sort_index").and_then(Value::as_i64);
                names.order = index.map_or(0, |index| index.clamp(i32::MIN.into(), i32::MAX.into()) as i32);
                return Ok(());
            }
            // All other metadata is ignored: the viewer orders the threads.
            _ => return Ok(()),
        };
        text.ok_or_else(|| EventError::NoText(event.name.to_string()))?
            .clone_into(place);
        Ok(())
    }

    /// Writes an event at a time in nanoseconds since 1970. Events come in the order of their times.
    pub(super) fn write<W: Write>(
        &mut self,
        complete: &Complete<'_>,
        time: u64,
        rank: Option<u64>,
        trace: &mut TraceWriter<W>,
    ) -> io::Result<()> {
        let event = &complete.event;
        if event.phase == "C" {
            return self.count(event, time, rank, trace);
        }
        let row = self.row(event, rank, trace)?;
        row.close(time, trace)?;
        match &*event.phase {
            "X" | "B" | "b" | "S" => row.begin(complete, time, trace),
            "s" | "t" | "f" => {
                let lane = row.open_lane();
                row.arrows.push(Arrow {
                    lane,
                    time,
                    id: arrow_id(event),
                    is_last: event.phase == "f",
                    name: event.name.clone().into_owned(),
                });
                Ok(())
            }
            _ => {
                let track = row.lanes[row.open_lane()].track;
                trace.instant(track, time, event.name.as_bytes(), |written| {
                    describe(event, written);
                })
            }
        }
    }

    /// Ends all open slices except those without an end.
    pub(super) fn finish<W: Write>(&mut self, trace: &mut TraceWriter<W>) -> io::Result<()> {
        self.threads
            .values_mut()
            .try_for_each(|row| row.close(UNFINISHED - 1, trace))
    }

    fn row<W: Write>(
        &mut self,
        event: &Event<'_>,
        rank: Option<u64>,
        trace: &mut TraceWriter<W>,
    ) -> io::Result<&mut Row> {
        let key = event.row();
        let process = self.process(&key.0, rank, trace)?;
        match self.threads.entry(key) {
            Entry::Occupied(row) => Ok(row.into_mut()),
            Entry::Vacant(row) => {
                let (pid, thread) = row.key();
                let named = self.names.get(pid).and_then(|names| names.threads.get(thread));
                let (name, track) = match (event.is_async(), thread.parse::<i64>()) {
                    (false, Ok(tid)) => {
                        let name = named.cloned().unwrap_or_else(|| format!("thread {tid}"));
                        let track = trace.thread(process, tid, &name)?.into();
                        (name, track)
                    }
                    _ => {
                        let name = named.cloned().unwrap_or_else(|| thread.clone());
                        let track = trace.lane(process, &name, 0)?.into();
                        (name, track)
                    }
                };
                Ok(row.insert(Row {
                    process,
                    name,
                    lanes: vec![Lane {
                        track,
                        ends: Vec::new(),
                    }],
                    arrows: Vec::new(),
                }))
            }
        }
    }

    fn process<W: Write>(
        &mut self,
        pid: &str,
        rank: Option<u64>,
        trace: &mut TraceWriter<W>,
    ) -> io::Result<ProcessTrack> {
        if let Some(process) = self.processes.get(pid) {
            return Ok(*process);
        }
        let unnamed = ProcessNames::default();
        let names = self.names.get(pid).unwrap_or(&unnamed);
        let own = if names.name.is_empty() && pid.is_empty() {
            "trace".to_owned()
        } else if names.name.is_empty() {
            format!("process {pid}")
        } else {
            names.name.clone()
        };
        let rank = rank.map(|rank| format!("rank {rank}"));
        // Files of several ranks have processes with the same names and numbers.
        let parts = [rank.as_deref(), Some(own.as_str()), Some(names.label.as_str())];
        let name: Vec<&str> = parts
            .into_iter()
            .flatten()
            .filter(|part| !part.is_empty())
            .collect();
        let about = Process {
            pid: pid.parse().unwrap_or(FIRST_OWN_PID + self.processes.len() as i32),
            name: &name.join(" "),
            labels: &[],
            rank: names.order,
        };
        let process = trace.process(&about)?;
        self.processes.insert(pid.to_owned(), process);
        Ok(process)
    }

    fn count<W: Write>(
        &mut self,
        event: &Event<'_>,
        time: u64,
        rank: Option<u64>,
        trace: &mut TraceWriter<W>,
    ) -> io::Result<()> {
        let pid = key(&event.pid);
        let process = self.process(&pid, rank, trace)?;
        for (series, value) in event.args.as_object().into_iter().flatten() {
            let Some(value) = number(value) else {
                continue;
            };
            let id = if event.id().is_null() {
                String::new()
            } else {
                format!("[{}]", key(event.id()))
            };
            let name = format!("{}{id} {series}", event.name);
            let counter = match self.counters.entry((pid.clone(), name)) {
                Entry::Occupied(counter) => *counter.get(),
                Entry::Vacant(counter) => {
                    let about = Counter {
                        name: &counter.key().1,
                        ..Counter::default()
                    };
                    let track = trace.counter(process, &about)?;
                    *counter.insert(track)
                }
            };
            trace.count(counter, time, value)?;
        }
        Ok(())
    }
}

impl Row {
    /// Ends the slices whose end is not after `time`.
    fn close<W: Write>(&mut self, time: u64, trace: &mut TraceWriter<W>) -> io::Result<()> {
        for lane in &mut self.lanes {
            while let Some(end) = lane.ends.pop_if(|end| *end <= time) {
                trace.end(lane.track, end)?;
            }
        }
        self.write_arrows(time, trace)
    }

    /// Returns the first lane with an open slice, or else the first one.
    fn open_lane(&self) -> usize {
        let is_open = |lane: &Lane| !lane.ends.is_empty();
        self.lanes.iter().position(is_open).unwrap_or_default()
    }

    /// Begins a slice on the first lane whose open slices all contain it.
    fn begin<W: Write>(
        &mut self,
        slice: &Complete<'_>,
        time: u64,
        trace: &mut TraceWriter<W>,
    ) -> io::Result<()> {
        // A slice without an end contains everything that begins later.
        let end = time.saturating_add(slice.duration);
        let fits = |lane: &Lane| lane.ends.last().is_none_or(|outer| end <= *outer);
        let lane = match self.lanes.iter().position(fits) {
            Some(lane) => lane,
            None => {
                let track = trace.lane(self.process, &self.name, 0)?.into();
                self.lanes.push(Lane {
                    track,
                    ends: Vec::new(),
                });
                self.lanes.len() - 1
            }
        };
        let arrows = std::mem::take(&mut self.arrows);
        let lane = &mut self.lanes[lane];
        trace.begin(lane.track, time, slice.event.name.as_bytes(), |written| {
            for arrow in &arrows {
                arrow.add_to(written);
            }
            describe(&slice.event, written);
            if let Some(end) = &slice.end {
                add_arguments(end, written);
            }
        })?;
        if end == time {
            return trace.end(lane.track, end);
        }
        lane.ends.push(end);
        Ok(())
    }

    /// Writes arrows without a slice at their time as instants.
    fn write_arrows<W: Write>(&mut self, time: u64, trace: &mut TraceWriter<W>) -> io::Result<()> {
        for arrow in self.arrows.extract_if(.., |arrow| arrow.time < time) {
            let track = self.lanes[arrow.lane].track;
            trace.instant(track, arrow.time, arrow.name.as_bytes(), |written| {
                arrow.add_to(written);
            })?;
        }
        Ok(())
    }
}

impl Arrow {
    fn add_to(&self, written: &mut Written<'_>) {
        if self.is_last {
            written.last_of_flow(self.id);
        } else {
            written.flow(self.id);
        }
    }
}

/// Writes the category, the arguments, and the arrows that the event itself begins or ends.
fn describe(event: &Event<'_>, written: &mut Written<'_>) {
    if let Some(id) = event.bound_arrow() {
        written.flow(flow_id(&("bind_id", key(id))));
    }
    if !event.category.is_empty() {
        written.category(event.category.as_bytes());
    }
    add_arguments(event, written);
}

fn add_arguments(event: &Event<'_>, written: &mut Written<'_>) {
    if let Some(arguments) = event.args.as_object() {
        add_entries(&mut written.annotations(), arguments);
    }
}

fn annotate(annotations: &mut Annotations<'_>, name: &str, value: &Value) {
    match value {
        Value::Array(values) => annotations.list(name, |list| fill(list, values)),
        Value::Object(entries) => annotations.map(name, |map| add_entries(map, entries)),
        Value::Null => annotations.map(name, add_null),
        scalar => annotations.add(name, annotation(scalar)),
    }
}

fn fill(list: &mut AnnotationList<'_>, values: &[Value]) {
    for value in values {
        match value {
            Value::Array(values) => list.list(|inner| fill(inner, values)),
            Value::Object(entries) => list.map(|map| add_entries(map, entries)),
            Value::Null => list.map(add_null),
            scalar => list.push(annotation(scalar)),
        }
    }
}

fn add_entries(annotations: &mut Annotations<'_>, entries: &Map<String, Value>) {
    for (name, value) in entries {
        annotate(annotations, name, value);
    }
}

/// Writes `null` as the mapper writes an empty value: Perfetto has no type for it.
fn add_null(map: &mut Annotations<'_>) {
    map.add(EMPTY, "null");
}

/// Converts a boolean, a number or a text.
fn annotation(value: &Value) -> AnnotationValue<'_> {
    match value {
        Value::Bool(value) => (*value).into(),
        Value::Number(number) => match (number.as_i64(), number.as_u64(), number.as_f64()) {
            (Some(value), ..) => value.into(),
            (_, Some(value), _) => value.into(),
            (.., value) => value.unwrap_or(f64::NAN).into(),
        },
        other => other.as_str().unwrap_or_default().into(),
    }
}

/// Returns the id of an arrow, which the format identifies by category and id.
fn arrow_id(event: &Event<'_>) -> u64 {
    flow_id(&(
        event.category.as_ref(),
        key(event.id()),
        event.id_process().map(key),
    ))
}

/// Returns the number of a flow.
fn flow_id(parts: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    parts.hash(&mut hasher);
    hasher.finish() | 1
}
