//! Opens a run: resumes from a checkpoint, under any name that the file has now, or starts a new run.

use std::fs::{File, Metadata};

use pulsetrain_formats::{FormatError, HEAD_BYTES, LogFormat, format_by_name, without_byte_order_mark};
use pulsetrain_otlp::UnixNanos;
use pulsetrain_record::Run;

use super::{
    super::{
        candidates::find_renamed, checkpoint_store::FileCheckpoint, context::TailContext, identity::Inode,
        rotated, run_reader::RunReader,
    },
    FollowedFile, NextAction,
    file_stat::{FileStat, is_silent, read_head},
};
use crate::{TailError, event_files::options_of_file, import::choose};

/// The signature of a format that comes from a checkpoint.
pub(super) const FOLLOWED_BEFORE: &str = "it was followed before";

impl FollowedFile {
    /// Opens the run in the file that has the name.
    pub(super) fn open_run(
        &mut self,
        metadata: &Metadata,
        context: &mut TailContext,
    ) -> Result<(), TailError> {
        let stat = Some(FileStat::from_metadata(metadata));
        if self.last_stat == stat && !context.is_shutting_down() {
            return Ok(());
        }
        let opened = self.open()?;
        self.last_stat = stat;
        let is_known = context.is_tracked(opened.1)
            || context
                .is_finished(&opened.0)
                .map_err(|error| self.read_error(error))?;
        if is_known {
            return Ok(());
        }
        let checkpoint = context.checkpoint_of(&self.path).filter(|_| !self.has_opened_run);
        match checkpoint {
            Some(checkpoint) => self.resume(&checkpoint, opened, context)?,
            None => self.reader = self.new_reader(opened, false, context)?,
        }
        let Some(reader) = &self.reader else {
            return Ok(());
        };
        self.has_opened_run = true;
        let inode = reader.inode();
        context.track(inode);
        let is_rotated = inode != Inode::from_metadata(metadata);
        if is_rotated {
            self.queue_newer_files(context);
        }
        self.read_appended(context)?;
        if is_rotated {
            // The files after this one are read next.
            self.next = NextAction::Read;
        }
        Ok(())
    }

    /// Opens a rotated file as a separate run. Returns whether the file holds a run.
    pub(super) fn open_rotated(&mut self, opened: (File, Inode), context: &mut TailContext) -> bool {
        match self.new_reader(opened, true, context) {
            Ok(reader) => self.reader = reader,
            Err(error) => context.report_problem(error),
        }
        self.reader.is_some()
    }

    /// Resumes from a checkpoint: in the file that has the name, in the file that had the name, or in a copy of it.
    fn resume(
        &mut self,
        checkpoint: &FileCheckpoint,
        opened: (File, Inode),
        context: &mut TailContext,
    ) -> Result<(), TailError> {
        let format = format_after(checkpoint, context);
        if let Some(format) = format
            && self.resume_rewritten(checkpoint, format, &opened, context)?
        {
            return Ok(());
        }
        let is_same = checkpoint
            .identity
            .is_of(&opened.0)
            .map_err(|error| self.read_error(error))?;
        let found = if is_same {
            Some(opened)
        } else {
            find_renamed(&self.path, &checkpoint.identity)
                .or_else(|| rotated::copy_of(&self.path, &checkpoint.identity, checkpoint.offset))
        };
        let (Some(found), Some(format)) = (found, format) else {
            return self.start_after(checkpoint, context);
        };
        let mut reader = self.resumed_reader(checkpoint, format, found, context);
        match reader.replay(checkpoint) {
            Ok(()) => {
                context.report_opened(&reader, checkpoint.offset);
                self.sent_offset = checkpoint.offset;
                self.reader = Some(Box::new(reader));
                Ok(())
            }
            Err(_) => self.start_after(checkpoint, context),
        }
    }

