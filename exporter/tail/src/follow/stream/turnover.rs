//! What happens when a file is over: what is left of it is read, wherever it is by now, then the files that it was rotated
//! before, then the one that has the name.

use std::fs::{File, Metadata};

use super::{
    super::{
        candidates::find_renamed,
        identity::{FileIdentity, Inode},
        outlet::Outlet,
        positions::Update,
        reading::{Outcome, Reading},
        rotated,
        saved::SavedRun,
    },
    BUDGET_BYTES, Next, Stream,
};
use crate::TailError;

impl Stream {
    /// Another file has the name: the old one ends, but not before its writer has begun to write to the new one.
    pub(super) fn move_on(&mut self, metadata: &Metadata, outlet: &mut Outlet) -> Result<(), TailError> {
        self.read_renamed(outlet)?;
        if self.next == Next::Read {
            return Ok(());
        }
        self.queue_rotated_now(outlet);
        if metadata.len() == 0 && self.rotated.is_empty() {
            return Ok(());
        }
        self.replace(outlet)
    }

    /// Reads on in the file that has lost its name; where it is gone altogether, what was read is all there is.
    fn read_renamed(&mut self, outlet: &mut Outlet) -> Result<(), TailError> {
        let Some(reading) = &mut self.reading else {
            return Ok(());
        };
        if !reading.has_handle() {
            match find_renamed(&self.path, &reading.identity()) {
                Some(renamed) => reading.give_handle(renamed.0),
                None => return Ok(()),
            }
        }
        self.read_on(outlet)
    }

    /// What was read is over. The file that comes next begins a new run, or goes on with the old one.
    pub(super) fn replace(&mut self, outlet: &mut Outlet) -> Result<(), TailError> {
        if self.reading().is_some_and(Reading::is_written_anew) {
            return self.read_anew(outlet);
        }
        let current = self.open()?;
        let is_copied = self.read_copy(outlet)?;
        self.queue_rotated_now(outlet);
        let goes_on = self.reading().is_some_and(Reading::goes_on);
        if let Some(reading) = &mut self.reading
            && !is_copied
            && self.rotated.is_empty()
            && reading.inode() == current.1
        {
            reading.expect_restart();
        }
        self.go_over_to(current, goes_on, outlet)
    }

    /// Ends what was read; the next file goes on with its run, or begins a new one.
    pub(super) fn go_over_to(
        &mut self,
        current: (File, Inode),
        goes_on: bool,
        outlet: &mut Outlet,
    ) -> Result<(), TailError> {
        self.take_torn_end(outlet);
        let Some(mut reading) = self.reading.take() else {
            return Ok(());
        };
        self.seen = None;
        if !goes_on {
            reading.end_series();
        }
        reading.note_skipped(outlet.measuring());
        outlet.end_to_follow(reading.inode());
        let finished = Update::Finished(self.path.clone(), Box::new(reading.position()));
        outlet.send(reading.flush(), Some(finished));
        self.offered = 0;
        if !goes_on {
            outlet.leave(&reading);
            self.previous = Some(SavedRun::of(reading.run()));
            self.previous_timezone = Some(reading.timezone().clone());
            outlet.tell_ended(reading.finish().1);
            return self.begin_next(&current, outlet);
        }
        let next = self.next_rotated(outlet);
        let is_rotated = next.is_some();
        let opened = next.unwrap_or(current);
        outlet.begin_to_follow(opened.1);
        reading.continue_in(opened);
        self.reading = Some(reading);
        self.read_on(outlet)?;
        self.look_again_if(is_rotated);
        Ok(())
    }

    /// Begins a run in the next file that holds one.
    fn begin_next(&mut self, current: &(File, Inode), outlet: &mut Outlet) -> Result<(), TailError> {
        while let Some(opened) = self.next_rotated(outlet) {
            if self.begin_rotated(opened, outlet) {
                self.read_on(outlet)?;
                self.look_again_if(true);
                return Ok(());
            }
        }
        let metadata = current
            .0
            .metadata()
            .map_err(|error| TailError::open(&self.path, error))?;
        self.begin(&metadata, outlet)
    }

    /// A log that was emptied was copied before by some: what was written since the last look is in the copy. Returns whether
    /// there is one.
    fn read_copy(&mut self, outlet: &mut Outlet) -> Result<bool, TailError> {
        let Some(reading) = &mut self.reading else {
            return Ok(false);
        };
        let Some((file, inode)) = rotated::copy_of(&self.path, &reading.identity(), reading.read_to()) else {
            return Ok(false);
        };
        outlet.end_to_follow(reading.inode());
        outlet.begin_to_follow(inode);
        reading.go_on_in_copy(file, inode);
        while let Outcome::More = reading
            .read_on(BUDGET_BYTES, |batches| outlet.send(batches, None))
            .map_err(|source| TailError::Read {
                name: self.path.display().to_string(),
                offset: reading.read_to(),
                source,
            })?
        {}
        Ok(true)
    }

    /// Notes the files that came after the one that is read.
    pub(super) fn queue_rotated_now(&mut self, outlet: &mut Outlet) {
        if let Some(reading) = &self.reading {
            let (identity, modified) = (reading.identity(), reading.modified_unix_nanos());
            self.queue_rotated(&identity, modified, outlet);
        }
    }

    /// Notes the files that came after this one, which was last written to then. They are ours from now on,
    /// also where their names are followed too. Of compressed ones it is said that they are not read.
    pub(super) fn queue_rotated(
        &mut self,
        identity: &FileIdentity,
        modified_unix_nanos: u64,
        outlet: &mut Outlet,
    ) {
        for rotated in rotated::after(&self.path, identity, modified_unix_nanos) {
            if rotated.is_compressed {
                if self.told_compressed.insert(rotated.inode) {
                    outlet.tell_problem(TailError::RotatedAway { path: rotated.path });
                }
            } else if !outlet.is_followed(rotated.inode) && !outlet.is_finished_at(&rotated.path) {
                outlet.begin_to_follow(rotated.inode);
                self.rotated.push_back(rotated.inode);
            }
        }
    }

    /// The next of the files that were noted, under whatever name it has by now.
    pub(super) fn next_rotated(&mut self, outlet: &mut Outlet) -> Option<(File, Inode)> {
        while let Some(inode) = self.rotated.pop_front() {
            match rotated::open_by_inode(&self.path, inode) {
                Some(opened) => return Some(opened),
                None => outlet.end_to_follow(inode),
            }
        }
        None
    }

    fn look_again_if(&mut self, is_rotated: bool) {
        if is_rotated {
            self.next = Next::Read;
        }
    }
}
