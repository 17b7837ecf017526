//! Surogate's `training.json`: a JSON array with one flat record a line, whose closing `]` each new record overwrites
//! (`csrc/src/runtime/training/logging.cpp` of Surogate).
//!
//! [`framing`] finds the records in the bytes, [`numbers`] parses those of numbers and [`record`] all others, and [`mapping`]
//! records their fields.

pub(super) mod console;
mod framing;
pub(super) mod jsonl;
mod mapping;
mod numbers;
mod record;
mod tables;

use std::borrow::Cow;

use super::{LogFormat, LogParser, ParserFactory, RunHeader, Window, clean};
use framing::Frame;
use numbers::{Kind, Numbers};
use pulsetrain_record::{LoggedTime, Recorder, SkipReason, SourcePosition};
use record::{Record, Value};

/// The row of Surogate in the table of formats.
pub(super) const FORMAT: LogFormat = LogFormat {
    name: "surogate",
    brief: "training.json of Surogate",
    framework: "surogate",
    continues_after_truncate: false,
    splits: false,
    detect,
    identify,
    parser: ParserFactory::Builtin(|| Box::new(SurogateParser::default())),
    coverage: tables::coverage,
};

/// The file before its first record.
const EMPTY_ARRAY: &[u8] = b"[\n\n]\n";

fn detect(head: &[u8]) -> Option<&'static str> {
    if head == EMPTY_ARRAY {
        return Some("an array without records");
    }
    framing::first_start(head, 0).map(|_| "records that begin with {\"log\":")
}

fn identify(head: &[u8]) -> RunHeader {
    let mut identity = RunHeader::default();
    let mut from = framing::first_start(head, 0).unwrap_or(head.len());
    identity.is_partial = true;
    while identity.is_partial
        && let Some(frame) = framing::next(head, from, false)
    {
        identity.take_in(&String::from_utf8_lossy(&head[frame.start..frame.end]));
        from = frame.next;
    }
    identity
}

/// The kinds of record that come before and among the options, of which the run's name is one.
const OPENING: [&str; 3] = ["cmd", "gpu-model", "option"];

impl RunHeader {
    fn take_in(&mut self, text: &str) {
        let Ok(record) = record::parse(text) else { return };
        if self.start_unix_nanos.is_none() {
            let (LoggedTime::Utc(start) | LoggedTime::Local(start)) = record.time;
            self.start_unix_nanos = Some(start);
            self.start_is_local = matches!(record.time, LoggedTime::Local(_));
            self.first_record = text.as_bytes().to_vec();
        }
        let option = |key: &str| {
            record
                .fields
                .iter()
                .find(|(name, _)| *name == key)
                .map(|(_, value)| value)
        };
        if let (Some(Value::Text("run_name")), Some(Value::Text(name))) = (option("name"), option("value")) {
            self.run_name = Some((*name).to_owned()).filter(|name| !name.is_empty());
            self.is_partial = false;
        }
        self.is_partial &= OPENING.contains(&record.kind);
    }
}

/// Parses the records of one file.
#[derive(Debug, Default)]
struct SurogateParser {
    mapping: mapping::Mapping,
    /// Whether what stands here belongs to no record and was said already.
    in_stray: bool,
    /// Up to where in the bytes that were kept no record begins: without all that stood before them it might seem so.
    looked_at: usize,
}

impl LogParser for SurogateParser {
    fn parse(&mut self, window: Window<'_>, recorder: &mut Recorder<'_>) -> usize {
        let looked_at = std::mem::take(&mut self.looked_at);
        let mut done = match framing::first_start(window.bytes, looked_at) {
            Some(start) => start,
            None => return self.no_record(window, recorder),
        };
        self.said_between(window, 0, done, recorder);
        while let Some(frame) = framing::next(window.bytes, done, window.is_last) {
            self.record(window, frame, recorder);
            done = frame.next;
        }
        done
    }

    fn resync(&mut self) {
        self.in_stray = true;
        self.looked_at = 0;
    }

    fn rewrites_end(&self) -> bool {
        true
    }
}

impl SurogateParser {
    /// A window in which no record begins: all of it but what may be the beginning of one is done with.
    fn no_record(&mut self, window: Window<'_>, recorder: &mut Recorder<'_>) -> usize {
        let done = if window.is_last {
            window.bytes.len()
        } else {
            framing::keep_from(window.bytes)
        };
        self.looked_at = framing::looked_at(window.bytes).saturating_sub(done);
        self.said_between(window, 0, done, recorder);
        done
    }

    /// StepHeader what stands between records, unless it is the array's own punctuation or was said already.
    fn said_between(&mut self, window: Window<'_>, start: usize, end: usize, recorder: &mut Recorder<'_>) {
        let stray = &window.bytes[start..end];
        if framing::is_punctuation(stray) {
            return;
        }
        if !std::mem::replace(&mut self.in_stray, true) {
            let message = || format!("{} bytes that belong to no record", stray.len());
            recorder.report(SkipReason::UnrecognisedBytes, window.position(start), message);
        }
    }

    fn record(&mut self, window: Window<'_>, frame: Frame, recorder: &mut Recorder<'_>) {
        self.in_stray = false;
        let bytes = &window.bytes[frame.start..frame.end];
        let text = clean::lossy(bytes);
        // What is valid stands where it stands in the text, and nearly all is.
        let in_bytes = |offset| match &text {
            Cow::Borrowed(_) => offset,
            Cow::Owned(_) => in_bytes(bytes, offset),
        };
        if let Some(numbers) = Numbers::parse(&text) {
            self.mapping
                .numbers(&numbers, window.position(frame.start), recorder);
            return recorder.end_of_record();
        }
        match record::parse(&text) {
            Ok(mut record) => {
                record.resolve(recorder);
                self.parsed(&record, (&text, window.position(frame.start)), recorder);
                recorder.end_of_record();
                let end = frame.start + in_bytes(record.len);
                self.said_between(window, end, frame.end, recorder);
            }
            Err(error) => {
                let reason = if frame.next == window.bytes.len() && window.is_last && error.is_cut_off {
                    SkipReason::IncompleteRecord
                } else {
                    SkipReason::MalformedRecord
                };
                let position = window.position(frame.start + in_bytes(error.offset));
                recorder.report(reason, position, || error.to_string());
            }
        }
    }

    /// Records what a record says that is an event, or that more than punctuation follows.
    fn parsed(
        &mut self,
        record: &Record<'_>,
        (text, position): (&str, SourcePosition),
        recorder: &mut Recorder<'_>,
    ) {
        let numbers = Kind::of(record.kind).and_then(|kind| Numbers::parse_as(kind, &text[..record.len]));
        match numbers {
            Some(numbers) => self.mapping.numbers(&numbers, position, recorder),
            None => self.mapping.event(record, recorder),
        }
    }
}

/// Where in `bytes` the place is that is `offset` in their text: what is no UTF-8 is longer there.
fn in_bytes(bytes: &[u8], offset: usize) -> usize {
    let (mut of_text, mut of_bytes) = (0, 0);
    for chunk in bytes.utf8_chunks() {
        let valid = chunk.valid().len();
        if offset <= of_text + valid {
            return of_bytes + offset.saturating_sub(of_text);
        }
        of_text += valid + char::REPLACEMENT_CHARACTER.len_utf8();
        of_bytes += valid + chunk.invalid().len();
    }
    bytes.len()
}

#[cfg(test)]
mod tests;
