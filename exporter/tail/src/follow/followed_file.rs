//! One followed path: the file that has the name, the reader of its run, and the state of the last poll.
//!
//! A poll compares the file with the last one (`file_stat`). A new run is opened (`open`), and appended bytes are read. If the file
//! is shorter, holds other bytes or belongs to another inode, `rotation` determines the next file. A file that its writer rewrites
//! is read again (`rewrite`). A parser that panics ends its file (`failure`).

mod failure;
mod file_stat;
mod open;
mod rewrite;
mod rotation;
mod timezone;

use std::{
    collections::{HashSet, VecDeque},
    fs::{File, Metadata},
    io,
    path::{Path, PathBuf},
};

use pulsetrain_pipeline::clock::{self, Instant};
use pulsetrain_record::UsedTimezone;

use self::file_stat::{FileStat, is_silent};
use super::{
    candidates::open,
    checkpoint_store::RunCheckpoint,
    checkpointer::CheckpointUpdate,
    context::TailContext,
    identity::Inode,
    links::{self, LinkPolicy},
    run_reader::{ReadOutcome, RunReader},
    status::{LogState, LogStatus},
};
use crate::TailError;

/// The number of bytes of one file that are read before the next file has its turn.
const BUDGET_BYTES: usize = 8 << 20;

/// The error of a file whose parser panicked, after the report of the panic.
const PANICKED: &str = "its parser panicked; it is not read until it is truncated or replaced";

/// A path that is followed.
pub(super) struct FollowedFile {
    path: PathBuf,
    links: LinkPolicy,
    reader: Option<Box<RunReader>>,
    /// Whether a run was opened here. Later files ignore the checkpoint of the path.
    has_opened_run: bool,
    /// The previous run, which ended in this path.
    previous: Option<RunCheckpoint>,
    /// The zone of the previous run's times without one.
    previous_timezone: Option<UsedTimezone>,
    /// Files that were rotated after the one that is read, the oldest first. They are read next.
    rotated: VecDeque<Inode>,
    /// Compressed files that were reported as unread.
    reported_compressed: HashSet<Inode>,
    /// The file at the last poll.
    last_stat: Option<FileStat>,
    /// The file when its parser panicked. It is not read any further.
    failed_stat: Option<FileStat>,
    /// The offset of the last checkpoint that was sent.
    sent_offset: u64,
    next: NextAction,
    /// The problem that was reported last, so that it is reported once.
    reported_problem: Option<String>,
    /// The time of the last poll after which all records were read and sent.
    caught_up: Option<Instant>,
}

/// The next action of a followed file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum NextAction {
    /// Wait for a change.
    #[default]
    Wait,
    /// Send recorded data as soon as the sinks have room.
    Flush,
    /// Read more bytes.
    Read,
}