    /// Starts after a checkpoint whose file no longer exists. The file after it starts a new run, or continues the old one.
    fn start_after(
        &mut self,
        checkpoint: &FileCheckpoint,
        context: &mut TailContext,
    ) -> Result<(), TailError> {
        self.previous = Some(checkpoint.run.clone());
        self.previous_timezone.clone_from(&checkpoint.timezone);
        self.queue_rotated(
            &checkpoint.identity,
            UnixNanos(checkpoint.modified_unix_nanos),
            context,
        );
        let format = format_after(checkpoint, context);
        let Some(format) = format.filter(|format| format.continues_after_truncate) else {
            while let Some(opened) = self.next_rotated(context) {
                if self.open_rotated(opened, context) {
                    return Ok(());
                }
            }
            self.reader = self.new_reader(self.open()?, false, context)?;
            return Ok(());
        };
        let next = self.next_rotated(context);
        let is_rotated = next.is_some();
        let opened = match next {
            Some(opened) => opened,
            None => self.open()?,
        };
        let is_truncated = !is_rotated && opened.1 == checkpoint.identity.inode;
        let mut reader = self.resumed_reader(checkpoint, format, opened, context);
        reader.restart_sums();
        reader.restore_attempts(&checkpoint.attempts.now);
        if is_truncated {
            reader.expect_restart();
        }
        if reader.is_rewritten() {
            context.report_problem(TailError::RewrittenUnobserved {
                path: self.path.clone(),
            });
        }
        context.report_opened(&reader, 0);
        self.reader = Some(Box::new(reader));
        Ok(())
    }

    /// Returns a reader at the beginning of a file that continues the run of a checkpoint.
    fn resumed_reader(
        &self,
        checkpoint: &FileCheckpoint,
        format: &'static LogFormat,
        opened: (File, Inode),
        context: &TailContext,
    ) -> RunReader {
        let options = context.options();
        let run = checkpoint.run.resumed(options, &self.path);
        RunReader::new(&self.path, opened, (format, FOLLOWED_BEFORE), options, run)
            .in_timezone(checkpoint.timezone(options))
    }

    /// Returns a reader of a new run, or `None` if the head does not identify the run yet. The head of a complete file
    /// (`is_complete`) is used as it is.
    pub(super) fn new_reader(
        &self,
        opened: (File, Inode),
        is_complete: bool,
        context: &mut TailContext,
    ) -> Result<Option<Box<RunReader>>, TailError> {
        let head = read_head(&opened.0).map_err(|error| self.read_error(error))?;
        let metadata = opened.0.metadata().map_err(|error| self.read_error(error))?;
        let Some(format) = self.format_of(&head, context)? else {
            return Ok(None);
        };
        let timezone = self.timezone_of(&opened.0, &metadata, context);
        let header = format
            .0
            .run_header(without_byte_order_mark(&head), &context.options().mapping);
        let is_final =
            is_complete || head.len() >= HEAD_BYTES || context.is_shutting_down() || is_silent(&metadata);
        if header.first_record.is_empty() || (header.is_partial && !is_final) {
            return Ok(None);
        }
        let path = self.path.display().to_string();
        let options = options_of_file(&self.path, context.options());
        let mut run = options.run(format.0, header, &timezone, &path);
        run.attempt = run.attempt.max(self.attempt_of(&run));
        context.check_rank(&path);
        let reader = RunReader::new(&self.path, opened, format, context.options(), run);
        let mut reader = reader.in_timezone(timezone);
        reader.share_emitted(context);
        context.report_opened(&reader, 0);
        Ok(Some(Box::new(reader)))
    }

    /// Returns the format, or `None` if the head does not show it yet.
    fn format_of(
        &self,
        head: &[u8],
        context: &TailContext,
    ) -> Result<Option<(&'static LogFormat, &'static str)>, TailError> {
        match choose(
            &self.path.display().to_string(),
            context.options().chosen_format(),
            head,
        ) {
            Ok(chosen) => Ok(Some(chosen)),
            Err(error @ TailError::Format(FormatError::Compressed { .. } | FormatError::Utf16 { .. })) => {
                Err(error)
            }
            Err(_) if head.len() < HEAD_BYTES => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Returns the attempt after the previous run of this path if it has the same id.
    fn attempt_of(&self, run: &Run) -> i64 {
        let same = self.previous.as_ref().filter(|previous| previous.id == run.id);
        same.map_or(0, |previous| previous.attempt + 1)
    }
}

/// Returns the format to continue with: the user may name another one than before.
fn format_after(checkpoint: &FileCheckpoint, context: &TailContext) -> Option<&'static LogFormat> {
    let named = context.options().format;
    named.or_else(|| format_by_name(&checkpoint.format))
}
