//! The trait of log parsers: a parser gets one input in windows of bytes and records its values.
//!
//! Most parsers implement only [`LogParser::parse`] and [`LogParser::resync`]. A restarted follower continues at the end of the
//! last parsed record. The other methods serve files that are not append-only.

use serde_json::Value as Json;

use super::{KeyUse, LeftLineReaders, Pace};
use pulsetrain_otlp::UnixNanos;
use pulsetrain_record::{Recorder, SourcePosition};

/// A window of unparsed bytes and its position in the input.
#[derive(Clone, Copy, Debug)]
pub struct Window<'a> {
    /// The bytes.
    pub bytes: &'a [u8],
    /// The position of the first byte.
    pub start: SourcePosition,
    /// Whether the input ends after the window.
    pub is_last: bool,
    /// The time of records without one.
    pub time: ReadTime,
}

/// The time at which bytes were read, for records without a time and for dates without a year.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReadTime {
    /// Nanoseconds since 1970: the time of reading. For a finished file, `--start-time` or its modification time.
    pub unix_nanos: UnixNanos,
    /// Whether the bytes were read as they were written, so that the time of reading is that of the line.
    pub is_live: bool,
}

impl Window<'_> {
    /// Returns the position of the byte at `offset` of the window.
    pub fn position(&self, offset: usize) -> SourcePosition {
        self.start.advanced_by(&self.bytes[..offset])
    }

    /// Returns the position of the byte at `offset` of the window of a binary file, which has no lines.
    pub(crate) fn at(&self, offset: usize) -> SourcePosition {
        SourcePosition {
            offset: self.start.offset + offset as u64,
            line: 1,
        }
    }
}

/// Returns the positions of ascending offsets of a window. Each line is counted once: [`Window::position`] counts from the start
/// of the window, which is quadratic if it is called for each record.
pub(super) struct Positions<'w> {
    bytes: &'w [u8],
    offset: usize,
    position: SourcePosition,
}

impl<'w> Positions<'w> {
    pub(super) fn new(window: Window<'w>) -> Self {
        Self {
            bytes: window.bytes,
            offset: 0,
            position: window.start,
        }
    }

    /// Returns the position of an offset that is not before the last one.
    pub(super) fn at(&mut self, offset: usize) -> SourcePosition {
        self.position = self.position.advanced_by(&self.bytes[self.offset..offset]);
        self.offset = offset;
        self.position
    }
}

/// Parses the bytes of one input, in windows.
pub trait LogParser: Send {
    /// Records the complete records of the window and returns the number of bytes consumed. The next window begins there.
    fn parse(&mut self, window: Window<'_>, recorder: &mut Recorder<'_>) -> usize;

    /// Returns the number of records whose time was invented, because the finished input has none.
    fn invented_times(&self) -> u64 {
        0
    }

    /// Sets the times of records without one. Called before the first window.
    fn set_pace(&mut self, _pace: Pace) {}

    /// Sets the number of envelopes around each line, and returns whether the parser can remove them. Called before the first
    /// window.
    fn set_layers(&mut self, _layers: usize) -> bool {
        false
    }

    /// Stops recording lines that are no measurements as `run.message`. Called before the first window.
    fn turn_off_messages(&mut self) {}

    /// Sets the readers of the lines that the format leaves, and returns whether the input has such lines. Called before the first
    /// window.
    fn set_left_line_readers(&mut self, _readers: LeftLineReaders) -> bool {
        false
    }

    /// Returns the use of each key so far, for formats that read unknown logs.
    fn key_uses(&mut self) -> Vec<KeyUse> {
        Vec::new()
    }

    /// Notifies the parser that bytes before the next window were dropped and reported. The window may begin inside a record.
    fn resync(&mut self);

    /// Returns whether the input is text in lines. Lines of a binary input are not counted, because that costs a part of the
    /// reading time.
    fn has_lines(&self) -> bool {
        true
    }

    /// Returns the position of the oldest parsed record that is buffered and not yet recorded. Reading resumes there after a
    /// restart.
    fn earliest_buffered(&self) -> Option<SourcePosition> {
        None
    }

    /// Records the buffered records: the input was silent for long, or the bytes were recorded before a restart.
    fn flush_buffered(&mut self, _recorder: &mut Recorder<'_>) {}

    /// Returns whether each new record overwrites the end of the file, after the last record.
    fn rewrites_end(&self) -> bool {
        false
    }

    /// Returns whether the writer replaces the file, with all older records in it. After each change the file is read from its
    /// beginning, and the parser records only new items.
    fn is_rewritten(&self) -> bool {
        false
    }

    /// Returns whether a file with this head continues the run that was read. `None` if the head is too short. Called only for
    /// rewritten files.
    fn is_of_run(&self, _head: &[u8]) -> Option<bool> {
        Some(true)
    }

    /// Returns the state of a parser of rewritten files: the items recorded so far. [`Self::restore`] takes it after a restart.
    fn snapshot(&self) -> Option<Json> {
        None
    }

    /// Returns whether several files of a run hold the same items, as checkpoints do, so that their parsers share one state.
    fn shares_state(&self) -> bool {
        false
    }

    /// Restores the state of before a restart, or of another file of the run. Returns whether the state is valid. Called before
    /// the first window.
    fn restore(&mut self, _state: &Json) -> bool {
        false
    }
}