impl FollowedFile {
    pub(super) fn new(path: PathBuf, links: LinkPolicy) -> Self {
        Self {
            path,
            links,
            reader: None,
            has_opened_run: false,
            previous: None,
            previous_timezone: None,
            rotated: VecDeque::new(),
            reported_compressed: HashSet::new(),
            last_stat: None,
            failed_stat: None,
            sent_offset: 0,
            next: NextAction::default(),
            reported_problem: None,
            caught_up: None,
        }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn next(&self) -> NextAction {
        self.next
    }

    pub(super) fn reader(&self) -> Option<&RunReader> {
        self.reader.as_deref()
    }

    /// Returns the number of bytes in the file that are not read yet.
    pub(super) fn unread_bytes(&self) -> u64 {
        let read_offset = self.reader.as_ref().map_or(0, |reader| reader.read_offset());
        self.last_stat
            .map_or(0, |stat| stat.len.saturating_sub(read_offset))
    }

    /// Polls the path and reads new bytes. A persistent problem is reported once, and every poll retries.
    pub(super) fn poll(&mut self, context: &mut TailContext) {
        if context.is_closed() {
            return;
        }
        let began = clock::now();
        let polled = self.poll_guarded(context);
        context.meter().end_poll(began.elapsed(), polled.as_ref().err());
        match polled {
            Ok(()) => {
                self.reported_problem = None;
                if self.state() == LogState::UpToDate {
                    self.caught_up = Some(clock::now());
                }
            }
            Err(error) => {
                self.next = NextAction::Wait;
                self.last_stat = None;
                let message = error.to_string();
                if self.reported_problem.as_ref() != Some(&message) {
                    self.reported_problem = Some(message);
                    context.report_problem(error);
                }
            }
        }
    }

    /// Returns the status after the last poll.
    pub(super) fn status(&self) -> LogStatus {
        let panicked = self.failed_stat.map(|_| PANICKED.to_owned());
        LogStatus {
            path: self.path.clone(),
            state: self.state(),
            error: self.reported_problem.clone().or(panicked),
            unread_bytes: self.unread_bytes(),
            caught_up: self.caught_up,
        }
    }

    fn state(&self) -> LogState {
        match (&self.reader, self.next) {
            _ if self.reported_problem.is_some() || self.failed_stat.is_some() => LogState::Failing,
            (None, _) => LogState::Waiting,
            (Some(_), NextAction::Wait) => LogState::UpToDate,
            (Some(_), NextAction::Flush | NextAction::Read) => LogState::Lagging,
        }
    }

    pub(super) fn has_handle(&self) -> bool {
        self.reader().is_some_and(RunReader::has_handle)
    }

    /// Sets the links that the path may have.
    pub(super) fn set_links(&mut self, links: LinkPolicy) {
        self.links = links;
    }

    /// Closes the open file if there is nothing to read.
    pub(super) fn close_handle(&mut self) {
        if let Some(reader) = &mut self.reader
            && self.next != NextAction::Read
        {
            reader.close_handle();
        }
    }

    /// Stops following and sends all recorded data.
    pub(super) fn finish(mut self, context: &mut TailContext) {
        if context.finishes_at_stop() {
            self.read_partial_end(context);
        }
        let Some(mut reader) = self.reader.take() else {
            return;
        };
        reader.count_skipped(context.meter());
        context.release_claims(&reader);
        let update = CheckpointUpdate::Read(self.path, Box::new(reader.checkpoint()));
        let (batches, report) = reader.finish();
        context.send(batches, update);
        context.report_ended(report);
    }

    fn try_poll(&mut self, context: &mut TailContext) -> Result<(), TailError> {
        let metadata = match self.path.metadata() {
            Ok(metadata) => Some(metadata),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(TailError::open(&self.path, error)),
        };
        let Some(reader) = &self.reader else {
            return metadata.map_or(Ok(()), |metadata| self.open_run(&metadata, context));
        };
        let (inode, has_handle) = (reader.inode(), reader.has_handle());
        match metadata {
            Some(metadata) if metadata.is_file() && Inode::from_metadata(&metadata) == inode => {
                self.read_changed(&metadata, context)
            }
            Some(metadata) if metadata.is_file() => self.handle_rename(&metadata, context),
            // A process that has the deleted file open may still write to it.
            None if has_handle => self.read_appended(context),
            None => Ok(()),
            Some(_) => {
                self.read_appended(context)?;
                self.open().map(drop)
            }
        }
    }

    fn read_changed(&mut self, metadata: &Metadata, context: &mut TailContext) -> Result<(), TailError> {
        let stat = Some(FileStat::from_metadata(metadata));
        if self.next == NextAction::Wait && self.last_stat == stat {
            self.flush_if_silent(metadata, context);
            return Ok(());
        }
        self.last_stat = stat;
        self.read_appended(context)
    }

    /// Sends buffered records if the file has been silent for long.
    fn flush_if_silent(&mut self, metadata: &Metadata, context: &mut TailContext) {
        if let Some(reader) = &mut self.reader
            && reader.has_buffered()
            && is_silent(metadata)
        {
            reader.flush_buffered();
            self.flush(context);
        }
    }

    fn read_appended(&mut self, context: &mut TailContext) -> Result<(), TailError> {
        let Some(reader) = &mut self.reader else {
            return Ok(());
        };
        context.meter().record_read();
        // Items that other files repeat are read and sent before those files are read.
        let shares_items = reader.shares_items();
        let budget = if shares_items { usize::MAX } else { BUDGET_BYTES };
        let outcome = reader.read_appended(budget, |batches, checkpoint| {
            self.sent_offset = checkpoint.offset;
            context.send(
                batches,
                CheckpointUpdate::Read(self.path.clone(), Box::new(checkpoint)),
            );
        });
        reader.count_skipped(context.meter());
        context.claim(reader);
        let outcome = outcome.map_err(|source| {
            reader.close_handle();
            TailError::Read {
                name: self.path.display().to_string(),
                offset: reader.read_offset(),
                source,
            }
        })?;
        if outcome == ReadOutcome::Replaced {
            return self.handle_truncation(context);
        }
        self.next = match outcome {
            ReadOutcome::More => NextAction::Read,
            _ if context.has_room() || shares_items => NextAction::Wait,
            _ => NextAction::Flush,
        };
        if context.has_room() || shares_items {
            self.flush(context);
        }
        Ok(())
    }

    /// Sends recorded data with a checkpoint.
    fn flush(&mut self, context: &mut TailContext) {
        let Some(reader) = &mut self.reader else { return };
        let batches = reader.flush();
        let checkpoint = reader.checkpoint();
        if batches.is_empty() && checkpoint.offset == self.sent_offset {
            return;
        }
        self.sent_offset = checkpoint.offset;
        let update = CheckpointUpdate::Read(self.path.clone(), Box::new(checkpoint));
        context.send(batches, update);
    }

    fn open(&self) -> Result<(File, Inode), TailError> {
        let failed = |error| TailError::open(&self.path, error);
        let (file, inode) = open(&self.path).map_err(failed)?;
        // The path may have become a link since it was found.
        let real = links::real_path(&file, &self.path).map_err(failed)?;
        match self.links.allows(&real) {
            true => Ok((file, inode)),
            false => Err(TailError::link_outside(&self.path, real)),
        }
    }

    fn read_error(&self, source: io::Error) -> TailError {
        TailError::Read {
            name: self.path.display().to_string(),
            offset: 0,
            source,
        }
    }
}
