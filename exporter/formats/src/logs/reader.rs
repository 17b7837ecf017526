//! Drives a parser over an input: windows of bounded size, and what cannot be parsed within them is skipped and said.

mod live;

use pulsetrain_mapping::Mapping;
use std::sync::Arc;

use super::{Begin, KeyUse, LogFormat, LogParser, Pace, ReadTime, Window, encoding};
use pulsetrain_record::{Place, Recorder, SkipReason};

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
                Begin::Known(parser) | Begin::Fallback(parser) | Begin::Embedded { parser, .. } => parser(),
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

    /// How many records of a finished input have an invented time so far.
    pub fn invented_times(&self) -> u64 {
        self.parser.invented_times()
    }

    /// Gives the records without a time those of `pace`.
    pub fn set_pace(&mut self, pace: Pace) {
        self.parser.set_pace(pace);
    }

    /// Returns what became of the keys so far, for formats that read unknown logs.
    pub fn key_uses(&mut self) -> Vec<KeyUse> {
        self.parser.key_uses()
    }

    /// Takes the next bytes of the input and records what they complete.
    pub fn push(&mut self, bytes: &[u8], recorder: &mut Recorder<'_>) {
        let bytes = self.finish_cut_record(bytes, recorder);
        if self.unread.is_empty() && self.start.offset > 0 {
            let done = self.parse_window(bytes, false, recorder);
            self.unread.extend_from_slice(&bytes[done..]);
        } else {
            self.unread.extend_from_slice(bytes);
            self.pass_mark();
            self.parse(false, recorder);
        }
        if self.unread.len() > self.limits.record_bytes {
            self.skip_record(recorder);
        }
    }

    /// Gives the parser the record that the last bytes cut together with the first of these, and says which are left: the
    /// rest is then parsed where it stands, and most of an input is never copied.
    fn finish_cut_record<'b>(&mut self, bytes: &'b [u8], recorder: &mut Recorder<'_>) -> &'b [u8] {
        if self.start.offset == 0 || !(1..=SEAM).contains(&self.unread.len()) || bytes.len() <= SEAM {
            return bytes;
        }
        let (seam, rest) = bytes.split_at(SEAM);
        self.unread.extend_from_slice(seam);
        self.parse(false, recorder);
        match SEAM.checked_sub(self.unread.len()) {
            // The parser is done with all that was left, and with this much of the new bytes.
            Some(done) => {
                self.unread.clear();
                &bytes[done..]
            }
            None => rest,
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
        let mut unread = std::mem::take(&mut self.unread);
        let done = self.parse_window(&unread, is_last, recorder);
        unread.drain(..done);
        self.unread = unread;
    }

    /// Has the parser record what is complete in some bytes, and says how many of them it is done with.
    fn parse_window(&mut self, bytes: &[u8], is_last: bool, recorder: &mut Recorder<'_>) -> usize {
        let window = Window {
            bytes,
            start: self.start,
            is_last,
            time: self.time,
        };
        let done = self.parser.parse(window, recorder);
        if self.parser.has_lines() {
            self.start = window.place(done);
        } else {
            self.start.offset += done as u64;
        }
        done
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

/// So many bytes are joined to a record that was cut: nearly every record ends within them.
const SEAM: usize = 16 << 10;

/// The bytes that are kept of a record that is too long: more than any format's sign of a record's beginning.
const KEPT: usize = 256;
