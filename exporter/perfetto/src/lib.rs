//! Perfetto trace files, written and read.
//!
//! [Perfetto](https://perfetto.dev) is a viewer and a query engine for traces. Its native format is a list of protobuf packets
//! without header or footer: it can be streamed, appended to, concatenated and compressed. This crate writes it as events come
//! ([`TraceWriter`]) and reads it back ([`TraceReader`]), by hand and without generated code. It does not depend on the source
//! of the events.
//!
//! # Shapes
//!
//! A trace consists of *tracks*. A [`ProcessTrack`] is the parent of all others; a [`GroupTrack`] is a heading; a
//! [`LaneTrack`] or a [`ThreadTrack`] holds slices that nest; a [`CounterTrack`] is a number over time, a [`StateTrack`] a
//! state. Handles are small and `Copy`.
//!
//! Viewers sort the tracks directly under a process by name. The writer therefore puts one heading ([`HEADING`]) under a process and
//! the groups, lanes, counters and states of the process under that, in the order of their ranks.
//!
//! Times are nanoseconds since 1970 and stay exact: a slice's `ts` in trace_processor is the number that was written.
//!
//! # One rule
//!
//! An end closes the innermost open slice of its track. Of two slices on one track that overlap, one must contain the other,
//! and where times are equal, order counts: write each lane depth first, parents before children, and different lanes in any
//! order. Slices that cross belong on two lanes. trace_processor does not complain about a crossing; it draws wrong durations.
//!
//! # Size
//!
//! A slice with five annotations costs some 70 bytes: it is in a packet sequence whose clock is incremental, whose track is a
//! default and whose strings are interned. The first 1,024 tracks have a sequence each. All later tracks share one, since a
//! viewer keeps some 18 KB a sequence; there an event also names its track, in 11 bytes.
//!
//! ```
//! use pulsetrain_perfetto::{Counter, CounterUnit, Item, Process, TraceReader, TraceWriter};
//!
//! let mut trace = TraceWriter::new(Vec::new());
//! let process = trace.process(&Process { pid: 1, name: "rank 0", ..Process::default() })?;
//! let steps = trace.lane(process, "steps", 0)?;
//! trace.begin(steps, 1_000, "train.step", |event| {
//!     event.annotate("train.step", 1_i64).annotate("train.loss", 2.31);
//! })?;
//! trace.begin(steps, 1_000, "perf.forward", |_| {})?;
//! trace.end(steps, 1_400)?;
//! trace.end(steps, 2_000)?;
//! let power = Counter { name: "gpu.power", unit: CounterUnit::Named("W"), ..Counter::default() };
//! let power = trace.counter(process, &power)?;
//! trace.count(power, 1_500, 251.5)?;
//! let bytes = trace.finish()?;
//!
//! let items: Result<Vec<Item>, _> = TraceReader::new(bytes.as_slice()).collect();
//! let items = items?;
//! let events = items.iter().filter(|item| matches!(item, Item::Event(_)));
//! assert_eq!((items.len(), events.count()), (10, 5));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Sources
//!
//! Field numbers are those of `protos/perfetto/trace/` at v58.2. Tests check the output with trace_processor v55.3, which ignores
//! native states ([`StateStyle::Native`]) and the order of processes ([`Process::rank`]): both need v57.

mod field;
mod read;
mod wire;
mod write;

pub use read::{
    AnnotationData, CounterReading, EventKind, Item, LogItem, ReadCounts, ReadError, ReadErrorKind, Time,
    TraceDecoder, TraceEvent, TraceReader, Track, TrackKind,
};
pub use wire::{WireError, WireErrorKind};
pub use write::{
    AnnotationList, AnnotationValue, Annotations, Counter, CounterTrack, CounterUnit, CounterValue, Event,
    EventTrack, GroupTrack, HEADING, LaneTrack, LogLine, LogPriority, ParentTrack, Process, ProcessTrack,
    StackFrame, StateStyle, StateTrack, ThreadTrack, TraceWriter, WriterConfig,
};

/// The examples of the README, compiled and run as doctests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct ReadmeExamples;
