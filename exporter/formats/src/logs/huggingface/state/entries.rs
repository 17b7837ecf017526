//! The entries of a history: each is recorded once, however often it is listed.

use super::{
    super::keys::Dictionaries,
    history_digest::{HistoryDigest, hash},
};
use crate::logs::line_clock::LineClock;
use crate::logs::{Window, literal};
use pulsetrain_mapping::{Field, RecordMeta};
use pulsetrain_record::{Recorder, SkipReason, SourcePosition};

/// An entry as it is listed.
pub(super) struct Listed<'a> {
    pub(super) text: &'a str,
    pub(super) fields: Vec<Field<'a>>,
    /// How many of its keys have no value.
    pub(super) nulls: u64,
}

/// Records what is listed.
#[derive(Debug)]
pub(super) struct Entries {
    pub(super) dictionaries: Dictionaries,
    /// Entries have no time.
    pub(super) clock: LineClock,
    /// How many entries of the file that is read now have come.
    position: usize,
    /// How many entries were recorded since the program began.
    recorded: usize,
}

impl Default for Entries {
    fn default() -> Self {
        Self {
            dictionaries: Dictionaries::default().of_one_attempt(),
            clock: LineClock::default(),
            position: 0,
            recorded: 0,
        }
    }
}

impl Entries {
    /// The file begins again.
    pub(super) fn begin(&mut self) {
        self.position = 0;
    }

    /// How many entries the file has listed so far.
    pub(super) fn listed(&self) -> usize {
        self.position
    }

    /// Takes the next entry. What was told before a restart is recorded, so that sums come to what they were, and does not leave.
    pub(super) fn take(
        &mut self,
        listed: Listed<'_>,
        (window, position): (Window<'_>, SourcePosition),
        told: &mut HistoryDigest,
        recorder: &mut Recorder<'_>,
    ) {
        if !told.knows_entry(self.position, hash(listed.text)) {
            self.record(listed, window, position, recorder);
        } else if self.position >= self.recorded {
            let clock = self.clock.clone();
            recorder.replay(|recorder| self.record(listed, window, position, recorder));
            self.clock = clock;
        }
        self.position += 1;
        self.recorded = self.recorded.max(self.position);
    }

    fn record(
        &mut self,
        listed: Listed<'_>,
        window: Window<'_>,
        position: SourcePosition,
        recorder: &mut Recorder<'_>,
    ) {
        let Listed {
            mut fields, nulls, ..
        } = listed;
        recorder.skip_values(SkipReason::NotMeasured, nulls);
        let written = RecordMeta {
            step: literal::number(&fields, "step").map(|step| step as i64),
            ..self.written(window, position)
        };
        fields.retain(|(key, _)| key != "step");
        if let Some(step) = written.step {
            self.dictionaries.step(written.time_unix_nanos, step, recorder);
        }
        self.dictionaries.record(written, fields, recorder);
        recorder.end_of_record();
    }

    /// When and where the next thing was written.
    pub(super) fn written(&mut self, window: Window<'_>, position: SourcePosition) -> RecordMeta {
        RecordMeta {
            time_unix_nanos: self.clock.time("", window.time),
            step: None,
            position,
        }
    }
}
