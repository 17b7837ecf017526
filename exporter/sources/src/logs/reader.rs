//! Drives a parser over an input: windows of bounded size, and what cannot be parsed within them is skipped and said.

mod live;

use std::sync::Arc;

use super::{Begin, LogFormat, LogParser, Mapping, ReadTime, Window, encoding};
use crate::{Place, Recorder, SkipReason};

/// How much of an input is held at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadLimits {
    /// The longest record in bytes; a longer one is skipped.
    pub record_bytes: usize,
}

impl Default for ReadLimits {
    /// 16 MiB: a thousand times the longest record that was ever seen.
    fn default() -> Self {
        Self {
            record_bytes: 16 << 20,
        }
    }
}

/// Gives the bytes of one input to its parser as they come.
pub struct LogReader {
    parser: Box<dyn LogParser>,
    unread: Vec<u8>,
    start: Place,
    time: ReadTime,
    limits: ReadLimits,
}

impl LogReader {
    /// Begins to read an input of a format; one that takes a mapping has the default one.
    pub fn new(format: &LogFormat, limits: ReadLimits) -> Self {
        Self::mapped(format, &Arc::default(), limits)
    }

    /// Begins to read an input of a format; `mapping` says what keys mean where the format does not.
    pub fn mapped(format: &LogFormat, mapping: &Arc<Mapping>, limits: ReadLimits) -> Self {
        let start = Place { offset: 0, line: 1 };
        Self {
            parser: match format.parser {
                Begin::Known(parser) => parser(),
                Begin::Mapped(parser) => parser(mapping),
            },
            unread: Vec::new(),
            start,
            time: ReadTime::default(),
            limits,
        }
    }

    /// Where the first byte that is not done with stands.
    pub fn position(&self) -> Place {
        self.start
    }

    /// Says when the bytes that follow are read.
    pub fn set_time(&mut self, time: ReadTime) {
        self.time = time;
    }

    /// Takes the next bytes of the input and records what they complete.
    pub fn push(&mut self, bytes: &[u8], recorder: &mut Recorder<'_>) {
        self.unread.extend_from_slice(bytes);
        self.pass_mark();
        self.parse(false, recorder);
        if self.unread.len() > self.limits.record_bytes {
            self.skip_record(recorder);
        }
    }

    /// Records what is left when the input has ended.
    pub fn finish(mut self, recorder: &mut Recorder<'_>) -> Place {
        self.parse(true, recorder);
        self.start
    }

    /// Passes over the mark of an editor at the very beginning, which belongs to no record.
    fn pass_mark(&mut self) {
        if self.start.offset == 0 && self.unread.starts_with(encoding::UTF_8) {
            self.unread.drain(..encoding::UTF_8.len());
            self.start.offset = encoding::UTF_8.len() as u64;
        }
    }

    fn parse(&mut self, is_last: bool, recorder: &mut Recorder<'_>) {
        let window = Window {
            bytes: &self.unread,
            start: self.start,
            is_last,
            time: self.time,
        };
        let done = self.parser.parse(window, recorder);
        self.start = window.place(done);
        self.unread.drain(..done);
    }

    /// Drops a record that is too long, but for its last bytes: they may hold the beginning of the next one.
    fn skip_record(&mut self, recorder: &mut Recorder<'_>) {
        let limit = self.limits.record_bytes;
        let message = || format!("a record of more than {limit} bytes is skipped");
        recorder.skip(SkipReason::RecordTooLong, self.start, message);
        let window = Window {
            bytes: &self.unread,
            start: self.start,
            is_last: false,
            time: self.time,
        };
        let dropped = self.unread.len().saturating_sub(KEPT);
        self.start = window.place(dropped);
        self.unread.drain(..dropped);
        self.parser.lose_sync();
    }
}

/// The bytes that are kept of a record that is too long: more than any format's sign of a record's beginning.
const KEPT: usize = 256;
