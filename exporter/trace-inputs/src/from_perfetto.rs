//! Converts Perfetto traces to OTLP: slices to spans, counters to gauges, and log lines and instants outside slices to log
//! records.
//!
//! A trace with all fields (`metric_metadata`) is converted back to its original spans, points and log records. Any other
//! trace is converted from its viewer representation: nesting is parenthood, a process is a resource, a track is
//! `thread.name`, annotations are attributes, flows are links. A log record comes from its instant and its line
//! (`records`). Times of clocks without a relation to the wall clock count from the time that the caller sets, else from 1970.
//!
//! A trace may be larger than memory. It is read once into events that are sorted by track and time (`event_index`). Each
//! track is then replayed (`track_replay`), which produces pieces of spans sorted by span (`span_assembly`), and points sorted
//! by metric (`points`). Both are assembled and sent in batches (`resource_batches`) while they are read.

mod event_index;
mod flows;
mod message;
mod metric_metadata;
mod names;
mod points;
mod records;
pub(crate) mod resource_batches;
mod span_assembly;
mod spans;
pub(crate) mod spill_codec;
mod trace;
mod track_replay;
mod tracks;
pub(crate) mod values;

use std::io::Read;

use pulsetrain_otlp::{Signal, UnixNanos};
use pulsetrain_perfetto::{Item, ReadCounts};
use pulsetrain_pipeline::spill::MemoryBudget;
use pulsetrain_to_perfetto::vocabulary::{BY_TRACE, VERSION};

use self::{event_index::EventIndex, resource_batches::ResourceBatches, track_replay::TrackReplay};
use crate::ConvertError;

pub use self::trace::PerfettoTrace;

/// The counts of a conversion from Perfetto.
#[derive(Debug, Default)]
pub struct PerfettoConversion {
    /// OTLP messages that were delivered.
    pub messages: u64,
    /// Spans in them.
    pub spans: u64,
    /// Points in them.
    pub points: u64,
    /// Log records in them.
    pub logs: u64,
    /// The counts of packets that were read and skipped.
    pub packets: ReadCounts,
    /// Ends of slices that never began; they are dropped.
    pub stray_ends: u64,
    /// Slices that never end; they last until the end of the trace.
    pub unfinished: u64,
    /// Flows at instants outside slices, which are dropped: only spans have links.
    pub flows_without_span: u64,
    /// Whether times count from 1970, because neither the trace nor the caller sets the start.
    pub is_undated: bool,
    /// Whether the spans are on the rows of their traces, so that their resources are not in the trace.
    pub is_by_trace: bool,
    /// The first few read errors, with their offsets.
    pub errors: Vec<String>,
    /// The number of bytes that were written to temporary files.
    pub spilled_bytes: u64,
}

/// The limit for listed errors.
const ERRORS: usize = 20;

/// Reads a trace and passes OTLP messages to `deliver`. `start_unix_nanos` is the first time of clocks without a relation to
/// the wall clock. Ids of spans depend on `file_name`. Events beyond `room` are spilled to temporary files. Descriptors of
/// tracks, resources and metrics are always held in memory, and one span with its events at a time.
///
/// # Errors
///
/// A temporary file cannot be used, or `deliver` fails. Problems of the trace are listed in the conversion.
pub fn convert_perfetto<E: From<ConvertError>>(
    mut trace: PerfettoTrace<impl Read>,
    file_name: &str,
    start_unix_nanos: Option<UnixNanos>,
    room: &MemoryBudget,
    deliver: &mut impl FnMut(Signal, Vec<u8>) -> Result<(), E>,
) -> Result<PerfettoConversion, E> {
    let mut conversion = PerfettoConversion::default();
    let mut gathered = EventIndex::new(room);
    for item in trace.by_ref() {
        match item {
            Ok(Item::Track(track)) => gathered.tracks.insert(track),
            Ok(Item::Event(event)) => gathered.take(event).map_err(ConvertError::Temporary)?,
            Ok(Item::Log(log)) => gathered.take_log(log).map_err(ConvertError::Temporary)?,
            Ok(Item::Attribute(key, _)) => {
                gathered.metadata.is_own |= key == VERSION;
                conversion.is_by_trace |= key == BY_TRACE;
                gathered.metadata.is_by_trace = conversion.is_by_trace;
            }
            Ok(_) => {}
            Err(error) => conversion.fail(&error),
        }
    }
    let mut batches = ResourceBatches::new(room, deliver);
    let walked = TrackReplay::replay(
        gathered,
        file_name,
        start_unix_nanos,
        &mut batches,
        &mut conversion,
    )?;
    walked.assemble(&mut batches, &mut conversion)?;
    conversion.messages = batches.messages();
    conversion.packets = trace.counts();
    Ok(conversion)
}

impl PerfettoConversion {
    /// Adds the counts of the conversion of a further trace of the same file.
    pub(crate) fn add(&mut self, further: Self) {
        self.messages += further.messages;
        self.spans += further.spans;
        self.points += further.points;
        self.logs += further.logs;
        self.packets.packets += further.packets.packets;
        self.packets.unknown += further.packets.unknown;
        self.packets.without_state += further.packets.without_state;
        self.stray_ends += further.stray_ends;
        self.unfinished += further.unfinished;
        self.flows_without_span += further.flows_without_span;
        self.is_undated |= further.is_undated;
        self.is_by_trace |= further.is_by_trace;
        for error in further.errors {
            self.fail(&error);
        }
        self.spilled_bytes += further.spilled_bytes;
    }

    /// Adds an error, up to a limit.
    pub(crate) fn fail(&mut self, error: &impl ToString) {
        if self.errors.len() < ERRORS {
            self.errors.push(error.to_string());
        }
    }
}
