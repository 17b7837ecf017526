//! The items that the reader returns.

/// One item of a trace.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Item {
    /// A track descriptor; a track may be described more than once.
    Track(Track),
    /// An event on a track.
    Event(TraceEvent),
    /// A log line.
    Log(LogItem),
    /// An attribute of the trace: its key and its value.
    Attribute(String, String),
}

/// A track.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Track {
    /// Its uuid.
    pub uuid: u64,
    /// The uuid of the parent track.
    pub parent: Option<u64>,
    /// Its name.
    pub name: String,
    /// Its description.
    pub description: String,
    /// Its kind.
    pub kind: TrackKind,
    /// Its sort rank among its siblings.
    pub rank: i32,
}

/// The kind of a track.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum TrackKind {
    /// A row of slices, or a heading.
    #[default]
    Slices,
    /// A process.
    Process {
        /// Its pid.
        pid: i32,
        /// Its name.
        name: String,
        /// Labels.
        labels: Vec<String>,
    },
    /// A thread.
    Thread {
        /// The pid of its process.
        pid: i32,
        /// Its tid.
        tid: i64,
        /// Its name.
        name: String,
    },
    /// A number over time.
    Counter {
        /// The unit: `ns`, `By` or an empty text for the units that Perfetto defines, else the name of the unit.
        unit: String,
    },
    /// A state over time.
    State,
}

/// The time of an event or a log line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Time {
    /// Nanoseconds since 1970.
    Unix(u64),
    /// Nanoseconds of a clock that no snapshot relates to the wall clock.
    Clock {
        /// The id of the clock (`common/builtin_clock.proto`).
        id: u64,
        /// The reading of the clock.
        nanos: u64,
    },
}

/// An event on a track.
#[derive(Clone, Debug, PartialEq)]
pub struct TraceEvent {
    /// The uuid of the track.
    pub track_uuid: u64,
    /// The time.
    pub time: Time,
    /// The kind of event.
    pub kind: EventKind,
    /// The name; ends normally have no name.
    pub name: String,
    /// The categories.
    pub categories: Vec<String>,
    /// The annotations of the event.
    pub annotations: Vec<(String, AnnotationData)>,
    /// The ids of the flows through this event, those that end here included.
    pub flows: Vec<u64>,
    /// The ids of the flows that end here; another flow may use the same id later.
    pub ended_flows: Vec<u64>,
    /// The correlation id.
    pub correlation: Option<u64>,
    /// The value of a counter.
    pub value: Option<CounterReading>,
}

/// The kind of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum EventKind {
    /// A slice begins.
    Begin,
    /// The innermost slice ends.
    End,
    /// An event with a time and no duration.
    Instant,
    /// A counter is set.
    Counter,
    /// A state is entered.
    State,
}

/// The value of a counter.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum CounterReading {
    /// An integer.
    Int(i64),
    /// A floating point number.
    Double(f64),
}

/// The value of an annotation.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub enum AnnotationData {
    /// No value; also an empty map or an empty list.
    #[default]
    Empty,
    /// True or false.
    Bool(bool),
    /// A signed integer.
    Int(i64),
    /// An unsigned integer, or an address.
    Uint(u64),
    /// A floating point number.
    Double(f64),
    /// Text.
    Text(String),
    /// A map, in its order.
    Map(Vec<(String, AnnotationData)>),
    /// A list.
    List(Vec<AnnotationData>),
}

/// A log line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogItem {
    /// The time.
    pub time: Time,
    /// The pid of the process.
    pub pid: i32,
    /// The priority, from 2 (verbose) to 7 (fatal).
    pub priority: u32,
    /// The tag, which names the writer of the line.
    pub tag: String,
    /// The message.
    pub message: String,
}
