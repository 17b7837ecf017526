//! Parses TensorBoard event files of tensorboardX, torch and TensorFlow.
//!
//! [`frame`] finds and checks the records. [`event`] and [`summary`] decode them, and [`tensor`], [`histogram`] and [`hparams`]
//! their values. [`tags`] maps tags to metrics.

mod checksum;
mod event;
mod frame;
mod histogram;
mod hparams;
mod summary;
mod tensor;
mod values;

use crate::logs::{LogFormat, LogParser, ParserFactory, RunHeader, Window};
use crate::tags::{self, Scalars};
use event::{Content, Event};
use frame::Frame;
use pulsetrain_mapping::{TagEvidence, Trainer};
use pulsetrain_otlp::UnixNanos;
use pulsetrain_record::{LoggedTime, Recorder, SkipReason, SourcePosition};

/// The row of TensorBoard in the table of formats.
pub const FORMAT: LogFormat = LogFormat {
    name: "tensorboard",
    brief: "event files of TensorBoard (events.out.tfevents.*)",
    framework: "tensorboard",
    continues_after_truncate: false,
    splits: true,
    detect,
    identify,
    parser: ParserFactory::Builtin(|| Box::new(EventFileParser::default())),
    coverage: tags::coverage,
};

fn detect(head: &[u8]) -> Option<&'static str> {
    match frame::first(head) {
        Frame::Complete {
            is_sound: true,
            record,
        } => event::parse(record).ok()?,
        _ => return None,
    };
    Some(trainer_of(head).map_or("records with the checksums of TFRecord", Trainer::sign))
}

fn identify(head: &[u8]) -> RunHeader {
    let Some((record, event)) = records(head).next() else {
        return RunHeader::default();
    };
    RunHeader {
        framework: trainer_of(head).and_then(|trainer| trainer.mapping().framework()),
        start: event.time_unix_nanos().map(LoggedTime::Utc),
        first_record: record.to_vec(),
        ..RunHeader::default()
    }
}

/// Returns the trainer whose tags are among the first.
fn trainer_of(head: &[u8]) -> Option<&'static Trainer> {
    let summaries = records(head).filter_map(|(_, event)| match event.content {
        Content::Summary(summary) => Some(summary),
        _ => None,
    });
    let mut evidence = TagEvidence::default();
    summaries
        .flat_map(summary::values)
        .filter_map(Result::ok)
        .find_map(|value| evidence.observe(&String::from_utf8_lossy(value.tag)))
}

/// Iterates over the valid records at the beginning of some bytes.
fn records(mut bytes: &[u8]) -> impl Iterator<Item = (&[u8], Event<'_>)> {
    std::iter::from_fn(move || {
        let Frame::Complete { record, .. } = frame::first(bytes) else {
            return None;
        };
        bytes = &bytes[frame::HEAD_LEN + record.len() + frame::TAIL_LEN..];
        event::parse(record).ok().map(|event| (record, event))
    })
}

/// Parses the records of one event file.
#[derive(Debug, Default)]
struct EventFileParser {
    scalars: Scalars,
    /// The time of the newest event, for events without one.
    time_unix_nanos: UnixNanos,
    /// The remaining bytes to skip of a record that is too long.
    to_skip: u64,
    /// Whether the record boundary is lost: the rest of the file cannot be parsed.
    is_lost: bool,
}

impl LogParser for EventFileParser {
    fn parse(&mut self, window: Window<'_>, recorder: &mut Recorder<'_>) -> usize {
        let mut done = 0;
        loop {
            done += self.skip(window.bytes.len() - done);
            if self.is_lost {
                return window.bytes.len();
            }
            let rest = &window.bytes[done..];
            match frame::first(rest) {
                Frame::Complete { record, is_sound } => {
                    self.record(record, is_sound, window.at(done), recorder);
                    done += frame::HEAD_LEN + record.len() + frame::TAIL_LEN;
                }
                Frame::TooLong(length) => {
                    let message = || {
                        format!("a record of {length} bytes is skipped; pictures and graphs are that long")
                    };
                    recorder.report(SkipReason::RecordTooLong, window.at(done), message);
                    self.to_skip = length;
                }
                Frame::Broken => self.report_unreadable_rest(window, done, recorder),
                Frame::Partial => {
                    if window.is_last && !rest.is_empty() {
                        let message = || {
                            "the file ends inside a record: its writer is still writing, or was stopped"
                                .to_owned()
                        };
                        recorder.report(SkipReason::IncompleteRecord, window.at(done), message);
                        return window.bytes.len();
                    }
                    return done;
                }
            }
        }
    }

    fn resync(&mut self) {
        self.is_lost = true;
    }

    fn has_lines(&self) -> bool {
        false
    }
}

impl EventFileParser {
    /// Returns the number of `available` bytes to skip.
    fn skip(&mut self, available: usize) -> usize {
        let skipped = self.to_skip.min(available as u64);
        self.to_skip -= skipped;
        skipped as usize
    }

    /// Reports that the rest of the file cannot be parsed.
    fn report_unreadable_rest(&mut self, window: Window<'_>, offset: usize, recorder: &mut Recorder<'_>) {
        let message = || {
            "the checksum of a record's length is wrong, so the rest of the file cannot be read".to_owned()
        };
        recorder.report(SkipReason::MalformedRecord, window.at(offset), message);
        self.is_lost = true;
    }

    #[inline]
    fn record(
        &mut self,
        record: &[u8],
        is_sound: bool,
        position: SourcePosition,
        recorder: &mut Recorder<'_>,
    ) {
        let read = match event::parse(record) {
            Ok(event) if is_sound => self
                .event(event, position, recorder)
                .map_err(|error| error.to_string()),
            Err(error) if is_sound => Err(error.to_string()),
            _ => Err("its checksum is wrong".to_owned()),
        };
        match read {
            Ok(()) => recorder.end_of_record(),
            Err(error) => recorder.report(SkipReason::MalformedRecord, position, || {
                format!(
                    "a record of {} bytes is invalid, and all or some of its values are lost: {error}",
                    record.len()
                )
            }),
        }
    }
}

#[cfg(test)]
mod tests;
