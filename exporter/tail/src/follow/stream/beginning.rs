//! How a stream begins to read: where an earlier follower ended, in whichever file that is by now, or at the beginning of a
//! run that nobody has read yet.

use std::fs::{File, Metadata};

use pulsetrain_formats::{FormatError, HEAD_BYTES, LogFormat, format_by_name, without_mark};

use super::{
    super::{
        candidates::find_renamed, identity::Inode, outlet::Outlet, reading::Reading, rotated,
        saved::FilePosition,
    },
    Next, Stream,
    seen::{Seen, head_of, is_silent},
};
use crate::{TailError, event_files::options_of_file, import::choose};
use pulsetrain_record::Run;

impl Stream {
    /// Begins to read what stands at the path.
    pub(super) fn begin(&mut self, metadata: &Metadata, outlet: &mut Outlet) -> Result<(), TailError> {
        let seen = Some(Seen::of(metadata));
        if self.seen == seen && !outlet.is_ending() {
            return Ok(());
        }
        let opened = self.open()?;
        self.seen = seen;
        let is_known = outlet.is_followed(opened.1)
            || outlet
                .is_finished(&opened.0)
                .map_err(|error| self.unreadable(error))?;
        if is_known {
            return Ok(());
        }
        let position = outlet.position_of(&self.path).filter(|_| !self.is_begun);
        match position {
            Some(position) => self.resume(&position, opened, outlet)?,
            None => self.reading = self.fresh(opened, false, outlet)?,
        }
        let Some(reading) = &self.reading else {
            return Ok(());
        };
        self.is_begun = true;
        let inode = reading.inode();
        outlet.begin_to_follow(inode);
        let is_rotated = inode != Inode::of(metadata);
        if is_rotated {
            self.queue_rotated_now(outlet);
        }
        self.read_on(outlet)?;
        if is_rotated {
            // There is more to read: the files that came after it.
            self.next = Next::Read;
        }
        Ok(())
    }

    /// Begins to read a rotated file as a run of its own; says whether it holds one.
    pub(super) fn begin_rotated(&mut self, opened: (File, Inode), outlet: &mut Outlet) -> bool {
        match self.fresh(opened, true, outlet) {
            Ok(reading) => self.reading = reading,
            Err(error) => outlet.tell_problem(error),
        }
        self.reading.is_some()
    }

    /// Goes on where an earlier follower ended: in the file that has the name, or that had it before, or in a copy of it.
    fn resume(
        &mut self,
        position: &FilePosition,
        opened: (File, Inode),
        outlet: &mut Outlet,
    ) -> Result<(), TailError> {
        let format = format_by_name(&position.format).ok();
        if let Some(format) = format
            && self.resume_anew(position, format, &opened, outlet)?
        {
            return Ok(());
        }
        let is_same = position
            .identity
            .is_of(&opened.0)
            .map_err(|error| self.unreadable(error))?;
        let opened_at = if is_same {
            Some(opened)
        } else {
            find_renamed(&self.path, &position.identity)
                .or_else(|| rotated::copy_of(&self.path, &position.identity, position.offset))
        };
        let (Some(opened_at), Some(format)) = (opened_at, format) else {
            return self.begin_after(position, outlet);
        };
        let options = outlet.options();
        let (run, sign) = (
            position.run.resumed(options, &self.path),
            "it was followed before",
        );
        let reading = Reading::new(&self.path, opened_at, (format, sign), &options.mapping, run);
        let mut reading = reading.in_timezone(position.timezone(options));
        match reading.replay(position) {
            Ok(()) => {
                outlet.tell_opened(&reading, position.offset);
                self.offered = position.offset;
                self.reading = Some(Box::new(reading));
                Ok(())
            }
            Err(_) => self.begin_after(position, outlet),
        }
    }

