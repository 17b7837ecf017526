//! Splits a log into lines of clean text.
//!
//! A line ends at a newline, a carriage return or both; progress bars write only carriage returns. Control sequences are
//! removed, invalid UTF-8 is replaced, and what containers, schedulers, launchers and loggers put around a line is removed
//! ([`Wrapping`]). A last line without an end may be incomplete: it is parsed only if its format can detect that it is complete.

mod left_lines;
mod line;
mod messages;
mod unread;
mod unwrapping;

pub use self::left_lines::LeftLineReaders;
pub(super) use self::{
    left_lines::LeftLines,
    line::{Line, LineTimes},
    messages::each_message,
};
use self::{
    left_lines::RankedLeftLines,
    unwrapping::{Unwrapper, Wrapping},
};

use std::collections::BTreeMap;

use super::{
    KeyUse, LogFormat, LogParser, Pace, ParserFactory, ReadTime, RunHeader, Window,
    clean::{CleanText, clean},
    diagnostics::Diagnostics,
    line_clock::LineClock,
    prefix::Prefix,
    rank_prefix::{LineNumbers, RankedLine, without_prefixes, without_repetitions},
    speakers::{Speakers, Voice},
    tag,
};
use pulsetrain_otlp::UnixNanos;
use pulsetrain_record::{Rank, Recorder, Run, SkipReason, SourcePosition};

/// A format whose records are lines.
pub(super) trait LineFormat: Send {
    /// Whether every record is a JSON object that ends its line.
    const IS_JSON: bool = false;

    /// Whether the lines are of no known logger, so that every usual prefix can be removed.
    const IS_UNKNOWN: bool = false;

    /// Whether lines without the time of a logger can be the private content of a record before them.
    const HAS_PRIVATE_LINES: bool = false;

    /// Returns whether a last line without an end is complete, as a dictionary with its closing bracket is.
    fn is_complete(text: &str) -> bool {
        Self::IS_JSON && text.ends_with('}')
    }

    /// Returns the signature of the format in a line, or `None`. Formats of unknown trainers have no signature.
    fn signature(_text: &str) -> Option<&'static str> {
        None
    }

    /// Returns whether a last line without an end is the beginning of a record.
    fn is_record_start(text: &str) -> bool {
        match Self::IS_JSON {
            true => text.starts_with('{'),
            false => Self::signature(text).is_some(),
        }
    }

    /// Returns the rank under the key that the mapping of the format names.
    fn rank(&mut self, _text: &str) -> Option<Rank> {
        None
    }

    /// Returns the use of each key so far, for formats that read unknown logs.
    fn key_uses(&mut self) -> Vec<KeyUse> {
        Vec::new()
    }

    /// Records the values of a line and returns whether it was a record.
    fn line(&mut self, line: &Line<'_>, recorder: &mut Recorder<'_>) -> bool;

    /// Reports the values of the newest line, which no reader records.
    fn report_left(&mut self, _line: &Line<'_>, _recorder: &mut Recorder<'_>) {}

    /// Returns whether the format has no use for the newest line, which was not a record.
    fn leaves_line(&self) -> bool {
        true
    }
}

/// Parses a log by its lines.
pub(super) struct LineParser<F> {
    format: F,
    /// The format's state of each rank, if the log has lines of several. The recorder limits the number of ranks.
    of_ranks: BTreeMap<i64, F>,
    /// Creates the format of another rank. `None` if a mapping defines the prefix of a line.
    begin: Option<Box<dyn Fn() -> F + Send>>,
    unwrapper: Unwrapper,
    speakers: Speakers,
    /// The bytes in which names of processes were counted.
    observed: usize,
    left: RankedLeftLines,
    /// The rank of the current line, whose first part ended at a carriage return.
    rank: Option<Rank>,
    numbers: LineNumbers,
    clock: LineClock,
    diagnostics: Diagnostics,
    /// Whether a line was a record.
    has_records: bool,
    /// Whether the beginning of the current line was lost.
    in_lost_line: bool,
}

