//! The writer: writes tracks and events into any `Write` as they arrive.
//!
//! `track` holds the handles, `descriptor` encodes tracks, `event` and `annotation` encode the content of events, `sequence`
//! keeps the state that makes events small, and `intern` the interned strings.

mod annotation;
mod descriptor;
mod event;
mod intern;
mod log;
mod memo;
mod sequence;
mod track;

use std::io::{self, Write};

use self::{
    annotation::Encoder,
    descriptor::TrackPlacement,
    sequence::{Head, Sequence},
};
pub use self::{
    annotation::{AnnotationList, AnnotationValue, Annotations},
    event::{Event, StackFrame},
    log::{LogLine, LogPriority},
    track::{
        Counter, CounterTrack, CounterUnit, CounterValue, EventTrack, GroupTrack, LaneTrack, ParentTrack,
        Process, ProcessTrack, StateStyle, StateTrack, ThreadTrack,
    },
};
use crate::{
    field::{attributes, event as field, log as log_field, packet, trace, track as track_field},
    wire::Buffer,
};

/// The name of the track between a process and its groups, lanes, counters and states.
pub const HEADING: &str = "tracks";

/// The number of tracks that have a packet sequence of their own. Later tracks share one, since a viewer keeps some 18 KB a
/// sequence.
const OWN_SEQUENCES: usize = 1024;

/// The index of the sequence that later tracks share.
const SHARED: u32 = 0;

/// The number of bytes that are buffered before they are written to the output.
const CHUNK: usize = 256 << 10;

/// The configuration of a writer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WriterConfig {
    /// The seed of the uuids of tracks. Traces that are to be concatenated need different seeds.
    pub seed: u64,
    /// The number of bytes after which the state of a sequence is set up again, so that a truncated trace can be read from
    /// there on.
    pub clear_every_bytes: usize,
    /// The encoding of states.
    pub states: StateStyle,
}

impl Default for WriterConfig {
    fn default() -> Self {
        Self {
            seed: 0,
            clear_every_bytes: 64 << 20,
            states: StateStyle::Slices,
        }
    }
}

/// Writes a trace.
///
/// Events of different tracks may come in any order. Events on one track that have the same time must come in the order of
/// their nesting: readers close the innermost open slice and do not report errors. Slices that are written depth first are
/// always correct.
///
/// # Errors
///
/// All errors come from the output. After an error the output may end inside a packet, and the next call writes the buffered
/// packets again: discard the writer. Buffered bytes are written by [`TraceWriter::flush`] or [`TraceWriter::finish`], and are
/// lost if neither is called.
///
/// # Panics
///
/// A track belongs to the writer that returned it. Another writer uses it as a different track, or panics if it has no such
/// track.
///
/// ```
/// # use pulsetrain_perfetto::{Process, TraceWriter};
/// let mut trace = TraceWriter::new(Vec::new());
/// let process = trace.process(&Process { pid: 7, name: "rank 0", ..Process::default() })?;
/// let lane = trace.lane(process, "steps", 0)?;
/// trace.begin(lane, 1_700_000_000_000_000_000, "train.step", |event| {
///     event.category("train").annotate("train.step", 400_i64);
/// })?;
/// trace.end(lane, 1_700_000_000_250_000_000)?;
/// assert_eq!(trace.finish()?.len(), 268);
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug)]
pub struct TraceWriter<W: Write> {
    out: W,
    buffer: Buffer,
    encoder: Encoder,
    config: WriterConfig,
    tracks: Vec<Track>,
    /// The shared sequence, and those of single tracks.
    sequences: Vec<Sequence>,
    /// The start of the incremental clocks of all sequences: the time of the first event.
    base_nanos: Option<u64>,
    written: u64,
}

#[derive(Debug)]
struct Track {
    uuid: u64,
    /// The pid of the track's process.
    pid: i32,
    /// The index of the track's sequence, which is assigned with the first event.
    sequence: Option<u32>,
    /// Whether a state's slice is open.
    open: bool,
    heading: Heading,
}

/// The heading that replaces a process as a parent, since viewers sort the tracks directly under a process by name.
#[derive(Clone, Copy, Debug)]
enum Heading {
    /// The track is not a process.
    None,
    /// No track is under the process yet; the first one creates the heading.
    Wanted,
    /// The index of the heading's track.
    Is(u32),
}

