//! Converts Chrome JSON traces, the format of PyTorch's profiler (Kineto) and many other programs, to OTLP.
//!
//! The events are sorted by time and written as a Perfetto trace to a temporary file, which is then read like any other
//! ([`convert_perfetto`]). The format is described in "Trace Event Format" (Google, 2016); `baseTimeNanoseconds` and
//! `distributedInfo` are extensions of Kineto (`libkineto/src/output_json.cpp`).

mod bare_words;
mod event;
mod pairs;
mod rows;

use std::{
    collections::BTreeMap,
    fmt,
    io::{self, Read, Seek, Write},
};

use pulsetrain_otlp::{Signal, UnixNanos};
use pulsetrain_perfetto::TraceWriter;
use pulsetrain_pipeline::spill::{MemoryBudget, Sorter};
use serde::de::{DeserializeSeed, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::{de::IoRead, value::RawValue};

use self::{
    bare_words::QuotedNumbers,
    event::{Event, EventError},
    pairs::{Complete, Pairs},
    rows::Rows,
};
use crate::{ConvertError, PerfettoConversion, PerfettoTrace, convert_perfetto};

/// The limit for problems that are listed individually.
const PROBLEMS: usize = 20;

/// The limit for the characters of an event that a problem quotes.
const QUOTED: usize = 80;

/// The limit for the characters of the reason in a problem, which can quote a value of the event.
const PROBLEM: usize = 400;

/// Times from this one on count from 1970 if the trace has no base time: 2001 in microseconds.
const ABSOLUTE_MICROS: u64 = 1_000_000_000_000_000;

/// Reads a trace, or several traces after each other, and passes OTLP messages to `deliver`. Without `baseTimeNanoseconds`
/// or times since 1970, times count from `start_unix_nanos`.
///
/// # Errors
///
/// A temporary file cannot be used, or `deliver` fails. Problems of the trace are listed in the conversion.
pub fn convert_chrome_json<E: From<ConvertError>>(
    input: impl Read,
    file_name: &str,
    start_unix_nanos: Option<UnixNanos>,
    room: &MemoryBudget,
    deliver: &mut impl FnMut(Signal, Vec<u8>) -> Result<(), E>,
) -> Result<PerfettoConversion, E> {
    let input = io::BufReader::new(QuotedNumbers::new(input));
    let mut json = serde_json::Deserializer::from_reader(input);
    let (mut conversion, mut events) = (PerfettoConversion::default(), 0);
    for number in 0_u64.. {
        let mut trace = Trace::new(room, events);
        let is_complete = trace.read(&mut json);
        let is_empty = trace.count == events;
        events = trace.count;
        let problems = trace.take_problems();
        conversion.is_undated |= (number == 0 || !is_empty) && trace.is_undated(start_unix_nanos);
        problems.iter().for_each(|problem| conversion.fail(problem));
        let (perfetto, stray_ends) = trace
            .write(start_unix_nanos, room)
            .map_err(ConvertError::Temporary)?;
        // Ids of spans depend on the name.
        let name = match number {
            0 => file_name.to_owned(),
            further => format!("{file_name}\0{further}"),
        };
        let mut converted = convert_perfetto(PerfettoTrace::new(perfetto), &name, None, room, deliver)?;
        // The written trace has a wall clock, so only the events decide this.
        converted.is_undated = false;
        converted.stray_ends += stray_ends;
        conversion.add(converted);
        if !is_complete || json.end().is_ok() {
            break;
        }
    }
    Ok(conversion)
}

/// The events and the metadata of a trace.
struct Trace {
    events: Sorter,
    rows: Rows,
    /// The time 0 of the trace in nanoseconds since 1970.
    base: Option<u64>,
    rank: Option<u64>,
    /// The number of events so far, including those of earlier traces.
    count: u64,
    latest_micros: u64,
    /// Whether the text is an object without `traceEvents`.
    is_foreign: bool,
    /// Events of phases that cannot be represented in OTLP.
    unknown: BTreeMap<String, u64>,
    /// Values of counters that are not numbers.
    odd_values: u64,
    problems: Vec<String>,
    further_problems: u64,
    failure: Option<io::Error>,
}

impl Trace {
    /// Creates a trace that follows others with `count` events.
    fn new(room: &MemoryBudget, count: u64) -> Self {
        Self {
            events: Sorter::new(room.share(2)),
            rows: Rows::default(),
            base: None,
            rank: None,
            count,
            latest_micros: 0,
            is_foreign: false,
            unknown: BTreeMap::new(),
            odd_values: 0,
            problems: Vec::new(),
            further_problems: 0,
            failure: None,
        }
    }

    /// Reads one trace, or reports an object that is not a trace. Returns `false` if it cannot be read to its end.
    fn read(&mut self, json: &mut serde_json::Deserializer<IoRead<impl Read>>) -> bool {
        let Err(error) = TopLevel(self).deserialize(&mut *json) else {
            return true;
        };
        if self.is_foreign {
            self.problems.push(error.to_string());
            return true;
        }
        if self.failure.is_none() {
            let count = self.count;
            self.problems.push(format!(
                "the trace cannot be read to its end: {error}; its first {count} events are used"
            ));
        }
        false
    }

    fn take(&mut self, text: &str) {
        // XLA writes an empty object after the last event.
        let inside = text.strip_prefix('{').and_then(|text| text.strip_suffix('}'));
        if inside.is_some_and(|inside| inside.trim_ascii().is_empty()) {
            return;
        }
        self.count += 1;
        let taken = serde_json::from_str::<Event<'_>>(text)
            .map_err(EventError::from)
            .and_then(|event| self.sort(&event, text));
        if let Err(error) = taken {
            let quoted = on_one_line(text, QUOTED);
            let problem = on_one_line(&error.to_string(), PROBLEM);
            self.problem(format!("event {}, {quoted}: {problem}", self.count));
        }
    }

    /// Adds an event to the sorter, or stores the metadata of a process or a thread.
    fn sort(&mut self, event: &Event<'_>, text: &str) -> Result<(), EventError> {
        match &*event.phase {
            "M" => return self.rows.describe(event),
            "X" => {
                event.duration()?;
            }
            "C" => self.odd_values += event.odd_values()?,
            "s" | "t" | "f" | "B" | "E" | "b" | "e" | "S" | "F" | "n" | "i" | "I" | "R" => {}
            other => {
                *self.unknown.entry(other.to_owned()).or_default() += 1;
                return Ok(());
            }
        }
        let nanos = event.nanos()?;
        self.latest_micros = self.latest_micros.max(nanos / 1000);
        let written = self
            .events
            .push((nanos, 0), |out| out.extend_from_slice(text.as_bytes()));
        if let Err(error) = written {
            self.failure = Some(error);
        }
        Ok(())
    }

    fn problem(&mut self, problem: String) {
        if self.problems.len() < PROBLEMS {
            self.problems.push(problem);
        } else {
            self.further_problems += 1;
        }
    }

    fn take_problems(&mut self) -> Vec<String> {
        let mut problems = std::mem::take(&mut self.problems);
        if self.further_problems > 0 {
            problems.push(format!("{} more events cannot be read", self.further_problems));
        }
        let unknown = std::mem::take(&mut self.unknown).into_iter();
        problems.extend(unknown.map(|(phase, count)| {
            format!("{count} events of the phase {phase:?} cannot be represented in OTLP")
        }));
        if self.odd_values > 0 {
            problems.push(format!("{} values of counters are not numbers", self.odd_values));
        }
        problems
    }

    fn is_undated(&self, start_unix_nanos: Option<UnixNanos>) -> bool {
        let is_absolute = self.latest_micros >= ABSOLUTE_MICROS;
        self.base.is_none() && !is_absolute && start_unix_nanos.is_none()
    }

    /// Writes the events as a Perfetto trace. Returns its file, positioned at the start, and the number of ends without a
    /// begin.
    fn write(
        mut self,
        start_unix_nanos: Option<UnixNanos>,
        room: &MemoryBudget,
    ) -> io::Result<(impl Read + use<>, u64)> {
        if let Some(error) = self.failure {
            return Err(error);
        }
        let is_absolute = self.latest_micros >= ABSOLUTE_MICROS;
        let start = start_unix_nanos.filter(|_| !is_absolute);
        let base = self.base.or(start.map(|start| start.0)).unwrap_or_default();
        let folder = room.folder.clone().unwrap_or_else(std::env::temp_dir);
        let mut trace = TraceWriter::new(tempfile::tempfile_in(folder)?);
        let mut events = self.events.sorted()?;
        let mut pairs = Pairs::new(room);
        while let Some((nanos, _)) = events.next_key() {
            let Some(text) = events.next_record()? else {
                break;
            };
            // The event was parsed before.
            if let Ok(event) = serde_json::from_slice::<Event<'_>>(text) {
                pairs.add(&event, nanos, text)?;
            }
        }
        drop(events);
        let stray_ends = pairs.stray_ends;
        let mut events = pairs.sorted()?;
        while let Some((nanos, _)) = events.next_key() {
            let Some(complete) = events.next_record()?.and_then(Complete::read) else {
                continue;
            };
            let time = base.saturating_add(nanos);
            self.rows.write(&complete, time, self.rank, &mut trace)?;
        }
        self.rows.finish(&mut trace)?;
        let mut file = trace.finish()?;
        file.flush()?;
        file.rewind()?;
        Ok((file, stray_ends))
    }
}