impl<F: LineFormat + Default + 'static> Default for LineParser<F> {
    fn default() -> Self {
        Self::of_ranks(F::default)
    }
}

impl<F: LineFormat> LogParser for LineParser<F> {
    fn parse(&mut self, window: Window<'_>, recorder: &mut Recorder<'_>) -> usize {
        let mut done = 0;
        let mut position = window.start;
        self.clock.set_local(recorder.local_clock());
        self.observe(&window);
        let mut texts = CleanText::new(window.bytes);
        let has_zeros = memchr::memchr(0, window.bytes).is_some();
        for end in memchr::memchr2_iter(b'\n', b'\r', window.bytes) {
            if std::mem::take(&mut self.in_lost_line) || end == done {
                // The line is empty or incomplete.
            } else if has_zeros && memchr::memchr(0, &window.bytes[done..end]).is_some() {
                self.line_with_zeros(&window.bytes[done..end], false, position, window.time, recorder);
            } else {
                self.line(&texts.line(done..end), position, window.time, recorder);
            }
            if window.bytes[end] == b'\n' {
                self.rank = None;
            }
            done = end + 1;
            position.offset = window.start.offset + done as u64;
            position.line += u64::from(window.bytes[end] == b'\n');
        }
        if window.is_last && done < window.bytes.len() && !self.in_lost_line {
            self.line_with_zeros(&window.bytes[done..], true, position, window.time, recorder);
            done = window.bytes.len();
        }
        if window.is_last {
            self.unwrapper.report_partial(recorder);
            self.diagnostics.end_tracebacks(recorder);
        }
        done
    }

    fn resync(&mut self) {
        self.in_lost_line = true;
    }

    fn earliest_buffered(&self) -> Option<SourcePosition> {
        let starts = [
            self.unwrapper.earliest_partial(),
            self.diagnostics.earliest_traceback(),
        ];
        starts.into_iter().flatten().min_by_key(|start| start.offset)
    }

    fn flush_buffered(&mut self, recorder: &mut Recorder<'_>) {
        self.diagnostics.end_tracebacks(recorder);
    }

    fn turn_off_messages(&mut self) {
        self.diagnostics.turn_off();
    }

    fn set_layers(&mut self, layers: usize) -> bool {
        let wrapping = &mut self.unwrapper.wrapping;
        if *wrapping != Wrapping::All {
            *wrapping = Wrapping::Layers(layers);
        }
        true
    }

    fn invented_times(&self) -> u64 {
        self.clock.invented()
    }

    fn set_pace(&mut self, pace: Pace) {
        self.clock.set_pace(pace);
    }

    fn set_left_line_readers(&mut self, readers: LeftLineReaders) -> bool {
        self.left = RankedLeftLines::new(readers);
        true
    }

    fn key_uses(&mut self) -> Vec<KeyUse> {
        let others = self.of_ranks.values_mut().flat_map(F::key_uses);
        KeyUse::merged(self.format.key_uses(), others.chain(self.left.key_uses()))
    }
}

impl<F: LineFormat> LineParser<F> {
    /// Creates a parser of a log with lines of several ranks. `begin` creates the format of each rank.
    pub(super) fn of_ranks(begin: impl Fn() -> F + Send + 'static) -> Self {
        let format = begin();
        Self {
            begin: Some(Box::new(begin)),
            unwrapper: Unwrapper::new(match F::IS_UNKNOWN {
                true => Wrapping::All,
                false => Wrapping::Strict,
            }),
            ..Self::new(format)
        }
    }

    /// Creates a parser of lines whose mapping names the key of the rank. `begin` creates the format of each rank.
    pub(super) fn with_mapped_ranks(begin: impl Fn() -> F + Send + 'static) -> Self {
        let format = begin();
        Self {
            begin: Some(Box::new(begin)),
            ..Self::new(format)
        }
    }

