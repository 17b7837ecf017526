//! One run that is being read: the open file, the parser and what it has recorded, and how far all that is.

mod anew;

use std::{
    cell::RefCell,
    collections::BTreeMap,
    fs::File,
    io,
    os::unix::fs::FileExt,
    path::{Path, PathBuf},
    rc::Rc,
    sync::Arc,
    time::{SystemTime, UNIX_EPOCH},
};

use pulsetrain_formats::{LogFormat, LogReader, Mapping, ReadLimits, ReadTime, key_notices};
use pulsetrain_otlp::write::Encoded;
use pulsetrain_pipeline::clock;

use super::{
    TailEvent,
    identity::{FileIdentity, HEAD, Inode, LastBytes},
    measured::Measuring,
    saved::{FilePosition, SavedAttempts, SavedRun},
};
use crate::{Claims, ImportReport, TailError};
use pulsetrain_record::{AttemptState, Recorder, Run, SkipReason, UsedTimezone};

const CHUNK_BYTES: usize = 1 << 20;

/// A run and the file that it is read from.
pub(super) struct Reading {
    path: PathBuf,
    /// Closed where too many are open; opened again when there is something to read.
    file: Option<File>,
    inode: Inode,
    /// The first bytes, as the parser was given them.
    head: Vec<u8>,
    /// The last bytes that the parser is done with.
    last: Option<LastBytes>,
    /// The attempts that the ranks were in when the file was begun.
    attempts_before: Vec<AttemptState>,
    format: &'static LogFormat,
    sign: &'static str,
    reader: LogReader,
    recorder: Recorder<'static>,
    recorded: Rc<RefCell<Vec<Encoded>>>,
    /// The end of what the parser was given.
    read_to: u64,
    is_continued: bool,
    /// When the file was last written to, as far as it was read.
    modified_unix_nanos: u64,
    /// When it was last written to before it was begun to be read.
    as_of: Option<SystemTime>,
    error: Option<TailError>,
    /// What is measured of what was skipped.
    told_skipped: BTreeMap<SkipReason, u64>,
    /// How many of the recorded ranks are entered as claims.
    claimed: usize,
    /// What the user should know at the end.
    notices: Vec<String>,
}

/// What reading came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// There is nothing more at the moment.
    UpToDate,
    /// There is more.
    More,
    /// The file does not hold what was read from it: it was emptied, and perhaps filled again.
    Replaced,
}

impl Reading {
    /// Begins to read a run from the beginning of a file.
    pub(super) fn new(
        path: &Path,
        (file, inode): (File, Inode),
        (format, sign): (&'static LogFormat, &'static str),
        mapping: &Arc<Mapping>,
        run: Run,
    ) -> Self {
        let recorded = Rc::new(RefCell::new(Vec::new()));
        let listener = Rc::clone(&recorded);
        let recorder =
            Recorder::new(run, move |encoded| listener.borrow_mut().push(encoded)).tracking_series();
        Self {
            path: path.to_owned(),
            file: Some(file),
            inode,
            head: Vec::new(),
            last: None,
            attempts_before: recorder.attempts(),
            format,
            sign,
            reader: LogReader::mapped(format, mapping, ReadLimits::default()),
            recorder,
            recorded,
            read_to: 0,
            is_continued: false,
            modified_unix_nanos: 0,
            as_of: None,
            error: None,
            told_skipped: BTreeMap::new(),
            claimed: 0,
            notices: Vec::new(),
        }
    }

