//! A line of a log, and its times.

use pulsetrain_mapping::RecordMeta;
use pulsetrain_otlp::{UnixNanos, write::Severity};
use pulsetrain_record::{LoggedTime, SourcePosition};

use crate::logs::{ReadTime, leading_time::leading_time, line_clock::LineClock, speakers::Voice};

/// The times of a line that is not a record.
#[derive(Clone, Copy, Debug)]
pub(in crate::logs) struct LineTimes {
    /// The time before its message, or unknown.
    pub(in crate::logs) own: UnixNanos,
    /// An approximate time.
    pub(in crate::logs) observed: UnixNanos,
}

/// A line of a log.
#[derive(Clone, Copy)]
pub(in crate::logs) struct Line<'a> {
    /// The text, without line end and control sequences.
    pub(in crate::logs) text: &'a str,
    position: SourcePosition,
    time: ReadTime,
    clock: &'a LineClock,
    /// The time in the removed prefix.
    removed_time: Option<LoggedTime>,
    /// The level in the removed prefix.
    pub(in crate::logs) level: Option<Severity>,
}

impl<'a> Line<'a> {
    /// Creates a line from its text and the properties of its removed prefix.
    pub(super) fn new(
        text: &'a str,
        (position, time): (SourcePosition, ReadTime),
        voice: &Voice,
        clock: &'a LineClock,
    ) -> Self {
        Self {
            text,
            position,
            time,
            clock,
            removed_time: voice.time,
            level: voice.level,
        }
    }

    /// Returns the time of a record without its own: the time at the beginning of the line, or one from the log's clock. Call
    /// it once a record.
    pub(in crate::logs) fn read_time(&self) -> UnixNanos {
        self.clock.time(self.leading_time(), self.time)
    }

    /// Returns the time before the message.
    pub(super) fn leading_time(&self) -> Option<LoggedTime> {
        leading_time(self.text, self.time.unix_nanos, self.clock.date_order()).or(self.removed_time)
    }

    /// Returns the times of a line that is not a record.
    pub(in crate::logs) fn times(&self) -> LineTimes {
        LineTimes {
            own: self
                .leading_time()
                .map_or(UnixNanos::UNKNOWN, |time| self.clock.instant(time)),
            observed: self.clock.observed(self.time),
        }
    }

    /// Returns an approximate time of the line, for dates without a year.
    pub(in crate::logs) fn near_unix_nanos(&self) -> UnixNanos {
        self.time.unix_nanos
    }

    /// Returns whether [`Self::read_time`] is the time at which the line was written, so that a span can end there.
    pub(in crate::logs) fn is_live(&self) -> bool {
        self.time.is_live || self.leading_time().is_some()
    }

    /// Returns the position of the line.
    pub(in crate::logs) fn position(&self) -> SourcePosition {
        self.position
    }

    /// Returns the meta data of a record without a time of its own. Call it once a record.
    pub(in crate::logs) fn meta(&self, step: Option<i64>) -> RecordMeta {
        self.meta_at(self.read_time(), step)
    }

    /// Returns the meta data of a record with this time.
    pub(in crate::logs) fn meta_at(&self, time_unix_nanos: UnixNanos, step: Option<i64>) -> RecordMeta {
        RecordMeta {
            time_unix_nanos,
            step,
            position: self.position,
        }
    }
}