    /// Creates a parser without states of ranks.
    pub(super) fn new(format: F) -> Self {
        Self {
            format,
            of_ranks: BTreeMap::new(),
            begin: None,
            unwrapper: Unwrapper::new(Wrapping::Kept),
            speakers: Speakers::default(),
            observed: 0,
            left: RankedLeftLines::default(),
            rank: None,
            numbers: LineNumbers::default(),
            clock: LineClock::default(),
            diagnostics: Diagnostics::default(),
            has_records: false,
            in_lost_line: false,
        }
    }

    /// Parses a line of the log, which may be in envelopes.
    fn line(&mut self, text: &str, position: SourcePosition, time: ReadTime, recorder: &mut Recorder<'_>) {
        let mut voice = Voice::default();
        if self.unwrapper.wrapping.is_bare() {
            self.message(text, voice, position, time, recorder);
            return;
        }
        let context = (time.unix_nanos, self.clock.date_order());
        let unwrapped = self
            .unwrapper
            .complete(text, position, &mut voice, context, recorder);
        let Some((inner, start)) = unwrapped else { return };
        for line in inner.split(['\n', '\r']).filter(|line| !line.is_empty()) {
            self.message(line, voice.clone(), start, time, recorder);
        }
    }

    /// Parses a line without envelopes.
    fn message(
        &mut self,
        text: &str,
        mut voice: Voice,
        position: SourcePosition,
        time: ReadTime,
        recorder: &mut Recorder<'_>,
    ) {
        let text = self.without_prefix(text, &mut voice, time.unix_nanos);
        // A progress bar can precede a stack trace.
        let before = Diagnostics::split_heading(text);
        let text = before.unwrap_or(text);
        let line = Line::new(text, (position, time), &voice, &self.clock);
        let mapped = self.format.rank(text);
        self.rank = mapped.or_else(|| self.speakers.rank(&voice)).or(self.rank);
        let has_room = recorder.of_rank(self.rank);
        if let Some(before) = before {
            self.diagnostics.begin_traceback(&line, before, recorder);
        } else if self.diagnostics.continue_traceback(&line, recorder) {
            return;
        }
        if before.is_some_and(|before| before.trim().is_empty()) {
            return;
        }
        let format = match (self.rank, &self.begin) {
            (Some(rank), Some(begin)) if has_room => self.of_ranks.entry(rank.number()).or_insert_with(begin),
            _ => &mut self.format,
        };
        let skipped = recorder.parse_report().total();
        let rank = self.rank.filter(|_| has_room).map(Rank::number);
        let is_record =
            format.line(&line, recorder) || format.leaves_line() && self.left.line(rank, &line, recorder);
        if !is_record {
            format.report_left(&line, recorder);
        }
        // A line that the format counts can be private, so it is not a message.
        let is_counted = recorder.parse_report().total() != skipped;
        let is_sentence = || !text.contains([':', '=']);
        if is_record && F::IS_UNKNOWN && (voice.is_severe() || names_nan(text) || is_sentence()) {
            self.diagnostics.observe(&line, true, recorder);
        } else if !is_record && (F::IS_UNKNOWN || !is_counted) {
            let can_be_message = !F::HAS_PRIVATE_LINES || line.leading_time().is_some();
            if can_be_message && self.diagnostics.observe(&line, false, recorder) {
                recorder.send_full_batches();
            } else if !(is_counted || F::IS_UNKNOWN && self.has_records) {
                // The reader of unknown logs counts after its first record, also values of objects over several lines.
                unread::report(&line, self.has_records, can_be_message, recorder);
            }
        }
        self.has_records |= is_record;
        if is_record {
            recorder.end_of_record();
            if !has_room {
                recorder.report(SkipReason::TooManyRanks, position, || {
                    "the log has too many ranks; the records of further ones count as the run's own"
                        .to_owned()
                });
            }
        }
    }