impl<W: Write> TraceWriter<W> {
    /// Creates a writer to `out`, which needs no buffer of its own.
    pub fn new(out: W) -> Self {
        Self::with_config(out, WriterConfig::default())
    }

    /// Creates a writer to `out` with a configuration.
    pub fn with_config(out: W, config: WriterConfig) -> Self {
        Self {
            out,
            buffer: Buffer::default(),
            encoder: Encoder::default(),
            config,
            tracks: Vec::new(),
            sequences: vec![Sequence::default()],
            base_nanos: None,
            written: 0,
        }
    }

    /// Adds a process.
    pub fn process(&mut self, about: &Process<'_>) -> io::Result<ProcessTrack> {
        if self.tracks.is_empty() {
            descriptor::process_order(&mut self.buffer);
        }
        let place = self.place(None, about.rank);
        descriptor::write(place, &mut self.buffer, |out| descriptor::process(about, out));
        let process = self.add(place, about.pid)?;
        let track = &mut self.tracks[process as usize];
        // The track of a process has only a few instants.
        (track.heading, track.sequence) = (Heading::Wanted, Some(SHARED));
        Ok(ProcessTrack(process))
    }

    /// Adds a thread of a process.
    pub fn thread(&mut self, process: ProcessTrack, tid: i64, name: &str) -> io::Result<ThreadTrack> {
        let place = self.place(Some(process.into()), 0);
        let pid = self.tracks[process.0 as usize].pid;
        descriptor::write(place, &mut self.buffer, |out| {
            descriptor::thread(pid, tid, name, out);
        });
        self.add(place, pid).map(ThreadTrack)
    }

    /// Adds a heading. Among the tracks of one parent, the lowest `rank` comes first.
    pub fn group(&mut self, parent: impl Into<ParentTrack>, name: &str, rank: i32) -> io::Result<GroupTrack> {
        let parent = self.heading(parent.into())?;
        self.named(parent, name, rank).map(GroupTrack)
    }

    /// Adds a row of slices. Viewers merge rows of one parent that have the same name into one track.
    pub fn lane(&mut self, parent: impl Into<ParentTrack>, name: &str, rank: i32) -> io::Result<LaneTrack> {
        let parent = self.heading(parent.into())?;
        self.named(parent, name, rank).map(LaneTrack)
    }

    /// Adds a counter track.
    pub fn counter(
        &mut self,
        parent: impl Into<ParentTrack>,
        about: &Counter<'_>,
    ) -> io::Result<CounterTrack> {
        let parent = self.heading(parent.into())?;
        let place = self.place(Some(parent), 0);
        descriptor::write(place, &mut self.buffer, |out| descriptor::counter(about, out));
        self.add(place, self.tracks[parent.0 as usize].pid)
            .map(CounterTrack)
    }

    /// Adds a state track.
    pub fn state(&mut self, parent: impl Into<ParentTrack>, name: &str, rank: i32) -> io::Result<StateTrack> {
        let parent = self.heading(parent.into())?;
        let place = self.place(Some(parent), rank);
        let native = self.config.states == StateStyle::Native;
        descriptor::write(place, &mut self.buffer, |out| {
            out.delimited(track_field::NAME, name.as_bytes());
            if native {
                out.delimited(track_field::STATE, &[]);
            }
        });
        self.add(place, self.tracks[parent.0 as usize].pid)
            .map(StateTrack)
    }

