//! One followed path: what stands there, what was read of it, and what became of it since the last look.
//!
//! A look compares the file with what was read. It has grown: read on. It is shorter, or begins otherwise: it was emptied.
//! Another file has its name: the old one is read to its end first.

use std::{
    fs::Metadata,
    io,
    path::{Path, PathBuf},
    time::{Duration, SystemTime},
};

use pulsetrain_pipeline::clock;

use super::{
    candidates::{find_renamed, open},
    identity::Inode,
    outlet::Outlet,
    positions::Update,
    reading::{Outcome, Reading},
    saved::{FilePosition, SavedRun},
};
use crate::{
    Run, SourceError,
    logs::{LogFormat, format_by_name, recognise, source},
    tensorboard::options_of_file,
};

/// How much of one file is read before the next one has its turn.
const BUDGET_BYTES: usize = 8 << 20;

/// A path that is followed.
pub(super) struct Stream {
    path: PathBuf,
    reading: Option<Box<Reading>>,
    /// Whether a run was read here: from then on the positions of an earlier follower are of the past.
    is_begun: bool,
    /// The run before, which ended in this path.
    previous: Option<SavedRun>,
    /// What the file was like at the last look.
    seen: Option<Seen>,
    /// What is delivered or on its way.
    offered: u64,
    next: Next,
    /// The trouble that was told last, so that it is told once.
    told: Option<String>,
}

/// What has not been written to for so long is taken as it is, even if more could be said of its run.
const PATIENCE: Duration = Duration::from_secs(30);

/// By what it is seen that a file has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Seen {
    inode: Inode,
    len: u64,
    modified: Option<SystemTime>,
}

/// What a stream needs next.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Next {
    /// Nothing until it changes.
    #[default]
    Change,
    /// To send what it has recorded, as soon as there is room.
    Flush,
    /// To read on.
    Read,
}

