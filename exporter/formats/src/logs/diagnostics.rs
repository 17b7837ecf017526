//! Records the lines of a log that are no measurements but explain the run, as `run.message`: warnings, errors, exceptions with
//! their stack traces, values that are not finite, failures of memory, devices and communication, resumption, phases.
//!
//! Lines that differ only in their numbers are one message: it is recorded at its occurrences 1, 10, 100, ... on each rank, with
//! the number of the occurrence.

mod kinds;
mod traceback;

use std::collections::{BTreeMap, HashMap};

use pulsetrain_otlp::write::{Attribute, AttributeValue, Severity};
use pulsetrain_record::{Rank, Recorder, SkipReason, SourcePosition};
use pulsetrain_semconv::{attribute, event};
use xxhash_rust::xxh3::Xxh3Default;

use self::{kinds::Kind, traceback::Traceback};
use super::{
    lines::{Line, LineTimes},
    prefix::Prefix,
    timestamp::DateOrder,
};

/// The most different messages of a log, and the most errors. Further ones are counted.
const MAX_MESSAGES: usize = 4096;
/// The longest body in bytes.
const MAX_BODY: usize = 4 << 10;

/// Records the messages of one log.
#[derive(Debug)]
pub(super) struct Diagnostics {
    /// Whether messages are recorded.
    is_on: bool,
    /// The unfinished stack trace of each rank.
    tracebacks: BTreeMap<i64, Traceback>,
    /// The occurrences of each message, by the digest of its rank and its text without numbers.
    occurrences: HashMap<u64, u64>,
    /// The numbers of different messages: errors, and others.
    different: [usize; 2],
}

impl Default for Diagnostics {
    fn default() -> Self {
        Self {
            is_on: true,
            tracebacks: BTreeMap::new(),
            occurrences: HashMap::new(),
            different: [0; 2],
        }
    }
}

/// A message before it is recorded.
struct Message<'a> {
    kind: Kind,
    severity: Severity,
    body: &'a str,
    exception: Option<&'a Traceback>,
}

impl Diagnostics {
    /// Stops the recording of messages. Stack traces are still no records.
    pub(super) fn turn_off(&mut self) {
        self.is_on = false;
    }

    /// Returns the beginning of the oldest unfinished stack trace.
    pub(super) fn earliest_traceback(&self) -> Option<SourcePosition> {
        let starts = self.tracebacks.values().map(Traceback::start);
        starts.min_by_key(|start| start.offset)
    }

    /// Returns the text before the heading of a stack trace, such as a progress bar, if a line ends with one.
    pub(super) fn split_heading(text: &str) -> Option<&str> {
        Traceback::split_heading(text)
    }

    /// Begins a stack trace at a line, given the text before its heading.
    pub(super) fn begin_traceback(&mut self, line: &Line<'_>, before: &str, recorder: &mut Recorder<'_>) {
        let rank = recorder.run().rank;
        self.end_traceback(rank, recorder);
        self.tracebacks.insert(rank, Traceback::new(line, before));
    }

    /// Adds a line to the stack trace that it is part of, and returns whether it is part of one. Its numbers are no values.
    pub(super) fn continue_traceback(&mut self, line: &Line<'_>, recorder: &mut Recorder<'_>) -> bool {
        if self.tracebacks.is_empty() {
            return false;
        }
        let rank = recorder.run().rank;
        if self
            .tracebacks
            .values()
            .any(|traceback| traceback.is_abandoned(line.position()))
        {
            self.end_tracebacks(recorder);
            recorder.of_rank(Some(Rank::OfJob(rank)));
            return false;
        }
        let Some(traceback) = self.tracebacks.get_mut(&rank) else {
            return false;
        };
        let is_part = traceback.add(line.text);
        if !traceback.is_open() {
            self.end_traceback(rank, recorder);
        }
        is_part
    }

    /// Records all unfinished stack traces: the log has ended or is silent.
    pub(super) fn end_tracebacks(&mut self, recorder: &mut Recorder<'_>) {
        while let Some((rank, traceback)) = self.tracebacks.pop_first() {
            recorder.of_rank(Some(Rank::OfJob(rank)));
            self.record_traceback(&traceback, recorder);
        }
    }

