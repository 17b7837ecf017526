//! Feeds an input to its parser in windows of bounded size. Records that exceed the limit are skipped and reported.

mod live;

use pulsetrain_mapping::Mapping;
use std::sync::Arc;

use super::{
    Detect, KeyUse, LeftLineShapes, LogFormat, LogParser, Pace, ParserFactory, ReadTime, Window, encoding,
    generic, layers,
};
use pulsetrain_record::{Recorder, SkipReason, SourcePosition};

/// Limits of the memory for one input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadLimits {
    /// The maximum size of a record in bytes. A longer record is skipped.
    pub record_bytes: usize,
}

impl Default for ReadLimits {
    /// Returns 16 MiB, a thousand times the longest record in the corpus.
    fn default() -> Self {
        Self {
            record_bytes: 16 << 20,
        }
    }
}

/// Feeds the bytes of one input to its parser.
pub struct LogReader {
    parser: Box<dyn LogParser>,
    /// Finds the envelopes around the lines of a known format, until they are known.
    detect: Option<Detect>,
    unread: Vec<u8>,
    start: SourcePosition,
    time: ReadTime,
    limits: ReadLimits,
}

impl LogReader {
    /// Creates a reader of a format, with the default mapping if the format takes one.
    pub fn new(format: &LogFormat, limits: ReadLimits) -> Self {
        Self::mapped(format, &Arc::default(), limits)
    }

    /// Creates a reader of a format with the user's mapping, which is unused if the format takes none.
    pub fn mapped(format: &LogFormat, mapping: &Arc<Mapping>, limits: ReadLimits) -> Self {
        let start = SourcePosition { offset: 0, line: 1 };
        let is_extended = mapping.extended() == Some(format.name);
        let mut parser = match format.parser {
            ParserFactory::Fallback(_) | ParserFactory::Embedded { .. } if is_extended => {
                generic::extended_parser(format, mapping)
            }
            ParserFactory::Builtin(parser)
            | ParserFactory::Fallback(parser)
            | ParserFactory::Embedded { parser, .. } => parser(),
            ParserFactory::Mapped(parser) => parser(mapping),
        };
        let is_known = matches!(
            format.parser,
            ParserFactory::Builtin(_) | ParserFactory::Embedded { .. }
        );
        let can_be_wrapped = is_known && parser.set_layers(0);
        let left = mapping.own().filter(|own| is_extended && !own.lines().is_empty());
        left.into_iter().for_each(|own| {
            parser.set_left_line_readers(generic::pattern_lines(own));
        });
        Self {
            parser,
            detect: can_be_wrapped.then_some(format.detect),
            unread: Vec::new(),
            start,
            time: ReadTime::default(),
            limits,
        }
    }

    /// Returns the position of the first unconsumed byte.
    pub fn position(&self) -> SourcePosition {
        self.start
    }

    /// Sets the read time of the following bytes.
    pub fn set_time(&mut self, time: ReadTime) {
        self.time = time;
    }

    /// Sets the number of envelopes around each line, and returns whether the format can be in them.
    pub(super) fn set_layers(&mut self, layers: usize) -> bool {
        self.parser.set_layers(layers)
    }

    /// Counts the lines that no reader records. Called before the first bytes. Returns whether the input has such lines.
    pub fn count_left_lines(&mut self, mapping: &Arc<Mapping>, lines: &LeftLineShapes) -> bool {
        self.parser
            .set_left_line_readers(generic::counted_lines(mapping.own(), lines))
    }

    /// Returns the number of records with an invented time so far.
    pub fn invented_times(&self) -> u64 {
        self.parser.invented_times()
    }

    /// Sets the times of records without one.
    pub fn set_pace(&mut self, pace: Pace) {
        self.parser.set_pace(pace);
    }

    /// Stops recording lines that are no measurements as `run.message`. Call it before the first bytes.
    pub fn turn_off_messages(&mut self) {
        self.parser.turn_off_messages();
    }

    /// Returns the use of each key so far, for formats that read unknown logs.
    pub fn key_uses(&mut self) -> Vec<KeyUse> {
        self.parser.key_uses()
    }

