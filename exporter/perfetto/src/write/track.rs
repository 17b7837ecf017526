//! Tracks: the handles of tracks and the properties of tracks.
//!
//! A handle belongs to the writer that returned it. It is an index and can be copied.

/// A process, the parent of all other tracks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ProcessTrack(pub(super) u32);

/// A thread of a process: nested slices, in the section where viewers show threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ThreadTrack(pub(super) u32);

/// A heading for lanes, counters and other groups. It accepts instants and nested slices.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct GroupTrack(pub(super) u32);

/// A row of slices that nest: of two that overlap in time, one contains the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct LaneTrack(pub(super) u32);

/// A number over time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct CounterTrack(pub(super) u32);

/// A state over time, one of several.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct StateTrack(pub(super) u32);

/// A track for slices and instants.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct EventTrack(pub(super) u32);

/// A track that can be a parent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ParentTrack(pub(super) u32);

macro_rules! into {
    ($($source:ident => $target:ident),* $(,)?) => {$(
        impl From<$source> for $target {
            fn from(track: $source) -> Self {
                Self(track.0)
            }
        }
    )*};
}

into!(
    ProcessTrack => EventTrack, ThreadTrack => EventTrack, GroupTrack => EventTrack, LaneTrack => EventTrack,
    ProcessTrack => ParentTrack, ThreadTrack => ParentTrack, GroupTrack => ParentTrack,
);

/// The properties of a process.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Process<'a> {
    /// Its pid, which must be unique in the trace.
    pub pid: i32,
    /// Its name.
    pub name: &'a str,
    /// Short texts that viewers show after the name.
    pub labels: &'a [&'a str],
    /// Its sort rank among the processes, lowest first; viewers before v57 ignore it.
    pub rank: i32,
}

/// The properties of a counter.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counter<'a> {
    /// Its name.
    pub name: &'a str,
    /// Its unit.
    pub unit: CounterUnit<'a>,
    /// A description, which viewers show if they have room.
    pub description: &'a str,
    /// A key: counters of one parent with the same key share one scale.
    pub scale: Option<&'a str>,
}

/// The unit of a counter.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CounterUnit<'a> {
    /// No unit.
    #[default]
    Unspecified,
    /// Nanoseconds.
    TimeNanos,
    /// A count.
    Count,
    /// Bytes.
    SizeBytes,
    /// Another unit, by its name.
    Named(&'a str),
}

/// The encoding of a state track.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum StateStyle {
    /// Slices, one for each state, which every viewer shows.
    #[default]
    Slices,
    /// Native states, which viewers before v57 ignore.
    Native,
}

/// A value of a counter.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum CounterValue {
    /// An integer.
    Int(i64),
    /// A floating point number. trace_processor has no row for NaN.
    Double(f64),
}

macro_rules! value {
    ($($source:ty => $variant:ident),* $(,)?) => {$(
        impl From<$source> for CounterValue {
            fn from(value: $source) -> Self {
                Self::$variant(value.into())
            }
        }
    )*};
}

value!(i32 => Int, u32 => Int, i64 => Int, f32 => Double, f64 => Double);