    /// Removes the prefix of a launcher from a line; in a log of no known logger also that of the logger.
    fn without_prefix<'l>(&self, text: &'l str, voice: &mut Voice, near: UnixNanos) -> &'l str {
        match self.unwrapper.wrapping {
            Wrapping::Kept => text,
            Wrapping::Strict | Wrapping::Layers(_) => {
                let line = self.numbers.split(text);
                voice.or_rank(line.rank);
                line.text
            }
            Wrapping::All => {
                let prefix = Prefix::parse(text, near, self.clock.date_order());
                voice.add_prefix(&prefix);
                let text = match prefix.len {
                    0 => text,
                    len => without_repetitions(prefix.gap.skip(&text[len..])),
                };
                let line = self.numbers.split(text);
                voice.or_rank(line.rank);
                if !voice.has_rank()
                    && let Some(rank) = tag::in_record(line.text)
                {
                    voice.add_speaker(rank);
                }
                line.text
            }
        }
    }

    /// Counts the numbers and the processes before the first lines of a log, whose roles only several lines show.
    fn observe(&mut self, window: &Window<'_>) {
        self.numbers.record(window.bytes);
        if self.unwrapper.wrapping.is_bare() || self.observed >= MAX_OBSERVED {
            return;
        }
        self.observed += window.bytes.len();
        for line in
            window.bytes[..window.bytes.len().min(MAX_OBSERVED)].split(|byte| matches!(byte, b'\n' | b'\r'))
        {
            let line = clean(line);
            let mut voice = Voice::default();
            let context = (window.time.unix_nanos, self.clock.date_order());
            let inner = self.unwrapper.unwrapped(&line, &mut voice, context);
            self.without_prefix(&inner, &mut voice, window.time.unix_nanos);
            self.speakers.observe(&voice);
        }
    }

    /// Parses a line with zero bytes. A file has zeros if the machine crashed before a write, or if another program truncated
    /// the log. The text before the zeros has lost its end.
    fn line_with_zeros(
        &mut self,
        bytes: &[u8],
        is_last: bool,
        position: SourcePosition,
        time: ReadTime,
        recorder: &mut Recorder<'_>,
    ) {
        let mut rest = bytes;
        while let Some(zero) = memchr::memchr(0, rest) {
            let at = position.advanced_by(&bytes[..bytes.len() - rest.len()]);
            let zeros = rest[zero..].iter().take_while(|byte| **byte == 0).count();
            if zero > 0 {
                self.last_line(&rest[..zero], at, time, recorder);
            }
            recorder.report(SkipReason::UnrecognisedBytes, at.advanced_by(&rest[..zero]), || {
                format!("{zeros} zero bytes in a text file; a write was lost here, or the file was truncated while its writer held it open")
            });
            rest = &rest[zero + zeros..];
        }
        let at = position.advanced_by(&bytes[..bytes.len() - rest.len()]);
        match rest {
            [] => {}
            _ if is_last => self.last_line(rest, at, time, recorder),
            _ => self.line(&clean(rest), at, time, recorder),
        }
    }

    /// Parses the last line of the input. A number in it may lack its last digits.
    fn last_line(
        &mut self,
        bytes: &[u8],
        position: SourcePosition,
        time: ReadTime,
        recorder: &mut Recorder<'_>,
    ) {
        let cleaned = clean(bytes);
        let mut voice = Voice::default();
        let context = (time.unix_nanos, self.clock.date_order());
        let inner = self.unwrapper.unwrapped(&cleaned, &mut voice, context);
        let text = self.without_prefix(&inner, &mut voice, time.unix_nanos);
        if F::is_complete(text) {
            self.line(&cleaned, position, time, recorder);
        } else if F::is_record_start(text) {
            recorder.report(SkipReason::IncompleteRecord, position, || {
                "the input ends within this line".to_owned()
            });
        } else {
            let line = Line::new(text, (position, time), &voice, &self.clock);
            self.rank = self.speakers.rank(&voice).or(self.rank);
            recorder.of_rank(self.rank);
            if !self.diagnostics.continue_traceback(&line, recorder) && !F::HAS_PRIVATE_LINES {
                self.diagnostics.observe(&line, false, recorder);
            }
        }
    }
}