    /// Appends the next bytes of the input and records the records that they complete.
    pub fn push(&mut self, bytes: &[u8], recorder: &mut Recorder<'_>) {
        let bytes = self.finish_split_record(bytes, recorder);
        if self.unread.is_empty() && self.start.offset > 0 && self.detect.is_none() {
            let done = self.parse_window(bytes, false, recorder);
            self.unread.extend_from_slice(&bytes[done..]);
        } else {
            self.unread.extend_from_slice(bytes);
            self.skip_byte_order_mark();
            self.parse(false, recorder);
        }
        if self.unread.len() > self.limits.record_bytes {
            self.skip_record(recorder);
        }
    }

    /// Completes the record that the last chunk split, and returns the remaining bytes. They are parsed in place, so most of an
    /// input is never copied.
    fn finish_split_record<'b>(&mut self, bytes: &'b [u8], recorder: &mut Recorder<'_>) -> &'b [u8] {
        if self.start.offset == 0
            || !(1..=SEAM_BYTES).contains(&self.unread.len())
            || bytes.len() <= SEAM_BYTES
        {
            return bytes;
        }
        let (seam, rest) = bytes.split_at(SEAM_BYTES);
        self.unread.extend_from_slice(seam);
        self.parse(false, recorder);
        match SEAM_BYTES.checked_sub(self.unread.len()) {
            // The parser consumed all buffered bytes, and this many of the new ones.
            Some(done) => {
                self.unread.clear();
                &bytes[done..]
            }
            None => rest,
        }
    }

    /// Records the rest of an input that has ended, and returns the position of its end.
    pub fn finish(&mut self, recorder: &mut Recorder<'_>) -> SourcePosition {
        self.parse(true, recorder);
        self.start
    }

    /// Skips a byte order mark, which belongs to no record.
    fn skip_byte_order_mark(&mut self) {
        if self.start.offset == 0 && self.unread.starts_with(encoding::UTF_8) {
            self.unread.drain(..encoding::UTF_8.len());
            self.start.offset = encoding::UTF_8.len() as u64;
        }
    }

    fn parse(&mut self, is_last: bool, recorder: &mut Recorder<'_>) {
        let mut unread = std::mem::take(&mut self.unread);
        let known = match self.find_layers(&unread, is_last) {
            true => unread.len(),
            false => layers::first_wrapped(complete_lines(&unread)),
        };
        let is_last = is_last && known == unread.len();
        let done = self.parse_window(&unread[..known], is_last, recorder);
        unread.drain(..done);
        self.unread = unread;
    }

    /// Returns whether the number of envelopes around the lines is known, or no more lines can be kept until it is. Later lines may
    /// still show it.
    fn find_layers(&mut self, unread: &[u8], is_last: bool) -> bool {
        let Some(detect) = self.detect else {
            return true;
        };
        let lines = if is_last { unread } else { complete_lines(unread) };
        let found = layers::layers(detect, lines);
        if let Some(layers) = found {
            self.set_layers(layers);
            self.detect = None;
        }
        found.is_some() || is_last || unread.len() >= layers::MAX_KEPT
    }

    /// Parses a window of bytes and returns the number of bytes consumed.
    fn parse_window(&mut self, bytes: &[u8], is_last: bool, recorder: &mut Recorder<'_>) -> usize {
        let window = Window {
            bytes,
            start: self.start,
            is_last,
            time: self.time,
        };
        let done = self.parser.parse(window, recorder);
        if self.parser.has_lines() {
            self.start = window.position(done);
        } else {
            self.start.offset += done as u64;
        }
        done
    }

    /// Drops a record that is too long, except its last bytes, which may hold the beginning of the next one.
    fn skip_record(&mut self, recorder: &mut Recorder<'_>) {
        let limit = self.limits.record_bytes;
        let message = || format!("a record is longer than {limit} bytes; it is skipped");
        recorder.report(SkipReason::RecordTooLong, self.start, message);
        let window = Window {
            bytes: &self.unread,
            start: self.start,
            is_last: false,
            time: self.time,
        };
        let dropped = self.unread.len().saturating_sub(KEPT_BYTES);
        self.start = window.position(dropped);
        self.unread.drain(..dropped);
        self.parser.resync();
    }
}

/// Returns the bytes up to the end of the last complete line.
fn complete_lines(bytes: &[u8]) -> &[u8] {
    let end = memchr::memrchr2(b'\n', b'\r', bytes).map_or(0, |at| at + 1);
    &bytes[..end]
}

/// The number of new bytes that are joined to a split record. Nearly every record ends within them.
const SEAM_BYTES: usize = 16 << 10;

/// The number of bytes kept of a record that is too long: more than the signature of a record's beginning.
const KEPT_BYTES: usize = 256;