/// Reads a trace: an object with `traceEvents`, or only the array of events.
struct TopLevel<'t>(&'t mut Trace);

impl<'de> DeserializeSeed<'de> for TopLevel<'_> {
    type Value = ();

    fn deserialize<D: serde::Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for TopLevel<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a Chrome JSON trace")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let mut has_events = false;
        while let Some(key) = map.next_key::<String>()? {
            match key.as_str() {
                "traceEvents" => {
                    has_events = true;
                    map.next_value_seed(TopLevel(&mut *self.0))?;
                }
                "baseTimeNanoseconds" => self.0.base = map.next_value::<serde_json::Value>()?.as_u64(),
                "distributedInfo" => self.0.rank = map.next_value::<serde_json::Value>()?["rank"].as_u64(),
                _ => {
                    map.next_value::<IgnoredAny>()?;
                }
            }
        }
        if has_events {
            return Ok(());
        }
        self.0.is_foreign = true;
        Err(serde::de::Error::custom(
            "an object without `traceEvents` was skipped",
        ))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut events: A) -> Result<(), A::Error> {
        while let Some(event) = events.next_element::<Box<RawValue>>()? {
            self.0.take(event.get());
            if self.0.failure.is_some() {
                return Err(serde::de::Error::custom("a temporary file failed"));
            }
        }
        Ok(())
    }
}

