//! Tracks: the handles that events are written to, and the properties of tracks.
//!
//! A handle belongs to the writer that gave it. It is an index, so it can be copied and kept at will.

/// A process, the parent of all other tracks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ProcessTrack(pub(super) u32);

/// A thread of a process: slices that nest, in the place where viewers show threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ThreadTrack(pub(super) u32);

/// A heading for lanes, counters and other groups. It takes instants, and slices that nest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct GroupTrack(pub(super) u32);

/// A row of slices that nest: of two that overlap in time, one contains the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct LaneTrack(pub(super) u32);

/// A number over time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct CounterTrack(pub(super) u32);

/// Which of several states something is in, over time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct StateTrack(pub(super) u32);

/// Any track that slices and instants can be written to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct EventTrack(pub(super) u32);

/// Any track that can be a parent.
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
    /// Its number, which must be the only one of its kind in the trace.
    pub pid: i32,
    /// Its name.
    pub name: &'a str,
    /// Short texts that viewers show after the name.
    pub labels: &'a [&'a str],
    /// Its place among the processes, lowest first; viewers before v57 ignore it.
    pub rank: i32,
}

/// The properties of a counter.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counter<'a> {
    /// Its name.
    pub name: &'a str,
    /// What it counts.
    pub unit: CounterUnit<'a>,
    /// What it means, shown where viewers have room.
    pub description: &'a str,
    /// Counters of one parent with the same key are drawn to one scale.
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
    /// A number of things.
    Count,
    /// Bytes.
    SizeBytes,
    /// Any other, by its name.
    Named(&'a str),
}

/// How a state track is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum StateStyle {
    /// As slices, one a state: every viewer shows them.
    #[default]
    Slices,
    /// As states, which viewers before v57 leave out.
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
