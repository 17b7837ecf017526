//! Rotation and truncation: the rest of the old file is read under any name, then the files that were rotated after it, then the
//! file that has the name.

use std::fs::{File, Metadata};

use pulsetrain_otlp::UnixNanos;

use super::{
    super::{
        candidates::find_renamed,
        checkpoint_store::RunCheckpoint,
        checkpointer::CheckpointUpdate,
        context::TailContext,
        identity::{FileIdentity, Inode},
        rotated,
        run_reader::{ReadOutcome, RunReader},
    },
    BUDGET_BYTES, FollowedFile, NextAction,
};
use crate::TailError;

impl FollowedFile {
    /// Handles a name that belongs to another file. The old file ends when its writer has started to write to the new one.
    pub(super) fn handle_rename(
        &mut self,
        metadata: &Metadata,
        context: &mut TailContext,
    ) -> Result<(), TailError> {
        self.read_renamed(context)?;
        if self.next == NextAction::Read {
            return Ok(());
        }
        self.queue_newer_files(context);
        if metadata.len() == 0 && self.rotated.is_empty() {
            return Ok(());
        }
        self.handle_truncation(context)
    }

    /// Reads the rest of a renamed file. A deleted file has no rest.
    fn read_renamed(&mut self, context: &mut TailContext) -> Result<(), TailError> {
        let Some(reader) = &mut self.reader else {
            return Ok(());
        };
        if !reader.has_handle() {
            match find_renamed(&self.path, &reader.identity()) {
                Some(renamed) => reader.set_handle(renamed.0),
                None => return Ok(()),
            }
        }
        self.read_appended(context)
    }

    /// Handles a file that no longer holds the bytes that were read. The next file starts a new run, or continues the old one.
    pub(super) fn handle_truncation(&mut self, context: &mut TailContext) -> Result<(), TailError> {
        if self.reader().is_some_and(RunReader::is_rewritten) {
            return self.reread(context);
        }
        let current = self.open()?;
        let is_copied = self.read_copy(context)?;
        self.queue_newer_files(context);
        let continues = self.reader().is_some_and(RunReader::continues_after_truncate);
        if let Some(reader) = &mut self.reader
            && !is_copied
            && self.rotated.is_empty()
            && reader.inode() == current.1
        {
            reader.expect_restart();
        }
        self.switch_to(current, continues, context)
    }

    /// Ends the current file. The next file continues its run or starts a new one.
    pub(super) fn switch_to(
        &mut self,
        current: (File, Inode),
        continues: bool,
        context: &mut TailContext,
    ) -> Result<(), TailError> {
        self.read_partial_end(context);
        let Some(mut reader) = self.reader.take() else {
            return Ok(());
        };
        self.last_stat = None;
        if !continues {
            reader.end_series();
        }
        reader.count_skipped(context.meter());
        context.untrack(reader.inode());
        let finished = CheckpointUpdate::Finished(self.path.clone(), Box::new(reader.checkpoint()));
        context.send(reader.flush(), finished);
        self.sent_offset = 0;
        if !continues {
            context.release_claims(&reader);
            self.previous = Some(RunCheckpoint::new(reader.run()));
            self.previous_timezone = Some(reader.timezone());
            context.report_ended(reader.finish().1);
            return self.open_next(&current, context);
        }
        let next = self.next_rotated(context);
        let is_rotated = next.is_some();
        let opened = next.unwrap_or(current);
        context.track(opened.1);
        reader.continue_in(opened);
        self.reader = Some(reader);
        self.read_appended(context)?;
        self.schedule_read_if(is_rotated);
        Ok(())
    }

    /// Opens the run of the next file that holds one.
    fn open_next(&mut self, current: &(File, Inode), context: &mut TailContext) -> Result<(), TailError> {
        while let Some(opened) = self.next_rotated(context) {
            if self.open_rotated(opened, context) {
                self.read_appended(context)?;
                self.schedule_read_if(true);
                return Ok(());
            }
        }
        let metadata = current
            .0
            .metadata()
            .map_err(|error| TailError::open(&self.path, error))?;
        self.open_run(&metadata, context)
    }

    /// Reads the rest of a truncated file from its copy (`copytruncate`). Returns whether there is a copy.
    fn read_copy(&mut self, context: &mut TailContext) -> Result<bool, TailError> {
        let Some(reader) = &mut self.reader else {
            return Ok(false);
        };
        let Some((file, inode)) = rotated::copy_of(&self.path, &reader.identity(), reader.read_offset())
        else {
            return Ok(false);
        };
        context.untrack(reader.inode());
        context.track(inode);
        reader.switch_to_copy(file, inode);
        while let ReadOutcome::More = reader
            .read_appended(BUDGET_BYTES, |batches, checkpoint| {
                context.send(
                    batches,
                    CheckpointUpdate::Read(self.path.clone(), Box::new(checkpoint)),
                );
            })
            .map_err(|source| TailError::Read {
                name: self.path.display().to_string(),
                offset: reader.read_offset(),
                source,
            })?
        {}
        Ok(true)
    }

    /// Queues the files that were rotated after the one that is read.
    pub(super) fn queue_newer_files(&mut self, context: &mut TailContext) {
        if let Some(reader) = &self.reader {
            let (identity, modified) = (reader.identity(), reader.modified_unix_nanos());
            self.queue_rotated(&identity, modified, context);
        }
    }

    /// Queues the files that were rotated after a file with this identity and modification time. This path tracks them, even if
    /// their names are followed too. Compressed files are reported as unread.
    pub(super) fn queue_rotated(
        &mut self,
        identity: &FileIdentity,
        modified_unix_nanos: UnixNanos,
        context: &mut TailContext,
    ) {
        for rotated in rotated::after(&self.path, identity, modified_unix_nanos) {
            if rotated.is_compressed {
                if self.reported_compressed.insert(rotated.inode) {
                    context.report_problem(TailError::RotatedAway { path: rotated.path });
                }
            } else if !context.is_tracked(rotated.inode) && !context.is_finished_at(&rotated.path) {
                context.track(rotated.inode);
                self.rotated.push_back(rotated.inode);
            }
        }
    }

    /// Opens the next queued file under any name that it has now.
    pub(super) fn next_rotated(&mut self, context: &mut TailContext) -> Option<(File, Inode)> {
        while let Some(inode) = self.rotated.pop_front() {
            match rotated::open_by_inode(&self.path, inode) {
                Some(opened) => return Some(opened),
                None => context.untrack(inode),
            }
        }
        None
    }

    fn schedule_read_if(&mut self, is_rotated: bool) {
        if is_rotated {
            self.next = NextAction::Read;
        }
    }
}
