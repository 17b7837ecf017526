//! Perfetto traces as OTLP: slices are spans, counters are gauges, log lines and instants in no slice are log records.
//!
//! A trace that the Perfetto sink wrote in full gives back the very spans, points and log records that it was made of
//! (`metric_metadata`), one of Tunix the spans of the registry, as an import of it does (`tunix`). Any other gives what a viewer
//! shows: nesting is parenthood, a process is a resource, a track is `thread.name`, annotations are attributes, flows are links.
//! Times of clocks that a trace does not tie to the wall clock count from the time that the user gives, else from the time
//! in the file's name, else from 1970.
//!
//! A trace may be larger than memory. It is read once into events that are sorted by track and time (`event_index`); each track
//! is then replayed (`track_replay`), which leaves parts of spans sorted by span (`span_assembly`), and points sorted by metric (`points`).
//! Both are assembled and leave as messages (`resource_batches`) while they are read.

mod event_index;
mod flows;
mod message;
mod metric_metadata;
mod names;
mod points;
mod records;
mod resource_batches;
mod span_assembly;
mod spans;
mod spill_codec;
mod track_replay;
mod tracks;
mod tunix;
mod values;

use std::io::Read;

use pulsetrain_otlp::Signal;
use pulsetrain_perfetto::{Item, TraceReader};
use pulsetrain_pipeline::spill::Room;

use self::{event_index::EventIndex, resource_batches::ResourceBatches, track_replay::TrackReplay};
use crate::{FormatError, logs::RunOptions, tunix_trace::Version};
use pulsetrain_record::Skipped;

/// What a trace came to.
#[derive(Debug, Default)]
pub struct PerfettoConversion {
    /// OTLP messages that were handed on.
    pub messages: u64,
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
    /// Flows at instants that are in no slice, left out: only spans have links.
    pub flows_without_span: u64,
    /// Whether times count from 1970, because neither the trace, its name nor the user gives its beginning.
    pub is_undated: bool,
    /// Whether the spans were drawn on the rows of their traces, so that their resources are not in the trace.
    pub is_by_trace: bool,
    /// What could not be read, with its place; the first few.
    pub errors: Vec<String>,
    /// What else was not taken over of a trace of Tunix.
    pub skipped: Skipped,
    /// The bytes that went through temporary files.
    pub spilled_bytes: u64,
}

/// The key of the attribute of a trace that `convert --by trace` wrote.
const BY_TRACE: &str = "pulsetrain.by";

/// The most errors that are listed.
const ERRORS: usize = 20;

/// Reads a trace whose file has this name and passes OTLP messages to `deliver`. `options` complete the resource. Events beyond
/// `room` go to temporary files. Descriptors of tracks, resources and metrics are held in memory too, and
/// one span with its events at a time.
///
/// # Errors
///
/// A temporary file that cannot be used, and errors of `deliver`. Problems of the trace are in the conversion.
pub fn convert_perfetto<E: From<FormatError>>(
    input: impl Read,
    file_name: &str,
    options: &RunOptions,
    room: &Room,
    deliver: &mut impl FnMut(Signal, Vec<u8>) -> Result<(), E>,
) -> Result<PerfettoConversion, E> {
    let mut conversion = PerfettoConversion::default();
    let mut deliver = |signal, bytes: Vec<u8>| deliver(signal, bytes);
    let mut gathered = EventIndex::new(room);
    let mut reader = TraceReader::new(input);
    while let Some(item) = reader.next() {
        match item {
            Ok(Item::Track(track)) => match Version::of(&track).filter(|_| gathered.has_no_events()) {
                Some(version) => {
                    let before = gathered.tracks.into_items().chain([Item::Track(track)]);
                    let items = before.map(Ok).chain(reader.by_ref());
                    tunix::convert(
                        version,
                        items,
                        (file_name, options),
                        &mut conversion,
                        &mut deliver,
                    )?;
                    return Ok(conversion.counting(&reader));
                }
                None => gathered.tracks.insert(track),
            },
            Ok(Item::Event(event)) => gathered.take(event).map_err(FormatError::Temporary)?,
            Ok(Item::Log(log)) => gathered.take_log(&log).map_err(FormatError::Temporary)?,
            Ok(Item::Attribute(key, _)) => conversion.is_by_trace |= key == BY_TRACE,
            Ok(_) => {}
            Err(error) => conversion.fail(&error),
        }
    }
    let mut batches = ResourceBatches::new(room, &mut deliver);
    let walked = TrackReplay::of(
        gathered,
        file_name,
        options.start_unix_nanos,
        &mut batches,
        &mut conversion,
    )?;
    walked.assemble(&mut batches, &mut conversion)?;
    conversion.messages = batches.messages();
    Ok(conversion.counting(&reader))
}

impl PerfettoConversion {
    fn fail(&mut self, error: &impl ToString) {
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
}