    /// Begins a slice; `describe` adds its category, flows and annotations.
    #[inline]
    pub fn begin(
        &mut self,
        track: impl Into<EventTrack>,
        unix_nanos: u64,
        name: impl AsRef<[u8]>,
        describe: impl FnOnce(&mut Event<'_>),
    ) -> io::Result<()> {
        let track = track.into().0;
        self.named_event(track, unix_nanos, field::SLICE_BEGIN, name.as_ref(), describe)
    }

    /// Ends the innermost slice that is open on the track.
    #[inline]
    pub fn end(&mut self, track: impl Into<EventTrack>, unix_nanos: u64) -> io::Result<()> {
        let track = track.into().0;
        let (head, sequence) = self.head(track, unix_nanos);
        self.sequences[sequence as usize].end(head, unix_nanos, &mut self.buffer);
        self.flush_buffer_if_full()
    }

    /// Writes an event with a time and no duration.
    pub fn instant(
        &mut self,
        track: impl Into<EventTrack>,
        unix_nanos: u64,
        name: impl AsRef<[u8]>,
        describe: impl FnOnce(&mut Event<'_>),
    ) -> io::Result<()> {
        let track = track.into().0;
        self.named_event(track, unix_nanos, field::INSTANT, name.as_ref(), describe)
    }

    /// Sets a counter.
    #[inline]
    pub fn count(
        &mut self,
        counter: CounterTrack,
        unix_nanos: u64,
        value: impl Into<CounterValue>,
    ) -> io::Result<()> {
        self.count_with(counter, unix_nanos, value, |_| {})
    }

    /// Sets a counter; `describe` adds annotations. trace_processor keeps only the value.
    #[inline]
    pub fn count_with(
        &mut self,
        counter: CounterTrack,
        unix_nanos: u64,
        value: impl Into<CounterValue>,
        describe: impl FnOnce(&mut Event<'_>),
    ) -> io::Result<()> {
        let value = value.into();
        self.event(counter.0, unix_nanos, |encoder| {
            encoder.body.uint(field::TYPE, field::COUNTER);
            match value {
                CounterValue::Int(value) => encoder.body.uint(field::COUNTER_VALUE, value as u64),
                CounterValue::Double(value) => {
                    encoder.body.fixed64(field::DOUBLE_COUNTER_VALUE, value.to_bits());
                }
            }
            describe(&mut Event::new(encoder));
        })
    }

    /// Sets a state; `None` ends the current state without a new one.
    pub fn set_state(&mut self, track: StateTrack, unix_nanos: u64, state: Option<&str>) -> io::Result<()> {
        if self.config.states == StateStyle::Native {
            let name = state.unwrap_or_default().as_bytes();
            return self.named_event(track.0, unix_nanos, field::STATE, name, |_| {});
        }
        let open = std::mem::replace(&mut self.tracks[track.0 as usize].open, state.is_some());
        if open {
            self.end(EventTrack(track.0), unix_nanos)?;
        }
        match state {
            Some(name) => self.begin(EventTrack(track.0), unix_nanos, name, |_| {}),
            None => Ok(()),
        }
    }

    /// Writes a log line of a process.
    pub fn log(&mut self, process: ProcessTrack, unix_nanos: u64, line: &LogLine<'_>) -> io::Result<()> {
        let pid = self.tracks[process.0 as usize].pid as u64;
        self.buffer.message(trace::PACKET, |out| {
            out.uint(packet::SEQUENCE_ID, u64::from(descriptor::SEQUENCE));
            out.message(packet::ANDROID_LOG, |out| {
                out.message(log_field::EVENTS, |out| {
                    out.uint(log_field::PID, pid);
                    out.uint(log_field::TID, pid);
                    out.uint(log_field::TIMESTAMP, unix_nanos);
                    out.delimited(log_field::TAG, line.tag);
                    out.uint(log_field::PRIORITY, line.priority as u64);
                    out.delimited(log_field::MESSAGE, line.message);
                });
            });
        });
        self.flush_buffer_if_full()
    }

    /// Adds an attribute of the trace.
    pub fn trace_attribute(&mut self, key: &str, value: &str) -> io::Result<()> {
        self.buffer.message(trace::PACKET, |out| {
            out.uint(packet::SEQUENCE_ID, u64::from(descriptor::SEQUENCE));
            out.message(packet::TRACE_ATTRIBUTES, |out| {
                out.message(attributes::ATTRIBUTE, |out| {
                    out.delimited(attributes::KEY, key.as_bytes());
                    out.delimited(attributes::STRING_VALUE, value.as_bytes());
                });
            });
        });
        self.flush_buffer_if_full()
    }

    /// Returns the size of the trace so far, in bytes.
    pub fn bytes(&self) -> u64 {
        self.written + self.buffer.len() as u64
    }

    /// Writes all buffered bytes to the output and flushes it.
    pub fn flush(&mut self) -> io::Result<()> {
        self.flush_buffer()?;
        self.out.flush()
    }

    /// Writes all buffered bytes and returns the output.
    pub fn finish(mut self) -> io::Result<W> {
        self.flush()?;
        Ok(self.out)
    }

    fn named_event(
        &mut self,
        track: u32,
        unix_nanos: u64,
        kind: u64,
        name: &[u8],
        describe: impl FnOnce(&mut Event<'_>),
    ) -> io::Result<()> {
        self.event(track, unix_nanos, |encoder| {
            encoder.body.uint(field::TYPE, kind);
            match encoder.strings.event_name(name, &mut encoder.news) {
                Some(number) => encoder.body.uint(field::NAME_IID, number),
                None => encoder.body.delimited(field::NAME, name),
            }
            describe(&mut Event::new(encoder));
        })
    }

    #[inline]
    fn event(&mut self, track: u32, unix_nanos: u64, fill: impl FnOnce(&mut Encoder)) -> io::Result<()> {
        let (head, sequence) = self.head(track, unix_nanos);
        let sequence = &mut self.sequences[sequence as usize];
        sequence.event(head, unix_nanos, &mut self.encoder, &mut self.buffer, fill);
        self.flush_buffer_if_full()
    }

    /// Returns the parameters of a track's packets, and the sequence of the track. The first event of the trace sets the start
    /// of the clocks.
    #[inline]
    fn head(&mut self, track: u32, unix_nanos: u64) -> (Head, u32) {
        let about = &mut self.tracks[track as usize];
        let sequences = &mut self.sequences;
        let sequence = *about.sequence.get_or_insert_with(|| new_sequence(sequences));
        let head = Head {
            id: descriptor::SEQUENCE + 1 + sequence,
            track_uuid: about.uuid,
            base_nanos: *self.base_nanos.get_or_insert(unix_nanos),
            clear_every: self.config.clear_every_bytes,
        };
        (head, sequence)
    }

    /// Returns the parent for new tracks: for a process its heading, which keeps their ranks.
    fn heading(&mut self, parent: ParentTrack) -> io::Result<ParentTrack> {
        let heading = match self.tracks[parent.0 as usize].heading {
            Heading::None => return Ok(parent),
            Heading::Is(heading) => heading,
            Heading::Wanted => {
                let heading = self.named(parent, HEADING, 0)?;
                self.tracks[parent.0 as usize].heading = Heading::Is(heading);
                heading
            }
        };
        Ok(ParentTrack(heading))
    }

    fn named(&mut self, parent: ParentTrack, name: &str, rank: i32) -> io::Result<u32> {
        let place = self.place(Some(parent), rank);
        descriptor::write(place, &mut self.buffer, |out| {
            out.delimited(track_field::NAME, name.as_bytes());
        });
        self.add(place, self.tracks[parent.0 as usize].pid)
    }

    fn place(&self, parent: Option<ParentTrack>, rank: i32) -> TrackPlacement {
        TrackPlacement {
            uuid: uuid(self.config.seed, self.tracks.len() as u64),
            parent: parent.map(|parent| self.tracks[parent.0 as usize].uuid),
            rank,
        }
    }

    fn add(&mut self, place: TrackPlacement, pid: i32) -> io::Result<u32> {
        let index = self.tracks.len() as u32;
        self.tracks.push(Track {
            uuid: place.uuid,
            pid,
            sequence: None,
            open: false,
            heading: Heading::None,
        });
        self.flush_buffer_if_full()?;
        Ok(index)
    }

    #[inline]
    fn flush_buffer_if_full(&mut self) -> io::Result<()> {
        if self.buffer.len() < CHUNK {
            return Ok(());
        }
        self.flush_buffer()
    }

    fn flush_buffer(&mut self) -> io::Result<()> {
        self.out.write_all(self.buffer.as_slice())?;
        self.written += self.buffer.len() as u64;
        self.buffer.clear();
        Ok(())
    }
}

/// Adds a sequence for one track, or returns the shared one if the limit is reached.
#[cold]
fn new_sequence(sequences: &mut Vec<Sequence>) -> u32 {
    if sequences.len() > OWN_SEQUENCES {
        return SHARED;
    }
    sequences.push(Sequence::default());
    sequences.len() as u32 - 1
}

/// Returns the uuid of a track: SplitMix64 (Steele, Lea, Flood 2014), which returns no number twice, over the seed and the
/// track's index.
fn uuid(seed: u64, index: u64) -> u64 {
    let mut mixed = seed.wrapping_add((index + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    // In Perfetto, 0 means no track.
    (mixed ^ mixed >> 31).max(1)
}

#[cfg(test)]
mod tests;