    /// The file of a position is gone. The one that came after it begins a new run, or goes on with the old one.
    fn begin_after(&mut self, position: &FilePosition, outlet: &mut Outlet) -> Result<(), TailError> {
        self.previous = Some(position.run.clone());
        self.previous_timezone.clone_from(&position.timezone);
        self.queue_rotated(&position.identity, position.modified_unix_nanos, outlet);
        let format = format_by_name(&position.format).ok();
        let goes_on = format.filter(|format| format.shrinks);
        let Some(format) = goes_on else {
            while let Some(opened) = self.next_rotated(outlet) {
                if self.begin_rotated(opened, outlet) {
                    return Ok(());
                }
            }
            self.reading = self.fresh(self.open()?, false, outlet)?;
            return Ok(());
        };
        let next = self.next_rotated(outlet);
        let is_rotated = next.is_some();
        let opened = match next {
            Some(opened) => opened,
            None => self.open()?,
        };
        let is_emptied = !is_rotated && opened.1 == position.identity.inode;
        let options = outlet.options();
        let (run, sign) = (
            position.run.resumed(options, &self.path),
            "it was followed before",
        );
        let reading = Reading::new(&self.path, opened, (format, sign), &options.mapping, run);
        let mut reading = reading.in_timezone(position.timezone(options));
        reading.restart_sums();
        reading.restore_attempts(&position.attempts.now);
        if is_emptied {
            reading.expect_restart();
        }
        if reading.is_written_anew() {
            outlet.tell_problem(TailError::ToldUnknown {
                path: self.path.clone(),
            });
        }
        outlet.tell_opened(&reading, 0);
        self.reading = Some(Box::new(reading));
        Ok(())
    }

    /// A run that nobody has read yet; nothing where its first bytes do not say enough of it yet. More is not said where
    /// the file `is_over`.
    pub(super) fn fresh(
        &self,
        opened: (File, Inode),
        is_over: bool,
        outlet: &mut Outlet,
    ) -> Result<Option<Box<Reading>>, TailError> {
        let head = head_of(&opened.0).map_err(|error| self.unreadable(error))?;
        let metadata = opened.0.metadata().map_err(|error| self.unreadable(error))?;
        let Some(format) = self.format_of(&head, outlet)? else {
            return Ok(None);
        };
        let timezone = self.timezone_of(&opened.0, &metadata, outlet);
        let identity = format
            .0
            .identity(without_mark(&head), &outlet.options().mapping)
            .in_timezone(&timezone);
        let is_whole = is_over || head.len() >= HEAD_BYTES || outlet.is_ending() || is_silent(&metadata);
        if identity.first_record.is_empty() || (identity.may_grow && !is_whole) {
            return Ok(None);
        }
        let path = self.path.display().to_string();
        let options = options_of_file(&self.path, outlet.options());
        let mut run = options.run(format.0, identity, &path);
        run.attempt = run.attempt.max(self.attempt_of(&run));
        outlet.check_rank(&path);
        let reading = Reading::new(&self.path, opened, format, &outlet.options().mapping, run);
        let mut reading = reading.in_timezone(timezone);
        reading.share_told(outlet);
        outlet.tell_opened(&reading, 0);
        Ok(Some(Box::new(reading)))
    }

    /// The format; nothing where the first bytes do not tell it yet.
    fn format_of(
        &self,
        head: &[u8],
        outlet: &Outlet,
    ) -> Result<Option<(&'static LogFormat, &'static str)>, TailError> {
        match choose(&self.path.display().to_string(), outlet.options().format, head) {
            Ok(chosen) => Ok(Some(chosen)),
            Err(error @ TailError::Format(FormatError::Compressed { .. } | FormatError::Utf16 { .. })) => {
                Err(error)
            }
            Err(_) if head.len() < HEAD_BYTES => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// A run of the same id that began before in this path was an earlier attempt.
    fn attempt_of(&self, run: &Run) -> i64 {
        let same = self.previous.as_ref().filter(|previous| previous.id == run.id);
        same.map_or(0, |previous| previous.attempt + 1)
    }
}