impl Stream {
    pub(super) fn new(path: PathBuf) -> Self {
        Self {
            path,
            reading: None,
            is_begun: false,
            previous: None,
            seen: None,
            offered: 0,
            next: Next::default(),
            told: None,
        }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn next(&self) -> Next {
        self.next
    }

    pub(super) fn reading(&self) -> Option<&Reading> {
        self.reading.as_deref()
    }

    /// By how many bytes it is behind its writer.
    pub(super) fn unread_bytes(&self) -> u64 {
        let read_to = self.reading.as_ref().map_or(0, |reading| reading.read_to());
        self.seen.map_or(0, |seen| seen.len.saturating_sub(read_to))
    }

    /// Looks at the path, and reads what is new there. Trouble is told once, and everything is tried again at the next look.
    pub(super) fn look(&mut self, outlet: &mut Outlet) {
        let began = clock::now();
        let looked = self.try_look(outlet);
        outlet
            .measuring()
            .end_look(began.elapsed(), looked.as_ref().err());
        match looked {
            Ok(()) => self.told = None,
            Err(error) => {
                self.next = Next::Change;
                self.seen = None;
                let message = error.to_string();
                if self.told.as_ref() != Some(&message) {
                    self.told = Some(message);
                    outlet.tell_problem(error);
                }
            }
        }
    }

    /// Gives the open file back, where nothing is to be read at the moment.
    pub(super) fn close_handle(&mut self) {
        if let Some(reading) = &mut self.reading
            && self.next == Next::Change
        {
            reading.close_handle();
        }
    }

    /// Ends the stream: what it has recorded goes out.
    pub(super) fn end(mut self, outlet: &mut Outlet) {
        let Some(mut reading) = self.reading.take() else {
            return;
        };
        if outlet.finishes_at_stop() {
            reading.take_torn_end();
        }
        reading.note_skipped(outlet.measuring());
        let position = Update::Read(self.path, Box::new(reading.position()));
        let (batches, report) = reading.finish();
        outlet.offer(batches, Some(position));
        outlet.tell_ended(report);
    }

    fn try_look(&mut self, outlet: &mut Outlet) -> Result<(), SourceError> {
        let metadata = match self.path.metadata() {
            Ok(metadata) => Some(metadata),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(SourceError::open(&self.path, error)),
        };
        let Some(reading) = &self.reading else {
            return metadata.map_or(Ok(()), |metadata| self.begin(&metadata, outlet));
        };
        let (inode, has_handle) = (reading.inode(), reading.has_handle());
        match metadata {
            Some(metadata) if metadata.is_file() && Inode::of(&metadata) == inode => {
                self.read_changed(&metadata, outlet)
            }
            Some(metadata) if metadata.is_file() => self.move_on(&metadata, outlet),
            // The name is gone: who has the file open may still write to it.
            None if has_handle => self.read_on(outlet),
            None => Ok(()),
            Some(_) => {
                self.read_on(outlet)?;
                self.open().map(drop)
            }
        }
    }

    fn read_changed(&mut self, metadata: &Metadata, outlet: &mut Outlet) -> Result<(), SourceError> {
        let seen = Some(Seen::of(metadata));
        if self.next == Next::Change && self.seen == seen {
            return Ok(());
        }
        self.seen = seen;
        self.read_on(outlet)
    }

    /// Another file has the name: the old one ends, but not before its writer has begun to write to the new one.
    fn move_on(&mut self, metadata: &Metadata, outlet: &mut Outlet) -> Result<(), SourceError> {
        self.read_renamed(outlet)?;
        if metadata.len() == 0 || self.next == Next::Read {
            return Ok(());
        }
        self.replace(outlet)
    }

    /// Reads on in the file that has lost its name; where it is gone altogether, what was read is all there is.
    fn read_renamed(&mut self, outlet: &mut Outlet) -> Result<(), SourceError> {
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

    /// What was read is over. The file that has the name now begins a new run, or goes on with the old one.
    fn replace(&mut self, outlet: &mut Outlet) -> Result<(), SourceError> {
        let opened = self.open()?;
        let Some(mut reading) = self.reading.take() else {
            return Ok(());
        };
        self.seen = None;
        reading.take_torn_end();
        reading.note_skipped(outlet.measuring());
        outlet.end_to_follow(reading.inode());
        let finished = Update::Finished(self.path.clone(), Box::new(reading.position()));
        outlet.offer(reading.flush(), Some(finished));
        self.offered = 0;
        if !reading.goes_on() {
            self.previous = Some(SavedRun::of(reading.run()));
            outlet.tell_ended(reading.finish().1);
            let metadata = opened
                .0
                .metadata()
                .map_err(|error| SourceError::open(&self.path, error))?;
            return self.begin(&metadata, outlet);
        }
        outlet.begin_to_follow(opened.1);
        reading.continue_in(opened);
        self.reading = Some(reading);
        self.read_on(outlet)
    }

    fn read_on(&mut self, outlet: &mut Outlet) -> Result<(), SourceError> {
        let Some(reading) = &mut self.reading else {
            return Ok(());
        };
        outlet.measuring().note_reading();
        let outcome = reading.read_on(BUDGET_BYTES, |batches| outlet.offer(batches, None));
        reading.note_skipped(outlet.measuring());
        let outcome = outcome.map_err(|source| {
            reading.close_handle();
            SourceError::Read {
                name: self.path.display().to_string(),
                offset: reading.read_to(),
                source,
            }
        })?;
        if outcome == Outcome::Replaced {
            return self.replace(outlet);
        }
        self.next = match outcome {
            Outcome::More => Next::Read,
            _ if outlet.has_room() => Next::Change,
            _ => Next::Flush,
        };
        if outlet.has_room() {
            self.flush(outlet);
        }
        Ok(())
    }

    /// Sends what is recorded; the position counts when it has arrived.
    fn flush(&mut self, outlet: &mut Outlet) {
        let Some(reading) = &mut self.reading else { return };
        let batches = reading.flush();
        let position = reading.position();
        if batches.is_empty() && position.offset == self.offered {
            return;
        }
        self.offered = position.offset;
        outlet.offer(batches, Some(Update::Read(self.path.clone(), Box::new(position))));
    }

    /// Begins to read what stands at the path: where an earlier follower ended, or at its beginning.
    fn begin(&mut self, metadata: &Metadata, outlet: &mut Outlet) -> Result<(), SourceError> {
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
            None => self.reading = self.fresh(opened, outlet)?,
        }
        let Some(reading) = &self.reading else {
            return Ok(());
        };
        self.is_begun = true;
        outlet.begin_to_follow(reading.inode());
        let is_renamed = reading.inode() != Inode::of(metadata);
        self.read_on(outlet)?;
        if is_renamed {
            // There is more to read: the file that has the name now.
            self.next = Next::Read;
        }
        Ok(())
    }

    /// Goes on where an earlier follower ended.
    fn resume(
        &mut self,
        position: &FilePosition,
        opened: (std::fs::File, Inode),
        outlet: &mut Outlet,
    ) -> Result<(), SourceError> {
        let is_same = position
            .identity
            .is_of(&opened.0)
            .map_err(|error| self.unreadable(error))?;
        let opened_at = if is_same {
            Some(opened)
        } else {
            find_renamed(&self.path, &position.identity)
        };
        let format = format_by_name(&position.format).ok();
        let (Some(opened_at), Some(format)) = (opened_at, format) else {
            return self.begin_after(position, outlet);
        };
        let options = outlet.options();
        let (run, sign) = (position.run.resumed(options), "it was followed before");
        let mut reading = Reading::new(&self.path, opened_at, (format, sign), &options.mapping, run);
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

    /// The file of a position is gone. The one that is there instead begins a new run, or goes on with the old one.
    fn begin_after(&mut self, position: &FilePosition, outlet: &mut Outlet) -> Result<(), SourceError> {
        self.previous = Some(position.run.clone());
        let opened = self.open()?;
        let format = format_by_name(&position.format).ok();
        let goes_on = format.filter(|format| format.shrinks);
        let Some(format) = goes_on else {
            self.reading = self.fresh(opened, outlet)?;
            return Ok(());
        };
        let options = outlet.options();
        let (run, sign) = (position.run.resumed(options), "it was followed before");
        let mut reading = Reading::new(&self.path, opened, (format, sign), &options.mapping, run);
        reading.restart_sums();
        outlet.tell_opened(&reading, 0);
        self.reading = Some(Box::new(reading));
        Ok(())
    }

    /// A run that nobody has read yet; nothing where its first bytes do not say enough of it yet.
    fn fresh(
        &self,
        opened: (std::fs::File, Inode),
        outlet: &mut Outlet,
    ) -> Result<Option<Box<Reading>>, SourceError> {
        let head = head_of(&opened.0).map_err(|error| self.unreadable(error))?;
        let metadata = opened.0.metadata().map_err(|error| self.unreadable(error))?;
        let Some(format) = self.format_of(&head, outlet)? else {
            return Ok(None);
        };
        let identity = (format.0.identify)(&head);
        let is_whole = head.len() >= source::HEAD_BYTES || outlet.is_ending() || is_silent(&metadata);
        if identity.first_record.is_empty() || (identity.may_grow && !is_whole) {
            return Ok(None);
        }
        let path = self.path.display().to_string();
        let options = options_of_file(&self.path, outlet.options());
        let mut run = source::run(format.0, identity, &options, &path);
        run.attempt = self.attempt_of(&run);
        let reading = Reading::new(&self.path, opened, format, &outlet.options().mapping, run);
        outlet.tell_opened(&reading, 0);
        Ok(Some(Box::new(reading)))
    }

    /// The format; nothing where the first bytes do not tell it yet.
    fn format_of(
        &self,
        head: &[u8],
        outlet: &Outlet,
    ) -> Result<Option<(&'static LogFormat, &'static str)>, SourceError> {
        if let Some(format) = outlet.options().format {
            return Ok(Some((format, "named by --format")));
        }
        match recognise(&self.path.display().to_string(), head) {
            Ok(recognised) => Ok(Some(recognised)),
            Err(_) if head.len() < source::HEAD_BYTES => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// A run of the same id that began before in this path was an earlier attempt.
    fn attempt_of(&self, run: &Run) -> i64 {
        let same = self.previous.as_ref().filter(|previous| previous.id == run.id);
        same.map_or(0, |previous| previous.attempt + 1)
    }

    fn open(&self) -> Result<(std::fs::File, Inode), SourceError> {
        open(&self.path).map_err(|error| SourceError::open(&self.path, error))
    }

    fn unreadable(&self, source: io::Error) -> SourceError {
        SourceError::Read {
            name: self.path.display().to_string(),
            offset: 0,
            source,
        }
    }
}

impl Seen {
    fn of(metadata: &Metadata) -> Self {
        Self {
            inode: Inode::of(metadata),
            len: metadata.len(),
            modified: metadata.modified().ok(),
        }
    }
}

fn is_silent(metadata: &Metadata) -> bool {
    let since = metadata.modified().map(|modified| modified.elapsed());
    since.is_ok_and(|since| since.is_ok_and(|since| since >= PATIENCE))
}

/// The first bytes of a file: so many that format and run can be told, where there are so many.
fn head_of(file: &std::fs::File) -> io::Result<Vec<u8>> {
    use std::os::unix::fs::FileExt;

    let mut head = vec![0; source::HEAD_BYTES];
    let mut len = 0;
    while len < head.len() {
        match file.read_at(&mut head[len..], len as u64) {
            Ok(0) => break,
            Ok(count) => len += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    head.truncate(len);
    Ok(head)
}