    /// Records a line if it is a message, and returns whether it is one. Of a record, only values that are not finite and warnings are
    /// messages.
    pub(super) fn observe(&mut self, line: &Line<'_>, is_record: bool, recorder: &mut Recorder<'_>) -> bool {
        // The texts in an object can be of anybody.
        if !self.is_on || line.text.starts_with(['{', '[']) && line.text.ends_with(['}', ']']) {
            return false;
        }
        let (level, body) = match line.level {
            // The prefix of a record of an unknown log is removed already.
            level if level.is_some() || is_record => (level, line.text),
            _ => {
                let prefix = Prefix::parse(line.text, line.near_unix_nanos(), &DateOrder::default());
                (prefix.level, prefix.gap.skip(&line.text[prefix.len..]))
            }
        };
        let body = beginning(body.trim(), MAX_BODY);
        let Some((kind, severity)) = Kind::classify(body, level) else {
            return false;
        };
        if is_record && kind != Kind::NOT_FINITE && severity == Severity::Info {
            return false;
        }
        let message = Message {
            kind,
            severity,
            body,
            exception: None,
        };
        self.record(&message, (line.times(), line.position()), recorder);
        true
    }

    fn end_traceback(&mut self, rank: i64, recorder: &mut Recorder<'_>) {
        if let Some(traceback) = self.tracebacks.remove(&rank) {
            self.record_traceback(&traceback, recorder);
        }
    }

    fn record_traceback(&mut self, traceback: &Traceback, recorder: &mut Recorder<'_>) {
        if !self.is_on {
            return;
        }
        let kind = Kind::classify(traceback.summary(), None);
        let (kind, severity) = kind
            .filter(|(_, severity)| *severity as u64 >= Severity::Warn as u64)
            .unwrap_or((Kind::EXCEPTION, Severity::Error));
        let message = Message {
            kind,
            severity,
            body: traceback.summary(),
            exception: Some(traceback),
        };
        self.record(&message, (traceback.times(), traceback.start()), recorder);
    }

    fn record(
        &mut self,
        message: &Message<'_>,
        (times, position): (LineTimes, SourcePosition),
        recorder: &mut Recorder<'_>,
    ) {
        let digest = digest(recorder.run().rank, message);
        let is_error = message.severity == Severity::Error;
        let different = &mut self.different[usize::from(is_error)];
        let is_new = !self.occurrences.contains_key(&digest);
        if is_new && *different < MAX_MESSAGES {
            *different += 1;
        } else if is_new {
            recorder.report(SkipReason::Ignored("message_limit"), position, || {
                format!("the log has more than {MAX_MESSAGES} different messages")
            });
            return;
        }
        let occurrences = self.occurrences.entry(digest).or_default();
        *occurrences += 1;
        let occurrences = *occurrences;
        if !is_power_of_ten(occurrences) {
            return;
        }
        let text = |attribute, text| Some((attribute, AttributeValue::Text(text)));
        let exception = message.exception;
        let attributes: [Option<Attribute<'_>>; 6] = [
            text(&attribute::RUN_MESSAGE_KIND, message.kind.name()),
            (occurrences > 1).then_some((
                &attribute::RUN_MESSAGE_OCCURRENCES,
                AttributeValue::Int(i64::try_from(occurrences).unwrap_or(i64::MAX)),
            )),
            recorder
                .highest_step()
                .map(|step| (&attribute::TRAIN_STEP, AttributeValue::Int(step))),
            exception.and_then(|exception| text(&attribute::EXCEPTION_TYPE, exception.type_name()?)),
            exception.and_then(|exception| text(&attribute::EXCEPTION_MESSAGE, exception.message()?)),
            exception.and_then(|exception| text(&attribute::EXCEPTION_STACKTRACE, exception.text())),
        ];
        let attributes: Vec<_> = attributes.into_iter().flatten().collect();
        let body = AttributeValue::Text(beginning(message.body, MAX_BODY));
        let (event, severity) = (&event::RUN_MESSAGE, message.severity);
        recorder.record_message(
            event,
            severity,
            (times.own, times.observed),
            Some(body),
            &attributes,
        );
    }
}

/// Returns the digest of a message without its numbers.
fn digest(rank: i64, message: &Message<'_>) -> u64 {
    let mut hasher = Xxh3Default::new();
    hasher.update(&rank.to_le_bytes());
    hasher.update(message.kind.name().as_bytes());
    let words = beginning(message.body, MAX_BODY);
    for word in words.split(|letter: char| !letter.is_alphanumeric()) {
        // Numbers, addresses and ids have digits.
        if !word.contains(char::is_numeric) {
            hasher.update(word.as_bytes());
            hasher.update(b" ");
        }
    }
    hasher.digest()
}

fn is_power_of_ten(mut number: u64) -> bool {
    while number > 1 && number.is_multiple_of(10) {
        number /= 10;
    }
    number == 1
}

/// Returns the beginning of a text, at most `len` bytes.
fn beginning(text: &str, len: usize) -> &str {
    &text[..text.floor_char_boundary(len)]
}
