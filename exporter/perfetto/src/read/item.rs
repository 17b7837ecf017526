//! What a trace holds, as it comes out of the reader.

/// One thing that a trace holds.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Item {
    /// A track is described; it may be described again.
    Track(Track),
    /// Something happened on a track.
    Event(TraceEvent),
    /// A log line.
    Log(LogItem),
    /// An attribute of the trace: its key and its value.
    Attribute(String, String),
}

/// A track.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Track {
    /// Its number.
    pub uuid: u64,
    /// The number of the parent track.
    pub parent: Option<u64>,
    /// Its name.
    pub name: String,
    /// Its description.
    pub description: String,
    /// What it is.
    pub kind: TrackKind,
    /// Its place among its siblings.
    pub rank: i32,
}

/// What a track is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum TrackKind {
    /// A row of slices, or a heading.
    #[default]
    Slices,
    /// A process.
    Process {
        /// Its number.
        pid: i32,
        /// Its name.
        name: String,
        /// Labels.
        labels: Vec<String>,
    },
    /// A thread.
    Thread {
        /// The number of its process.
        pid: i32,
        /// Its own number.
        tid: i64,
        /// Its name.
        name: String,
    },
    /// A number over time.
    Counter {
        /// The unit: `ns`, `By` and the empty text for Perfetto's own three, else its name.
        unit: String,
    },
    /// A state over time.
    State,
}

/// When something happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Time {
    /// Nanoseconds since 1970.
    Unix(u64),
    /// Nanoseconds of a clock that nothing in the trace ties to the wall clock.
    Clock {
        /// Its number (`common/builtin_clock.proto`).
        id: u64,
        /// What it showed.
        nanos: u64,
    },
}

/// Something that happened on a track.
#[derive(Clone, Debug, PartialEq)]
pub struct TraceEvent {
    /// The number of the track.
    pub track_uuid: u64,
    /// When.
    pub time: Time,
    /// What.
    pub kind: EventKind,
    /// The name; of ends there is normally none.
    pub name: String,
    /// The categories.
    pub categories: Vec<String>,
    /// The annotations of the event.
    pub annotations: Vec<(String, AnnotationData)>,
    /// The flows that the event is a station of, the last included.
    pub flows: Vec<u64>,
    /// Those of the flows that end here; the same number may begin another flow later.
    pub ended_flows: Vec<u64>,
    /// What the event belongs to.
    pub correlation: Option<u64>,
    /// The value of a counter.
    pub value: Option<CounterReading>,
}

/// What kind of event it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum EventKind {
    /// A slice begins.
    Begin,
    /// The innermost slice ends.
    End,
    /// Something has a time and no duration.
    Instant,
    /// A counter is set.
    Counter,
    /// A state is entered.
    State,
}

/// What a counter shows.
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
    /// Nothing: also what an empty map and an empty list are.
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
    /// When.
    pub time: Time,
    /// The number of the process.
    pub pid: i32,
    /// How much it matters, 2 (verbose) to 7 (fatal).
    pub priority: u32,
    /// What wrote it.
    pub tag: String,
    /// The message.
    pub message: String,
}