/// The bytes at the beginning of a log in which the processes are counted.
const MAX_OBSERVED: usize = 64 << 10;

/// Returns whether a line names a value that is not a number.
fn names_nan(text: &str) -> bool {
    ["nan", "NaN", "NAN"]
        .iter()
        .any(|name| memchr::memmem::find(text.as_bytes(), name.as_bytes()).is_some())
}

/// Returns a row of the table of formats without its names: one file of lines that a run continues after it was truncated.
pub(super) const fn row<F: LineFormat + Default + 'static>() -> LogFormat {
    LogFormat {
        name: "",
        brief: "",
        framework: "",
        continues_after_truncate: true,
        splits: false,
        detect: detect::<F>,
        identify: identify::<F>,
        parser: ParserFactory::Builtin(|| Box::new(LineParser::<F>::default())),
        coverage: Vec::new,
    }
}

/// Returns the signature of the format in the first line that has it.
pub(super) fn detect<F: LineFormat>(head: &[u8]) -> Option<&'static str> {
    first_signature::<F>(head).map(|(_, signature)| signature)
}

/// Returns the header of a run: everything up to the first line with the format's signature, without the prefixes of launchers, so
/// that each rank has the id of the run.
pub(super) fn identify<F: LineFormat>(head: &[u8]) -> RunHeader {
    let end = first_signature::<F>(head).map_or(0, |(end, _)| end);
    RunHeader {
        first_record: without_prefixes(&text_of(head)[..end]),
        ..RunHeader::default()
    }
}

/// Returns the header of a run: everything up to the end of the first line that a parser records.
pub(super) fn identify_by(mut parser: Box<dyn LogParser>, head: &[u8]) -> RunHeader {
    let mut recorder = Recorder::new(Run::default(), |_| {});
    let mut is_record = |bytes, is_last| {
        let window = Window {
            bytes,
            start: SourcePosition::default(),
            is_last,
            time: ReadTime::default(),
        };
        parser.parse(window, &mut recorder);
        recorder.counts().records > 0
    };
    let mut start = 0;
    let mut ends = memchr::memchr2_iter(b'\n', b'\r', head);
    let end = ends.find(|end| is_record(&head[std::mem::replace(&mut start, end + 1)..=*end], false));
    let end = end.or_else(|| is_record(&head[start..], true).then_some(head.len()));
    RunHeader {
        first_record: without_prefixes(&head[..end.unwrap_or(0)]),
        ..RunHeader::default()
    }
}

/// Returns the text at the beginning of the head, after leading zeros and up to the next zero. A file of another kind may
/// contain printed text.
fn text_of(head: &[u8]) -> &[u8] {
    let zeros = head.iter().take_while(|byte| **byte == 0).count();
    let text = &head[zeros..];
    &text[..memchr::memchr(0, text).unwrap_or(text.len())]
}

fn first_signature<F: LineFormat>(head: &[u8]) -> Option<(usize, &'static str)> {
    let head = text_of(head);
    let mut start = 0;
    for end in memchr::memchr2_iter(b'\n', b'\r', head) {
        let line = clean(&head[start..end]);
        if let Some(signature) = F::signature(RankedLine::parse(&line).text) {
            return Some((end, signature));
        }
        start = end + 1;
    }
    let last = clean(&head[start..]);
    let last = RankedLine::parse(&last).text;
    let signature = F::signature(last).filter(|_| F::is_complete(last));
    signature.map(|signature| (head.len(), signature))
}

#[cfg(test)]
mod tests;
