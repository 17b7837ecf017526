//! Methods for an input that grows or is rewritten, and for one that was partly read before a restart.

use serde_json::Value as Json;

use super::LogReader;
use pulsetrain_record::{Recorder, SourcePosition};

impl LogReader {
    /// Returns whether new records overwrite the end of the file.
    pub fn rewrites_end(&self) -> bool {
        self.parser.rewrites_end()
    }

    /// Drops the bytes after the last complete record. They are read again, because the writer may overwrite them.
    pub fn rewind(&mut self) {
        self.unread.clear();
    }

    /// Returns whether the writer replaces the file.
    pub fn is_rewritten(&self) -> bool {
        self.parser.is_rewritten()
    }

    /// Returns whether a file with this head continues the run that was read. `None` if the head is too short.
    pub fn is_of_run(&self, head: &[u8]) -> Option<bool> {
        self.parser.is_of_run(head)
    }

    /// Returns the state of the parser of a rewritten file.
    pub fn snapshot(&self) -> Option<Json> {
        self.parser.snapshot()
    }

    /// Returns whether several files of a run hold the same items.
    pub fn shares_state(&self) -> bool {
        self.parser.shares_state()
    }

    /// Restores the state of before a restart. Returns whether it is valid.
    pub fn restore(&mut self, state: &Json) -> bool {
        self.parser.restore(state)
    }

    /// Returns the position at which reading resumes after a restart. Everything before it is recorded.
    pub fn recorded_to(&self) -> SourcePosition {
        self.parser.earliest_buffered().unwrap_or_else(|| self.position())
    }

    /// Returns whether parsed records are buffered.
    pub fn holds_records(&self) -> bool {
        self.parser.earliest_buffered().is_some()
    }

    /// Records the buffered records, because the input is silent.
    pub fn flush_buffered(&mut self, recorder: &mut Recorder<'_>) {
        self.parser.flush_buffered(recorder);
    }

    /// Ends the replay of bytes that were read before a restart. A record ended at `position` then.
    pub fn settle(&mut self, position: SourcePosition, recorder: &mut Recorder<'_>) {
        // If the writer overwrites the end of the file, only the bytes after a record show that it is complete.
        self.parse(self.rewrites_end(), recorder);
        self.flush_buffered(recorder);
        self.unread.clear();
        self.start = position;
    }

    /// Treats the bytes so far as the complete input.
    pub fn end(&mut self, recorder: &mut Recorder<'_>) {
        self.parse(true, recorder);
    }

    /// Continues the run in another input, from its beginning.
    pub fn continue_in_new_input(&mut self) {
        self.unread.clear();
        self.start = SourcePosition { offset: 0, line: 1 };
    }
}