/// Returns the beginning of a text on one line, with `...` if the text is longer. Kineto writes an event over several lines.
fn on_one_line(text: &str, most: usize) -> String {
    // A word and the space after it have two characters or more.
    let words: Vec<&str> = text.split_whitespace().take(most).collect();
    let line = words.join(" ");
    match line.char_indices().nth(most) {
        Some((end, _)) => format!("{}...", &line[..end]),
        None => line,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quoted_text_is_one_line_cut_at_the_character_limit() {
        for (text, quoted) in [
            ("{\n    \"ph\": \"X\"\n}", "{ \"ph\"..."),
            (
                "\u{e9}\u{e9}\u{e9}\u{e9}\u{e9}\u{e9}\u{e9}\u{e9}",
                "\u{e9}\u{e9}\u{e9}\u{e9}\u{e9}\u{e9}...",
            ),
            ("{ \t}", "{ }"),
            ("", ""),
        ] {
            assert_eq!(on_one_line(text, 6), quoted);
        }
    }

    #[test]
    fn mutated_chrome_traces_never_panic_with_any_memory_budget() {
        let sound = br#"{"baseTimeNanoseconds": 1700000000000000000, "traceEvents": [
            {"ph": "X", "name": "a", "pid": 1, "tid": 2, "ts": 1.5, "dur": 10, "args": {"x": [1, {"y": null}]}},
            {"ph": "B", "name": "b", "pid": "p", "tid": "t", "ts": 2}, {"ph": "E", "pid": "p", "tid": "t", "ts": 3},
            {"ph": "C", "name": "c", "pid": 1, "ts": 4, "args": {"v": 5}}, {"ph": "s", "id": 1, "pid": 1, "tid": 2, "ts": 1.5},
            {"ph": "b", "name": "d", "pid": 1, "ts": 6, "id": "0x1"}, {"ph": "M", "name": "process_name", "pid": 1, "args": {"name": "n"}}
        ]}"#;
        let mut random = fastrand::Rng::with_seed(7);
        for round in 0..3000 {
            let mut bytes = sound.to_vec();
            for _ in 0..=round % 4 {
                let place = random.usize(..bytes.len());
                match random.u8(..3) {
                    0 => bytes[place] = random.u8(..),
                    1 => drop(bytes.remove(place)),
                    _ => bytes.insert(
                        place,
                        *random.choice(b"0129-.eE\"{}[],:tnXBEs").expect("there are some"),
                    ),
                }
            }
            let room = MemoryBudget {
                bytes: if round % 2 == 0 { 1 } else { 1 << 20 },
                folder: None,
            };
            let mut spans = 0;
            let converted = convert_chrome_json(
                &bytes[..],
                "trace.json",
                None,
                &room,
                &mut |_, message: Vec<u8>| {
                    spans += message.len();
                    Ok::<(), ConvertError>(())
                },
            );
            converted.expect("temporary files can be used");
        }
    }
}