    /// Reads again what was delivered before, up to a position, and keeps nothing of it but what sums have come to.
    pub(super) fn replay(&mut self, position: &FilePosition) -> io::Result<()> {
        self.restore_attempts(&position.attempts.before);
        while self.read_to < position.offset {
            let left = usize::try_from(position.offset - self.read_to).unwrap_or(CHUNK_BYTES);
            let chunk = self.chunk(left.min(CHUNK_BYTES))?;
            if chunk.is_empty() {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            self.push(&chunk)?;
            self.recorded.take();
        }
        self.modified_unix_nanos = position.modified_unix_nanos;
        self.reader.settle(position.place(), &mut self.recorder);
        if position.has_ended {
            self.recorder.clear_active();
        }
        self.recorder.restart_counts();
        if position.is_continued {
            self.restart_sums();
        }
        self.recorded.take();
        Ok(())
    }

    /// The same reading of a log whose times without a zone are of this one.
    pub(super) fn in_timezone(mut self, timezone: UsedTimezone) -> Self {
        self.recorder = self.recorder.in_timezone(timezone);
        self
    }

    pub(super) fn timezone(&self) -> &UsedTimezone {
        self.recorder.timezone()
    }

    /// Takes up the attempts that an earlier reading had come to.
    pub(super) fn restore_attempts(&mut self, attempts: &[AttemptState]) {
        self.recorder.restore_attempts(attempts);
        self.attempts_before = self.recorder.attempts();
    }

    /// Notes that the file was emptied in place, and no copy of it was made: its run was restarted, unless its steps go on.
    pub(super) fn expect_restart(&mut self) {
        self.recorder.expect_restart();
    }

    /// The run began in a file that is gone: what its sums had come to is not known.
    pub(super) fn restart_sums(&mut self) {
        self.is_continued = true;
        self.recorder.restart_sums();
    }

    /// Reads what is new, at most about `budget` bytes, and hands over every full batch.
    pub(super) fn read_on(
        &mut self,
        budget: usize,
        mut full: impl FnMut(Vec<Encoded>),
    ) -> io::Result<Outcome> {
        self.reopen()?;
        if self.was_written_anew()? {
            return Ok(Outcome::Replaced);
        }
        if self.reader.rewrites_end() {
            self.reader.rewind();
            self.read_to = self.reader.position().offset;
        }
        let mut read = 0;
        while read < budget {
            let chunk = self.chunk(CHUNK_BYTES)?;
            if !self.is_unchanged(chunk.len())? {
                return Ok(Outcome::Replaced);
            }
            if chunk.is_empty() {
                return Ok(Outcome::UpToDate);
            }
            read += chunk.len();
            self.push(&chunk)?;
            full(self.recorded.take());
        }
        Ok(Outcome::More)
    }

    /// Whether something is read that waits for what follows.
    pub(super) fn holds_records(&self) -> bool {
        self.reader.holds_records()
    }

    /// Records what waits: nothing has followed for long.
    pub(super) fn release(&mut self) {
        self.reader.release(&mut self.recorder);
    }

    /// Everything that is recorded and not handed over yet.
    pub(super) fn flush(&mut self) -> Vec<Encoded> {
        self.recorder.flush();
        self.recorded.take()
    }

    /// How far the run is read, with whose it is.
    pub(super) fn position(&self) -> FilePosition {
        let place = self.reader.recorded_to();
        FilePosition {
            identity: self.identity(),
            offset: place.offset,
            line: place.line,
            format: self.format.name.to_owned(),
            run: SavedRun::of(self.recorder.run()),
            timezone: Some(self.recorder.timezone().clone()),
            attempts: SavedAttempts {
                before: self.attempts_before.clone(),
                now: self.recorder.attempts(),
            },
            is_continued: self.is_continued,
            has_ended: !self.recorder.has_series(),
            modified_unix_nanos: self.modified_unix_nanos,
            told: self.reader.told(),
        }
    }

    /// Measures what was skipped since the last time.
    pub(super) fn note_skipped(&mut self, measuring: &mut Measuring) {
        measuring.note_skipped(self.recorder.skipped(), &mut self.told_skipped);
    }

    /// Enters the ranks that were recorded since the last call. Returns those that another input has too.
    pub(super) fn claim(&mut self, claims: &Claims) -> Vec<TailError> {
        let ranks = &self.recorder.recorded_ranks()[self.claimed..];
        if ranks.is_empty() {
            return Vec::new();
        }
        self.claimed += ranks.len();
        let name = self.name();
        let enter = |rank: &i64| claims.enter(&name, self.format, self.recorder.run(), *rank);
        let shared: Vec<String> = ranks
            .iter()
            .filter_map(enter)
            .map(|shared| shared.to_string())
            .collect();
        self.notices.extend_from_slice(&shared);
        let problem = |shared| TailError::SharedRank {
            name: name.clone(),
            shared,
        };
        shared.into_iter().map(problem).collect()
    }

    /// The path in messages.
    pub(super) fn name(&self) -> String {
        self.path.display().to_string()
    }

    pub(super) fn identity(&self) -> FileIdentity {
        let done = usize::try_from(self.reader.position().offset).unwrap_or(HEAD);
        FileIdentity::new(self.inode, &self.head[..self.head.len().min(done)]).read_to(self.last)
    }

    pub(super) fn inode(&self) -> Inode {
        self.inode
    }

    /// Whether the run goes on in a file that takes the place of this one.
    pub(super) fn goes_on(&self) -> bool {
        self.format.shrinks
    }

    pub(super) fn run(&self) -> &Run {
        self.recorder.run()
    }

    /// The end of what the parser was given.
    pub(super) fn read_to(&self) -> u64 {
        self.read_to
    }

    pub(super) fn has_handle(&self) -> bool {
        self.file.is_some()
    }

    /// Gives the open file back; it is opened again when it is needed.
    pub(super) fn close_handle(&mut self) {
        self.file = None;
    }

    /// Goes on with the same run in another file, or in the same one after it was emptied.
    pub(super) fn continue_in(&mut self, (file, inode): (File, Inode)) {
        self.reader.go_on_elsewhere();
        self.file = Some(file);
        self.inode = inode;
        self.head.clear();
        self.last = None;
        self.attempts_before = self.recorder.attempts();
        self.read_to = 0;
        self.is_continued = true;
    }

    /// Goes on where it is in a copy of the file, which was emptied.
    pub(super) fn go_on_in_copy(&mut self, file: File, inode: Inode) {
        self.file = Some(file);
        self.inode = inode;
    }

    /// When the file was last written to, as far as it was read.
    pub(super) fn modified_unix_nanos(&self) -> u64 {
        self.modified_unix_nanos
    }

    /// Goes on reading the same file, which has another name by now.
    pub(super) fn give_handle(&mut self, file: File) {
        self.file = Some(file);
    }

    /// What the user is told when the reading begins.
    pub(super) fn opened(&self, offset: u64) -> TailEvent {
        TailEvent::Opened {
            path: self.path.clone(),
            format: self.format.name,
            run: Box::new(self.run().clone()),
            timezone: self.timezone().clone(),
            offset,
        }
    }

    /// Takes what stands at the end of the file as it is: no more will follow.
    pub(super) fn take_torn_end(&mut self) {
        self.reader.end(&mut self.recorder);
    }

    /// Ends the series of the run: another one takes its place.
    pub(super) fn end_series(&mut self) {
        self.recorder.end_series();
    }

    /// Ends the reading.
    pub(super) fn finish(mut self) -> (Vec<Encoded>, ImportReport) {
        self.recorder.flush();
        let (input, run) = (self.name(), self.recorder.run().clone());
        let timezone = self.recorder.timezone_used();
        let (counts, skipped) = self.recorder.finish();
        let lists_keys = self.format.is_fallback();
        if lists_keys {
            self.notices.extend(key_notices(&self.reader.key_uses(), &input));
        }
        let report = ImportReport {
            lists_keys,
            input,
            format: Some((self.format.name, self.sign)),
            run,
            counts,
            skipped,
            notices: self.notices,
            timezone,
            error: self.error,
        };
        (self.recorded.take(), report)
    }

    fn push(&mut self, chunk: &[u8]) -> io::Result<()> {
        self.keep_head(chunk);
        self.reader.set_time(ReadTime {
            unix_nanos: clock::unix_now().as_nanos() as u64,
            is_live: true,
        });
        self.reader.push(chunk, &mut self.recorder);
        self.read_to += chunk.len() as u64;
        self.last = LastBytes::before(self.handle()?, self.reader.position().offset)?;
        Ok(())
    }

    fn keep_head(&mut self, chunk: &[u8]) {
        let Ok(start) = usize::try_from(self.read_to) else {
            return;
        };
        if start < HEAD {
            // What was written over since is replaced.
            self.head.truncate(start);
            self.head
                .extend_from_slice(&chunk[..chunk.len().min(HEAD - start)]);
        }
    }

    /// The next bytes of the file, at most `limit`; none at its end.
    fn chunk(&self, limit: usize) -> io::Result<Vec<u8>> {
        let mut chunk = vec![0; limit];
        let mut len = 0;
        while len < limit {
            match self
                .handle()?
                .read_at(&mut chunk[len..], self.read_to + len as u64)
            {
                Ok(0) => break,
                Ok(count) => len += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        chunk.truncate(len);
        Ok(chunk)
    }

    /// Whether the file still holds what was read, the last chunk included.
    fn is_unchanged(&mut self, chunk: usize) -> io::Result<bool> {
        let file = self.handle()?;
        let metadata = file.metadata()?;
        let is_long_enough = metadata.len() >= self.read_to + chunk as u64;
        let is_unchanged = is_long_enough && self.identity().has_content(file)?;
        if is_unchanged {
            let since = metadata
                .modified()?
                .duration_since(UNIX_EPOCH)
                .unwrap_or_default();
            self.modified_unix_nanos = since.as_nanos() as u64;
        }
        Ok(is_unchanged)
    }

    fn handle(&self) -> io::Result<&File> {
        self.file.as_ref().ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    /// Opens the file again by its name, if it is still the same one.
    fn reopen(&mut self) -> io::Result<()> {
        if self.file.is_none() {
            let (file, inode) = super::candidates::open(&self.path)?;
            if inode != self.inode {
                return Err(io::ErrorKind::NotFound.into());
            }
            self.file = Some(file);
        }
        Ok(())
    }
}
