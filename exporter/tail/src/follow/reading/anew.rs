//! Reading of a file that is written anew as a whole with all that it said before: from its beginning, whenever it has changed.

use std::{fs::File, io};

use super::{Inode, Reading};
use crate::follow::{outlet::Outlet, saved::FilePosition};

impl Reading {
    /// Whether the file is written anew as a whole, so that no change is an addition to its end.
    pub(in crate::follow) fn is_written_anew(&self) -> bool {
        self.reader.is_written_anew()
    }

    /// Whether a file that begins so is still of the run; nothing where too little of it is there.
    pub(in crate::follow) fn is_of_run(&self, head: &[u8]) -> Option<bool> {
        self.reader.is_of_run(head)
    }

    /// Takes over what was told before a restart; says whether the position knows.
    pub(in crate::follow) fn remember(&mut self, position: &FilePosition) -> bool {
        let is_known = position
            .told
            .as_ref()
            .is_some_and(|told| self.reader.remember(told));
        if is_known && position.has_ended {
            self.recorder.clear_active();
        }
        is_known
    }

    /// Whether other files of the run say the same.
    pub(in crate::follow) fn shares_told(&self) -> bool {
        self.reader.shares_told()
    }

    /// Takes over what was told of other files of the run, where they say the same.
    pub(in crate::follow) fn share_told(&mut self, outlet: &Outlet) {
        if self.shares_told()
            && let Some(position) = outlet.newest_of_run(self.format.name, self.run())
            && let Some(told) = &position.told
        {
            self.reader.remember(told);
        }
    }

    /// Begins to read the file from its beginning; the run and what was told of it stay.
    pub(in crate::follow) fn begin_anew(&mut self, (file, inode): (File, Inode)) {
        self.reader.go_on_elsewhere();
        self.file = Some(file);
        self.inode = inode;
        self.head.clear();
        self.last = None;
        self.read_to = 0;
        self.as_of = None;
    }

    /// Whether the file is written anew, and was since it was begun to be read.
    pub(super) fn was_written_anew(&mut self) -> io::Result<bool> {
        if self.as_of.is_some() && !self.is_written_anew() {
            return Ok(false);
        }
        let modified = self.handle()?.metadata()?.modified()?;
        let as_of = *self.as_of.get_or_insert(modified);
        Ok(self.is_written_anew() && as_of != modified)
    }
}
