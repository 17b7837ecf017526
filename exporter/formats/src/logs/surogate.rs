//! Parses Surogate's `training.json`: a JSON array with one flat record a line. Each new record overwrites the closing `]`
//! (`csrc/src/runtime/training/logging.cpp` of Surogate).
//!
//! [`framing`] finds the records in the bytes, [`record`] parses them, and [`mapping`] records their fields.

pub(super) mod console;
mod framing;
pub(super) mod jsonl;
mod mapping;
mod numbers;
mod record;
mod tables;

use std::borrow::Cow;

use super::{LogFormat, LogParser, ParserFactory, RunHeader, Window, clean, parser::Positions};
use framing::Frame;
use pulsetrain_record::{Recorder, SkipReason, SourcePosition};
use record::RecordValue;

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
    let start = framing::first_start(head, 0)?;
    // Docker's `json-file` driver writes the lines of a container with the same first key.
    let record = framing::next(head, start, true).map(|frame| &head[frame.start..frame.end])?;
    let is_of_docker = memchr::memmem::find(record, b"\"stream\":\"std").is_some();
    (!is_of_docker).then_some("records that begin with {\"log\":")
}

fn identify(head: &[u8]) -> RunHeader {
    let mut header = RunHeader::default();
    let mut from = framing::first_start(head, 0).unwrap_or(head.len());
    header.is_partial = true;
    while header.is_partial
        && let Some(frame) = framing::next(head, from, false)
    {
        header.add_record(&String::from_utf8_lossy(&head[frame.start..frame.end]));
        from = frame.next;
    }
    header
}

/// The kinds of records before and among the options. The run's name is an option.
const OPENING: [&str; 3] = ["cmd", "gpu-model", "option"];

impl RunHeader {
    fn add_record(&mut self, text: &str) {
        let Ok(record) = record::parse(text) else { return };
        if self.start.is_none() {
            self.start = Some(record.time);
            self.first_record = text.as_bytes().to_vec();
        }
        let option = |key| record::field(&record.fields, key);
        if let (Some(RecordValue::Text("run_name")), Some(RecordValue::Text(name))) =
            (option("name"), option("value"))
        {
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
    /// Whether the parser is in bytes outside of records that are already reported.
    in_reported_gap: bool,
    /// The number of kept bytes in which no record begins. Without the bytes before them one might seem to.
    searched: usize,
}

impl LogParser for SurogateParser {
    fn parse(&mut self, window: Window<'_>, recorder: &mut Recorder<'_>) -> usize {
        let searched = std::mem::take(&mut self.searched);
        let mut done = match framing::first_start(window.bytes, searched) {
            Some(start) => start,
            None => return self.no_record(window, recorder),
        };
        self.report_gap(window, 0, done, recorder);
        let mut positions = Positions::new(window);
        while let Some(frame) = framing::next(window.bytes, done, window.is_last) {
            let position = positions.at(frame.start);
            self.record(window, (frame, position), recorder);
            done = frame.next;
        }
        done
    }

    fn resync(&mut self) {
        self.in_reported_gap = true;
        self.searched = 0;
    }

    fn rewrites_end(&self) -> bool {
        true
    }
}

impl SurogateParser {
    /// Consumes a window without the beginning of a record, except bytes that may be a part of one.
    fn no_record(&mut self, window: Window<'_>, recorder: &mut Recorder<'_>) -> usize {
        let done = if window.is_last {
            window.bytes.len()
        } else {
            framing::keep_from(window.bytes)
        };
        self.searched = framing::searched(window.bytes).saturating_sub(done);
        self.report_gap(window, 0, done, recorder);
        done
    }

    /// Reports bytes between records, except the punctuation of the array and bytes already reported.
    fn report_gap(&mut self, window: Window<'_>, start: usize, end: usize, recorder: &mut Recorder<'_>) {
        let gap = &window.bytes[start..end];
        if framing::is_punctuation(gap) {
            return;
        }
        if !std::mem::replace(&mut self.in_reported_gap, true) {
            let message = || {
                format!(
                    "{} bytes between records belong to none; they are skipped",
                    gap.len()
                )
            };
            recorder.report(SkipReason::UnrecognisedBytes, window.position(start), message);
        }
    }

    fn record(
        &mut self,
        window: Window<'_>,
        (frame, position): (Frame, SourcePosition),
        recorder: &mut Recorder<'_>,
    ) {
        self.in_reported_gap = false;
        let bytes = &window.bytes[frame.start..frame.end];
        let text = clean::lossy(bytes);
        // Offsets in valid UTF-8, which nearly all text is, equal those in the bytes.
        let in_bytes = |offset| match &text {
            Cow::Borrowed(_) => offset,
            Cow::Owned(_) => in_bytes(bytes, offset),
        };
        match record::parse(&text) {
            Ok(mut record) => {
                record.resolve(recorder);
                self.mapping.record(&record, position, recorder);
                recorder.end_of_record();
                let end = frame.start + in_bytes(record.len);
                self.report_gap(window, end, frame.end, recorder);
            }
            Err(error) => {
                let reason = if frame.next == window.bytes.len() && window.is_last && error.is_cut_off {
                    SkipReason::IncompleteRecord
                } else {
                    SkipReason::MalformedRecord
                };
                let position = position.advanced_by(&bytes[..in_bytes(error.offset)]);
                recorder.report(reason, position, || error.to_string());
            }
        }
    }
}

/// Converts an offset in the decoded text to one in `bytes`. They differ after invalid UTF-8.
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
