//! Removes the envelopes of the lines of a log, and joins the parts of a line.

use std::borrow::Cow;

use pulsetrain_otlp::UnixNanos;
use pulsetrain_record::{Recorder, SkipReason, SourcePosition};

use crate::logs::{envelope::Unwrapped, layers::MAX_LAYERS, speakers::Voice, timestamp::DateOrder};

/// The longest line that is joined from its parts.
const MAX_PARTIAL: usize = 1 << 20;

/// The text that is removed around the lines of a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wrapping {
    /// Nothing: a mapping defines the lines.
    Kept,
    /// The prefix of a launcher, and envelopes that cannot be part of a record.
    Strict,
    /// The prefix of a launcher in this many envelopes.
    Layers(usize),
    /// Every envelope, and every prefix of a launcher or a logger.
    All,
}

impl Wrapping {
    /// Returns whether lines are in no envelope.
    pub(super) fn is_bare(self) -> bool {
        matches!(self, Self::Kept | Self::Layers(0))
    }
}

/// A line that continues in the next one of its stream.
#[derive(Debug)]
struct PartialLine {
    text: String,
    start: SourcePosition,
}

/// The properties of a line that its envelopes show.
#[derive(Clone, Copy, Debug, Default)]
struct Flags {
    is_partial: bool,
    is_stderr: bool,
}

/// Removes the envelopes of lines.
#[derive(Debug)]
pub(super) struct Unwrapper {
    pub(super) wrapping: Wrapping,
    /// The incomplete lines of the standard output and the standard error.
    partial: [Option<PartialLine>; 2],
    /// Whether the text of an envelope has ended with a newline, so that one without is incomplete.
    has_newlines: bool,
}

impl Unwrapper {
    pub(super) fn new(wrapping: Wrapping) -> Self {
        Self {
            wrapping,
            partial: [None, None],
            has_newlines: false,
        }
    }

    /// Returns the beginning of the oldest incomplete line.
    pub(super) fn earliest_partial(&self) -> Option<SourcePosition> {
        let starts = self.partial.iter().flatten().map(|line| line.start);
        starts.min_by_key(|start| start.offset)
    }

    /// Reports the lines whose last part is missing at the end of the input.
    pub(super) fn report_partial(&mut self, recorder: &mut Recorder<'_>) {
        for line in self.partial.iter_mut().filter_map(Option::take) {
            recorder.report(SkipReason::IncompleteRecord, line.start, || {
                "the input ends before the last part of this line".to_owned()
            });
        }
    }

    /// Removes the envelopes of a line, and returns its text with the position of its beginning once it is complete.
    pub(super) fn complete<'t>(
        &mut self,
        text: &'t str,
        position: SourcePosition,
        voice: &mut Voice,
        (near, order): (UnixNanos, &DateOrder),
        recorder: &mut Recorder<'_>,
    ) -> Option<(Cow<'t, str>, SourcePosition)> {
        let (inner, flags) = self.remove_envelopes(text, voice, (near, order));
        let partial = &mut self.partial[usize::from(flags.is_stderr)];
        match (partial.take(), flags.is_partial) {
            (None, false) => Some((inner, position)),
            (Some(mut line), false) => {
                line.text.push_str(&inner);
                Some((Cow::Owned(line.text), line.start))
            }
            (before, true) => {
                let mut line = before.unwrap_or(PartialLine {
                    text: String::new(),
                    start: position,
                });
                line.text.push_str(&inner);
                // A progress bar has one line of the container for all of its states.
                let states = line.text.rfind('\r').map(|end| {
                    let rest = line.text.split_off(end + 1);
                    let start = std::mem::replace(&mut line.start, position);
                    (Cow::Owned(std::mem::replace(&mut line.text, rest)), start)
                });
                if line.text.len() > MAX_PARTIAL {
                    recorder.report(SkipReason::RecordTooLong, position, || {
                        format!(
                            "a line in parts is longer than {MAX_PARTIAL} bytes; its first parts are skipped"
                        )
                    });
                } else {
                    *partial = Some(line);
                }
                states
            }
        }
    }

    /// Removes the envelopes of a line without joining its parts.
    pub(super) fn unwrapped<'t>(
        &mut self,
        text: &'t str,
        voice: &mut Voice,
        context: (UnixNanos, &DateOrder),
    ) -> Cow<'t, str> {
        match self.wrapping.is_bare() {
            true => Cow::Borrowed(text),
            false => self.remove_envelopes(text, voice, context).0,
        }
    }

    fn remove_envelopes<'t>(
        &mut self,
        text: &'t str,
        voice: &mut Voice,
        (near, order): (UnixNanos, &DateOrder),
    ) -> (Cow<'t, str>, Flags) {
        let (is_proven, most) = match self.wrapping {
            Wrapping::Layers(layers) => (true, layers),
            _ => (false, MAX_LAYERS),
        };
        let mut inner = Cow::Borrowed(text);
        let mut flags = Flags::default();
        for _ in 0..most {
            let next = match is_proven {
                true => Unwrapped::any(&inner, near, order),
                false => Unwrapped::strict(&inner, near, order),
            };
            let Some(next) = next else { break };
            voice.add_envelope(&next);
            if !next.is_partial && next.is_container {
                self.has_newlines = true;
            }
            flags.is_partial |= next.is_partial && (self.has_newlines || !next.is_container);
            flags.is_stderr |= next.is_stderr;
            inner = Cow::Owned(next.text.into_owned());
        }
        (inner, flags)
    }
}
