//! Files that their writer rewrites with all earlier records stay one run: only new items are emitted, also after a restart.

use std::fs::File;

use pulsetrain_formats::LogFormat;

use super::{FollowedFile, NextAction, file_stat::read_head, open::FOLLOWED_BEFORE};
use crate::{
    TailError,
    follow::{
        checkpoint_store::FileCheckpoint, context::TailContext, identity::Inode, run_reader::RunReader,
    },
};

impl FollowedFile {
    /// Resumes from a checkpoint if the file is one that its writer rewrites. Returns whether it is. If the head is too short to
    /// identify the run, the file waits for more.
    pub(super) fn resume_rewritten(
        &mut self,
        checkpoint: &FileCheckpoint,
        format: &'static LogFormat,
        opened: &(File, Inode),
        context: &mut TailContext,
    ) -> Result<bool, TailError> {
        let options = context.options();
        let run = checkpoint.run.resumed(options, &self.path);
        let file = self.cloned(opened)?;
        let reader = RunReader::new(&self.path, file, (format, FOLLOWED_BEFORE), options, run);
        let mut reader = reader.in_timezone(checkpoint.timezone(options));
        if !reader.restore_emitted(checkpoint) || !reader.is_rewritten() {
            return Ok(false);
        }
        let head = read_head(&opened.0).map_err(|error| self.read_error(error))?;
        match reader.is_of_run(&head) {
            None => {}
            Some(true) => {
                context.report_opened(&reader, checkpoint.offset);
                self.reader = Some(Box::new(reader));
            }
            Some(false) => {
                self.previous = Some(checkpoint.run.clone());
                self.previous_timezone = Some(reader.timezone());
                self.reader = self.new_reader(self.cloned(opened)?, false, context)?;
            }
        }
        Ok(true)
    }

    /// Reads a rewritten file from its beginning, or starts another run. If its writer has only just started, the file waits for the
    /// next change.
    pub(super) fn reread(&mut self, context: &mut TailContext) -> Result<(), TailError> {
        let opened = self.open()?;
        let head = read_head(&opened.0).map_err(|error| self.read_error(error))?;
        let Some(reader) = &mut self.reader else {
            return Ok(());
        };
        match reader.is_of_run(&head) {
            None => {
                self.next = NextAction::Wait;
                Ok(())
            }
            Some(true) => {
                context.untrack(reader.inode());
                context.track(opened.1);
                reader.restart_in(opened);
                self.read_appended(context)
            }
            Some(false) => self.switch_to(opened, false, context),
        }
    }

    fn cloned(&self, (file, inode): &(File, Inode)) -> Result<(File, Inode), TailError> {
        let file = file.try_clone().map_err(|error| self.read_error(error))?;
        Ok((file, *inode))
    }
}
