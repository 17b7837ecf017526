//! Records the entries of a history, each once, although every state lists it again.

use super::{
    super::keys::Dictionaries,
    history_digest::{HistoryDigest, hash},
};
use crate::logs::line_clock::LineClock;
use crate::logs::{Window, literal};
use pulsetrain_mapping::{Field, RecordMeta};
use pulsetrain_record::{Recorder, SkipReason, SourcePosition};

/// An entry of the list.
pub(super) struct Listed<'a> {
    pub(super) text: &'a str,
    pub(super) fields: Vec<Field<'a>>,
    /// The number of keys whose value is `null`.
    pub(super) nulls: u64,
}

/// Records listed entries.
#[derive(Debug)]
pub(super) struct Entries {
    pub(super) dictionaries: Dictionaries,
    /// Assigns times, because entries have none.
    pub(super) clock: LineClock,
    /// The number of entries read from the current file.
    index: usize,
    /// The number of entries recorded since the program started.
    recorded: usize,
}

impl Default for Entries {
    fn default() -> Self {
        Self {
            dictionaries: Dictionaries::default().of_one_attempt(),
            clock: LineClock::default(),
            index: 0,
            recorded: 0,
        }
    }
}

impl Entries {
    /// Starts over at the beginning of the file.
    pub(super) fn begin(&mut self) {
        self.index = 0;
    }

    /// Returns the number of entries read from the file so far.
    pub(super) fn listed(&self) -> usize {
        self.index
    }

    /// Records the next entry if it is new. An entry of before a restart is replayed: it restores counter state and sends
    /// nothing.
    pub(super) fn take(
        &mut self,
        listed: Listed<'_>,
        (window, position): (Window<'_>, SourcePosition),
        digest: &mut HistoryDigest,
        recorder: &mut Recorder<'_>,
    ) {
        if !digest.has_entry(self.index, hash(listed.text)) {
            self.record(listed, window, position, recorder);
        } else if self.index >= self.recorded {
            let clock = self.clock.clone();
            recorder.replay(|recorder| self.record(listed, window, position, recorder));
            self.clock = clock;
        }
        self.index += 1;
        self.recorded = self.recorded.max(self.index);
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
        let meta = RecordMeta {
            step: literal::number(&fields, "step").map(|step| step as i64),
            ..self.meta(window, position)
        };
        fields.retain(|(key, _)| key != "step");
        if let Some(step) = meta.step {
            self.dictionaries.step(meta.time_unix_nanos, step, recorder);
        }
        self.dictionaries.record(meta, fields, recorder);
        recorder.end_of_record();
    }

    /// Returns the time and the position of the next record.
    pub(super) fn meta(&mut self, window: Window<'_>, position: SourcePosition) -> RecordMeta {
        RecordMeta {
            time_unix_nanos: self.clock.time(None, window.time),
            step: None,
            position,
        }
    }
}
