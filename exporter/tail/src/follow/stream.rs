//! One followed path: what stands there, what was read of it, and what became of it since the last look.
//!
//! A look compares the file with what was read (`seen`). There is something new to begin with: `beginning`. It has grown: read
//! on. It is shorter, or begins otherwise, or another file has its name: it is over, and `turnover` finds what comes next.

mod anew;
mod beginning;
mod failed;
mod seen;
mod timezone;
mod turnover;

use std::{
    collections::{HashSet, VecDeque},
    fs::{File, Metadata},
    io,
    path::{Path, PathBuf},
};

use pulsetrain_pipeline::clock;

use self::seen::{Seen, is_silent};
use super::{
    candidates::open,
    identity::Inode,
    outlet::Outlet,
    positions::Update,
    reading::{Outcome, Reading},
    saved::SavedRun,
};
use crate::TailError;
use pulsetrain_record::UsedTimezone;

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
    /// The zone of that run's times without one.
    previous_timezone: Option<UsedTimezone>,
    /// Files that were rotated after the one that is read, the oldest first: they come next.
    rotated: VecDeque<Inode>,
    /// Compressed files of which it was told that they are not read.
    told_compressed: HashSet<Inode>,
    /// What the file was like at the last look.
    seen: Option<Seen>,
    /// What the file was like when its parser panicked: it is not read any further.
    failed: Option<Seen>,
    /// What is delivered or on its way.
    offered: u64,
    next: Next,
    /// The trouble that was told last, so that it is told once.
    told: Option<String>,
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
            previous_timezone: None,
            rotated: VecDeque::new(),
            told_compressed: HashSet::new(),
            seen: None,
            failed: None,
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
        if outlet.is_closed() {
            return;
        }
        let began = clock::now();
        let looked = self.look_guarded(outlet);
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
        if outlet.finishes_at_stop() {
            self.take_torn_end(outlet);
        }
        let Some(mut reading) = self.reading.take() else {
            return;
        };
        reading.note_skipped(outlet.measuring());
        outlet.leave(&reading);
        let position = Update::Read(self.path, Box::new(reading.position()));
        let (batches, report) = reading.finish();
        outlet.send(batches, Some(position));
        outlet.tell_ended(report);
    }

    fn try_look(&mut self, outlet: &mut Outlet) -> Result<(), TailError> {
        let metadata = match self.path.metadata() {
            Ok(metadata) => Some(metadata),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(TailError::open(&self.path, error)),
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

    fn read_changed(&mut self, metadata: &Metadata, outlet: &mut Outlet) -> Result<(), TailError> {
        let seen = Some(Seen::of(metadata));
        if self.next == Next::Change && self.seen == seen {
            self.release_in_silence(metadata, outlet);
            return Ok(());
        }
        self.seen = seen;
        self.read_on(outlet)
    }

    /// Sends what waits for more, where nothing more has come for long.
    fn release_in_silence(&mut self, metadata: &Metadata, outlet: &mut Outlet) {
        if let Some(reading) = &mut self.reading
            && reading.holds_records()
            && is_silent(metadata)
        {
            reading.release();
            self.flush(outlet);
        }
    }

    fn read_on(&mut self, outlet: &mut Outlet) -> Result<(), TailError> {
        let Some(reading) = &mut self.reading else {
            return Ok(());
        };
        outlet.measuring().note_reading();
        // What others are to know of it is read and sent before they have their turn.
        let shares_told = reading.shares_told();
        let budget = if shares_told { usize::MAX } else { BUDGET_BYTES };
        let outcome = reading.read_on(budget, |batches| outlet.send(batches, None));
        reading.note_skipped(outlet.measuring());
        outlet.claim(reading);
        let outcome = outcome.map_err(|source| {
            reading.close_handle();
            TailError::Read {
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
            _ if outlet.has_room() || shares_told => Next::Change,
            _ => Next::Flush,
        };
        if outlet.has_room() || shares_told {
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
        outlet.send(batches, Some(Update::Read(self.path.clone(), Box::new(position))));
    }

    fn open(&self) -> Result<(File, Inode), TailError> {
        open(&self.path).map_err(|error| TailError::open(&self.path, error))
    }

    fn unreadable(&self, source: io::Error) -> TailError {
        TailError::Read {
            name: self.path.display().to_string(),
            offset: 0,
            source,
        }
    }
}
