//! Reading of an input that is still being written, and of one that was read before.

use serde_json::Value as Json;

use super::LogReader;
use pulsetrain_record::{Place, Recorder};

impl LogReader {
    /// Whether new records are written over the end of the file.
    pub fn rewrites_end(&self) -> bool {
        self.parser.rewrites_end()
    }

    /// Forgets what was read after the last complete record: it is read anew, because it may have been written over.
    pub fn rewind(&mut self) {
        self.unread.clear();
    }

    /// Whether the file is written anew as a whole.
    pub fn is_written_anew(&self) -> bool {
        self.parser.is_written_anew()
    }

    /// Whether a file that begins so is still of the run that was read; nothing where too little of it is there.
    pub fn is_of_run(&self, head: &[u8]) -> Option<bool> {
        self.parser.is_of_run(head)
    }

    /// What was told of a file that is written anew.
    pub fn told(&self) -> Option<Json> {
        self.parser.told()
    }

    /// Whether several files of a run say the same of it.
    pub fn shares_told(&self) -> bool {
        self.parser.shares_told()
    }

    /// Takes over what was told before, and says whether that makes sense.
    pub fn remember(&mut self, told: &Json) -> bool {
        self.parser.remember(told)
    }

    /// Where reading begins again after a restart: all before it is recorded.
    pub fn recorded_to(&self) -> Place {
        self.parser.held_from().unwrap_or_else(|| self.position())
    }

    /// Whether something is read and waits for what follows.
    pub fn holds_records(&self) -> bool {
        self.parser.held_from().is_some()
    }

    /// Records what waits: nothing follows for the moment.
    pub fn release(&mut self, recorder: &mut Recorder<'_>) {
        self.parser.release(recorder);
    }

    /// Says that the bytes so far end at `place`, where a record ended when they were read before.
    pub fn settle(&mut self, place: Place, recorder: &mut Recorder<'_>) {
        // Where the end of the file is written over, only what follows a record shows that it is complete.
        self.parse(self.rewrites_end(), recorder);
        self.release(recorder);
        self.unread.clear();
        self.start = place;
    }

    /// Takes what was read as the end of the input.
    pub fn end(&mut self, recorder: &mut Recorder<'_>) {
        self.parse(true, recorder);
    }

    /// Begins to read the input in which the same records go on.
    pub fn go_on_elsewhere(&mut self) {
        self.unread.clear();
        self.start = Place { offset: 0, line: 1 };
    }
}
