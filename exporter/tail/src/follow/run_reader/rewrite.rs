//! Reading of a file that its writer rewrites with all earlier records: from its beginning after each change.

use std::{fs::File, io};

use super::{Inode, RunReader};
use crate::follow::{checkpoint_store::FileCheckpoint, context::TailContext};

impl RunReader {
    /// Returns whether the writer rewrites the file, instead of appending to it.
    pub(in crate::follow) fn is_rewritten(&self) -> bool {
        self.reader.is_rewritten()
    }

    /// Returns whether a file with this head belongs to the run. Returns `None` if the head is too short.
    pub(in crate::follow) fn is_of_run(&self, head: &[u8]) -> Option<bool> {
        self.reader.is_of_run(head)
    }

    /// Restores the record of emitted items from a checkpoint. Returns whether the checkpoint has one.
    pub(in crate::follow) fn restore_emitted(&mut self, checkpoint: &FileCheckpoint) -> bool {
        let is_known = checkpoint
            .emitted
            .as_ref()
            .is_some_and(|emitted| self.reader.restore(emitted));
        if is_known && checkpoint.has_ended {
            self.recorder.clear_active();
        }
        is_known
    }

    /// Returns whether several files of the run contain the same items.
    pub(in crate::follow) fn shares_items(&self) -> bool {
        self.reader.shares_state()
    }

    /// Restores the record of emitted items from the newest file of the run, if its files contain the same items.
    pub(in crate::follow) fn share_emitted(&mut self, context: &mut TailContext) {
        if self.shares_items()
            && let Some(checkpoint) = context.newest_of_run(self.format.name, self.run())
            && let Some(emitted) = &checkpoint.emitted
        {
            self.reader.restore(emitted);
        }
    }

    /// Restarts at the beginning of the file. The run and the record of emitted items stay.
    pub(in crate::follow) fn restart_in(&mut self, (file, inode): (File, Inode)) {
        self.reader.continue_in_new_input();
        self.file = Some(file);
        self.inode = inode;
        self.head.clear();
        self.last = None;
        self.read_offset = 0;
        self.modified_at_start = None;
    }

    /// Returns whether the writer rewrote the file since reading started at its beginning.
    pub(super) fn was_rewritten(&mut self) -> io::Result<bool> {
        if self.modified_at_start.is_some() && !self.is_rewritten() {
            return Ok(false);
        }
        let modified = self.handle()?.metadata()?.modified()?;
        let at_start = *self.modified_at_start.get_or_insert(modified);
        Ok(self.is_rewritten() && at_start != modified)
    }
}
