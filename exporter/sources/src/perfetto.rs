//! Perfetto traces as OTLP: slices are spans, counters are gauges, log lines are log records.
//!
//! A trace that the Perfetto sink wrote in full gives back the very spans, points and log records that it was made of
//! (`written`), one of Tunix the spans of the registry, as an import of it does (`tunix`). Any other gives what a viewer
//! shows: nesting is parenthood, a process is a resource, a track is `thread.name`, annotations are attributes.
//! Times of clocks that a trace does not tie to the wall clock count from the time that the user says, else from the time
//! in the file's name, else from 1970.

mod envelope;
mod message;
mod slices;
mod spans;
mod tracks;
mod tunix;
mod values;
mod written;

use std::io::Read;

use pulsetrain_otlp::Signal;
use pulsetrain_perfetto::{EventKind, Item, LogItem, ReadError, Time, TraceEvent, TraceReader};

use self::{
    slices::{Epoch, Slices},
    tracks::Tracks,
    written::Written,
};
use crate::{Skipped, logs::RunOptions, tunix_trace::Version};

/// What a trace came to.
#[derive(Debug, Default)]
pub struct PerfettoConversion {
    /// OTLP messages, each with its signal.
    pub messages: Vec<(Signal, Vec<u8>)>,
    /// Spans in them.
    pub spans: u64,
    /// Points in them.
    pub points: u64,
    /// Log records in them.
    pub logs: u64,
    /// Packets of kinds that are not known, left out.
    pub unknown_packets: u64,
    /// Packets that rely on state which was lost, left out.
    pub packets_without_state: u64,
    /// Ends of slices that never began, left out.
    pub stray_ends: u64,
    /// Slices that never end; they last until the end of the trace.
    pub unfinished: u64,
    /// What could not be read, with its place; the first few.
    pub errors: Vec<String>,
    /// What else was not taken over of a trace of Tunix.
    pub skipped: Skipped,
}

/// How many errors are told one by one.
const ERRORS: usize = 20;

/// Reads a trace whose file has this name; `options` say what the trace does not.
pub fn convert_perfetto(input: impl Read, file_name: &str, options: &RunOptions) -> PerfettoConversion {
    let mut conversion = PerfettoConversion::default();
    let (mut tracks, mut events, mut logs) = (Tracks::default(), Vec::new(), Vec::new());
    let mut reader = TraceReader::new(input);
    while let Some(item) = reader.next() {
        match item {
            Ok(Item::Track(track)) => match Version::of(&track).filter(|_| events.is_empty()) {
                Some(version) => {
                    let before = tracks.into_items().chain([Item::Track(track)]).map(Ok);
                    tunix::convert(
                        version,
                        before.chain(reader.by_ref()),
                        file_name,
                        options,
                        &mut conversion,
                    );
                    return conversion.counting(&reader);
                }
                None => tracks.insert(track),
            },
            Ok(Item::Event(event)) => events.push(event),
            Ok(Item::Log(log)) => logs.push(log),
            Ok(_) => {}
            Err(error) => conversion.fail(&error),
        }
    }
    let epoch = epoch(&events, file_name, options.start_unix_nanos);
    conversion.take(&tracks, events, &logs, file_name, epoch);
    conversion.counting(&reader)
}

impl PerfettoConversion {
    fn fail(&mut self, error: &ReadError) {
        if self.errors.len() < ERRORS {
            self.errors.push(error.to_string());
        }
    }

    fn counting<R: Read>(mut self, reader: &TraceReader<R>) -> Self {
        let counts = reader.counts();
        self.unknown_packets = counts.unknown;
        self.packets_without_state = counts.without_state;
        self
    }

    fn take(
        &mut self,
        tracks: &Tracks,
        events: Vec<TraceEvent>,
        logs: &[LogItem],
        file_name: &str,
        epoch: Epoch,
    ) {
        let (counters, events): (Vec<_>, Vec<_>) = events
            .into_iter()
            .partition(|event| event.kind == EventKind::Counter);
        let slices = Slices::pair(events, epoch);
        self.stray_ends = slices.stray_ends;
        self.unfinished = slices.unfinished;
        let written = Written::of(&slices);
        let spans = spans::encode(&slices, tracks, &written, file_name);
        self.spans = spans.values().map(|spans| spans.len() as u64).sum();
        envelope::traces(spans, &written, tracks, &mut self.messages);
        self.points = written.metrics(&slices, &counters, tracks, epoch, &mut self.messages);
        self.logs = written.logs(&slices, tracks, &mut self.messages);
        self.take_drawn(&counters, logs, &written, tracks, epoch);
    }

    /// Takes what processes show that do not say what they were made of.
    fn take_drawn(
        &mut self,
        counters: &[TraceEvent],
        logs: &[LogItem],
        written: &Written<'_>,
        tracks: &Tracks,
        epoch: Epoch,
    ) {
        let shown = |event: &&TraceEvent| !written.has(tracks.process(event.track_uuid));
        let counters: Vec<&TraceEvent> = counters.iter().filter(shown).collect();
        self.points += counters.len() as u64;
        envelope::metrics(&counters, tracks, epoch, &mut self.messages);
        let pids = written.pids(tracks);
        let logs: Vec<&LogItem> = logs.iter().filter(|line| !pids.contains(&line.pid)).collect();
        self.logs += logs.len() as u64;
        envelope::logs(&logs, &mut self.messages);
    }
}

/// Where clocks begin that nothing ties to the wall clock: at the time that the user says, else at the seconds that the
/// file's name ends with. They count from a start of their own, which their first event is.
fn epoch(events: &[TraceEvent], file_name: &str, start_unix_nanos: Option<u64>) -> Epoch {
    let start = start_unix_nanos.or_else(|| crate::run::start_in_name(file_name));
    let Some(nanos) = start else {
        return Epoch { offset_nanos: 0 };
    };
    let clock = |event: &TraceEvent| match event.time {
        Time::Clock { nanos, .. } => Some(nanos),
        Time::Unix(_) => None,
    };
    let first = events.iter().filter_map(clock).min().unwrap_or_default();
    Epoch {
        offset_nanos: nanos.wrapping_sub(first),
    }
}
