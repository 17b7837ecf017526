//! Reads one run: owns the open file, the parser, the recorder, and the offset that they have reached.

mod daylight_saving;
mod rewrite;

use std::{
    cell::RefCell,
    collections::BTreeMap,
    fs::File,
    io,
    os::unix::fs::FileExt,
    path::{Path, PathBuf},
    rc::Rc,
    sync::Arc,
    time::SystemTime,
};

use pulsetrain_formats::{LogFormat, LogReader, Mapping, ReadTime};
use pulsetrain_otlp::{UnixNanos, write::Encoded};
use pulsetrain_pipeline::clock;
use pulsetrain_record::{AttemptState, Recorder, Run, SkipReason, UsedTimezone};

use super::{
    TailEvent,
    checkpoint_store::{AttemptsCheckpoint, FileCheckpoint, RunCheckpoint},
    identity::{FileIdentity, HEAD, Inode, LastBytes},
    poll_report::PollMeter,
};
use crate::{Claims, ImportNotice, ImportReport, RunOptions, SharedRank, TailError};

const CHUNK_BYTES: usize = 1 << 20;

/// A run and the file that it is read from.
pub(super) struct RunReader {
    path: PathBuf,
    /// `None` while too many files are open. It is opened again before the next read.
    file: Option<File>,
    inode: Inode,
    /// The leading bytes that the parser has received.
    head: Vec<u8>,
    /// The last parsed bytes.
    last: Option<LastBytes>,
    /// The attempts of the ranks at the beginning of the file.
    attempts_before: Vec<AttemptState>,
    /// The instant of the last local time before the beginning of the file.
    last_local_before: u64,
    format: &'static LogFormat,
    signature: &'static str,
    mapping: Arc<Mapping>,
    reader: LogReader,
    recorder: Recorder<'static>,
    recorded: Rc<RefCell<Vec<Encoded>>>,
    /// The end of the bytes that the parser has received.
    read_offset: u64,
    is_continued: bool,
    /// The modification time of the file at the last read.
    modified_unix_nanos: UnixNanos,
    /// The modification time of the file when reading started at its beginning.
    modified_at_start: Option<SystemTime>,
    error: Option<TailError>,
    /// The skipped records that poll reports have counted.
    counted_skipped: BTreeMap<SkipReason, u64>,
    /// The number of recorded ranks that are claimed.
    claimed: usize,
    /// Notices for the final report.
    notices: Vec<ImportNotice>,
}

/// The outcome of a read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ReadOutcome {
    /// The reader has reached the end of the file.
    UpToDate,
    /// The file has more bytes.
    More,
    /// The file no longer holds the bytes that were read: it was truncated, and perhaps written again.
    Replaced,
}

impl RunReader {
    /// Starts to read a run at the beginning of a file.
    pub(super) fn new(
        path: &Path,
        (file, inode): (File, Inode),
        (format, signature): (&'static LogFormat, &'static str),
        options: &RunOptions,
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
            last_local_before: 0,
            format,
            signature,
            mapping: Arc::clone(&options.mapping),
            reader: options.reader(format),
            recorder,
            recorded,
            read_offset: 0,
            is_continued: false,
            modified_unix_nanos: UnixNanos::UNKNOWN,
            modified_at_start: None,
            error: None,
            counted_skipped: BTreeMap::new(),
            claimed: 0,
            notices: Vec::new(),
        }
    }

    /// Replays the bytes before a checkpoint: restores counter state, sends nothing.
    pub(super) fn replay(&mut self, checkpoint: &FileCheckpoint) -> io::Result<()> {
        self.restore_attempts(&checkpoint.attempts.before);
        self.start_in_timezone(UsedTimezone {
            last_local_unix_nanos: checkpoint.last_local_before,
            ..self.timezone()
        });
        while self.read_offset < checkpoint.offset {
            let left = usize::try_from(checkpoint.offset - self.read_offset).unwrap_or(CHUNK_BYTES);
            let chunk = self.chunk(left.min(CHUNK_BYTES))?;
            if chunk.is_empty() {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            self.push(&chunk)?;
            self.recorded.take();
        }
        self.modified_unix_nanos = UnixNanos(checkpoint.modified_unix_nanos);
        self.reader.settle(checkpoint.place(), &mut self.recorder);
        if checkpoint.has_ended {
            self.recorder.clear_active();
        }
        self.recorder.restart_counts();
        if checkpoint.is_continued {
            self.restart_sums();
        }
        self.recorded.take();
        Ok(())
    }

    /// Sets the zone of times without one.
    pub(super) fn in_timezone(mut self, timezone: UsedTimezone) -> Self {
        self.start_in_timezone(timezone);
        self
    }

    fn start_in_timezone(&mut self, timezone: UsedTimezone) {
        self.last_local_before = timezone.last_local_unix_nanos;
        self.recorder.set_timezone(timezone);
    }

    pub(super) fn timezone(&self) -> UsedTimezone {
        self.recorder.timezone()
    }

    /// Restores the attempts of the ranks.
    pub(super) fn restore_attempts(&mut self, attempts: &[AttemptState]) {
        self.recorder.restore_attempts(attempts);
        self.attempts_before = self.recorder.attempts();
    }

    /// Records that the file was truncated without a copy: the run has restarted, unless its steps continue.
    pub(super) fn expect_restart(&mut self) {
        self.recorder.expect_restart();
    }

    /// Restarts the sums, because the run started in a file that no longer exists.
    pub(super) fn restart_sums(&mut self) {
        self.is_continued = true;
        self.recorder.restart_sums();
    }

    /// Reads appended bytes, at most about `budget`. After each chunk with a full batch, passes everything that is recorded to
    /// `full`, with its checkpoint: without one, a restart would replay the batch although it counts as acknowledged.
    pub(super) fn read_appended(
        &mut self,
        budget: usize,
        mut full: impl FnMut(Vec<Encoded>, FileCheckpoint),
    ) -> io::Result<ReadOutcome> {
        self.reopen()?;
        if self.was_rewritten()? {
            return Ok(ReadOutcome::Replaced);
        }
        if self.reader.rewrites_end() {
            self.reader.rewind();
            self.read_offset = self.reader.position().offset;
        }
        self.follow_daylight_saving()?;
        let mut read = 0;
        while read < budget {
            let chunk = self.chunk(CHUNK_BYTES)?;
            if !self.is_unchanged(chunk.len())? {
                return Ok(ReadOutcome::Replaced);
            }
            if chunk.is_empty() {
                return Ok(ReadOutcome::UpToDate);
            }
            read += chunk.len();
            self.push(&chunk)?;
            let mut batches = self.recorded.take();
            if !batches.is_empty() {
                batches.extend(self.flush());
                full(batches, self.checkpoint());
            }
        }
        Ok(ReadOutcome::More)
    }

    /// Returns whether the parser buffers records until later bytes arrive.
    pub(super) fn has_buffered(&self) -> bool {
        self.reader.holds_records()
    }

    /// Records the buffered records.
    pub(super) fn flush_buffered(&mut self) {
        self.reader.flush_buffered(&mut self.recorder);
    }

    /// Returns everything that is recorded and not sent yet.
    pub(super) fn flush(&mut self) -> Vec<Encoded> {
        self.recorder.flush();
        self.recorded.take()
    }

    /// Returns the checkpoint of the file.
    pub(super) fn checkpoint(&self) -> FileCheckpoint {
        let place = self.reader.recorded_to();
        FileCheckpoint {
            identity: self.identity(),
            offset: place.offset,
            line: place.line,
            format: self.format.name.to_owned(),
            run: RunCheckpoint::new(self.recorder.run()),
            timezone: Some(self.timezone()),
            last_local_before: self.last_local_before,
            attempts: AttemptsCheckpoint {
                before: self.attempts_before.clone(),
                now: self.recorder.attempts(),
            },
            is_continued: self.is_continued,
            has_ended: !self.recorder.has_series(),
            modified_unix_nanos: self.modified_unix_nanos.0,
            emitted: self.reader.snapshot(),
        }
    }

    /// Adds the records that were skipped since the last call to the poll report.
    pub(super) fn count_skipped(&mut self, meter: &mut PollMeter) {
        meter.count_skipped(self.recorder.parse_report(), &mut self.counted_skipped);
    }

    /// Claims the ranks that were recorded since the last call. Returns an error for each rank that another input has claimed.
    pub(super) fn claim(&mut self, claims: &Claims) -> Vec<TailError> {
        let ranks = &self.recorder.recorded_ranks()[self.claimed..];
        if ranks.is_empty() {
            return Vec::new();
        }
        self.claimed += ranks.len();
        let name = self.name();
        let enter = |rank: &i64| claims.claim(&name, self.format, self.recorder.run(), *rank);
        let shared: Vec<SharedRank> = ranks.iter().filter_map(enter).collect();
        self.notices
            .extend(shared.iter().cloned().map(ImportNotice::SharedRank));
        let problem = |shared| TailError::SharedRank {
            name: name.clone(),
            shared,
        };
        shared.into_iter().map(problem).collect()
    }

    /// Returns the path as it appears in messages.
    pub(super) fn name(&self) -> String {
        self.path.display().to_string()
    }

    pub(super) fn identity(&self) -> FileIdentity {
        let parsed = usize::try_from(self.reader.position().offset).unwrap_or(HEAD);
        FileIdentity::new(self.inode, &self.head[..self.head.len().min(parsed)]).read_to(self.last)
    }

    pub(super) fn inode(&self) -> Inode {
        self.inode
    }

    /// Returns whether the run continues in a file that replaces this one.
    pub(super) fn continues_after_truncate(&self) -> bool {
        self.format.continues_after_truncate
    }

    pub(super) fn run(&self) -> &Run {
        self.recorder.run()
    }

    /// Returns the end of the bytes that the parser has received.
    pub(super) fn read_offset(&self) -> u64 {
        self.read_offset
    }

    pub(super) fn has_handle(&self) -> bool {
        self.file.is_some()
    }

    /// Closes the file. It is opened again before the next read.
    pub(super) fn close_handle(&mut self) {
        self.file = None;
    }

    /// Continues the run in another file, or in the same one after a truncation.
    pub(super) fn continue_in(&mut self, (file, inode): (File, Inode)) {
        self.reader.continue_in_new_input();
        self.file = Some(file);
        self.inode = inode;
        self.head.clear();
        self.last = None;
        self.attempts_before = self.recorder.attempts();
        self.last_local_before = self.timezone().last_local_unix_nanos;
        self.read_offset = 0;
        self.is_continued = true;
    }

    /// Continues at the same offset in a copy of the file, which was truncated.
    pub(super) fn switch_to_copy(&mut self, file: File, inode: Inode) {
        self.file = Some(file);
        self.inode = inode;
    }

    /// Returns the modification time of the file at the last read.
    pub(super) fn modified_unix_nanos(&self) -> UnixNanos {
        self.modified_unix_nanos
    }

    /// Sets the open file, which has another name now.
    pub(super) fn set_handle(&mut self, file: File) {
        self.file = Some(file);
    }

    /// Returns the event that reading starts at an offset.
    pub(super) fn opened_event(&self, offset: u64) -> TailEvent {
        TailEvent::Opened {
            path: self.path.clone(),
            format: self.format.name,
            run: Box::new(self.run().clone()),
            timezone: self.timezone(),
            offset,
        }
    }

    /// Parses an incomplete record at the end of the file as it is.
    pub(super) fn read_partial_end(&mut self) {
        self.reader.end(&mut self.recorder);
    }

    /// Ends the series of the run, because another run replaces it.
    pub(super) fn end_series(&mut self) {
        self.recorder.end_series();
    }

    /// Ends the reader. Returns its last batches and its report.
    pub(super) fn finish(mut self) -> (Vec<Encoded>, ImportReport) {
        self.recorder.flush();
        let (input, run) = (self.name(), self.recorder.run().clone());
        let timezone = self.recorder.timezone_used();
        let ranks = self.recorder.recorded_ranks().to_vec();
        let (counts, skipped) = self.recorder.finish();
        let mut report = ImportReport {
            keys: Vec::new(),
            input,
            format: Some((self.format.name, self.signature)),
            run,
            ranks,
            counts,
            skipped,
            notices: self.notices,
            timezone,
            unrecognised: None,
            error: self.error,
        };
        report.list_keys(self.format, &self.mapping, &self.reader.key_uses());
        (self.recorded.take(), report)
    }

    fn push(&mut self, chunk: &[u8]) -> io::Result<()> {
        self.keep_head(chunk);
        self.reader.set_time(ReadTime {
            unix_nanos: clock::unix_nanos(),
            is_live: true,
        });
        self.reader.push(chunk, &mut self.recorder);
        self.read_offset += chunk.len() as u64;
        self.last = LastBytes::before(self.handle()?, self.reader.position().offset)?;
        Ok(())
    }

    fn keep_head(&mut self, chunk: &[u8]) {
        let Ok(start) = usize::try_from(self.read_offset) else {
            return;
        };
        if start < HEAD {
            // Overwritten bytes are replaced.
            self.head.truncate(start);
            self.head
                .extend_from_slice(&chunk[..chunk.len().min(HEAD - start)]);
        }
    }

    /// Reads at most `limit` bytes; the result is empty at the end of the file.
    fn chunk(&self, limit: usize) -> io::Result<Vec<u8>> {
        let mut chunk = vec![0; limit];
        let mut len = 0;
        while len < limit {
            match self
                .handle()?
                .read_at(&mut chunk[len..], self.read_offset + len as u64)
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

    /// Returns whether the file still holds the bytes that were read, with the last chunk.
    fn is_unchanged(&mut self, chunk: usize) -> io::Result<bool> {
        let file = self.handle()?;
        let metadata = file.metadata()?;
        let is_long_enough = metadata.len() >= self.read_offset + chunk as u64;
        let is_unchanged = is_long_enough && self.identity().has_content(file)?;
        if is_unchanged {
            self.modified_unix_nanos = UnixNanos::from_system_time(metadata.modified()?);
        }
        Ok(is_unchanged)
    }

    fn handle(&self) -> io::Result<&File> {
        self.file.as_ref().ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    /// Opens the file again by its name, if the name still belongs to it.
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

#[cfg(test)]
mod tests {
    use std::fs;

    use pulsetrain_formats::format_by_name;
    use pulsetrain_otlp::Signal;

    use super::*;
    use crate::follow::candidates::open;

    /// The end of an attempt closes its batches, so that the first attempt is sent before all of the chunk is recorded.
    #[test]
    fn batches_that_are_sent_early_have_the_checkpoint_of_all_that_is_recorded() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("train.log");
        let line = |step| format!("step={step} train.loss=2.5 train.step.duration=0.5s\n");
        let attempt: String = (1..=3).map(line).collect();
        let text = attempt.repeat(2);
        fs::write(&path, &text).unwrap();
        let format = (format_by_name("keyvalue").unwrap(), "a test");
        let mut reader = RunReader::new(
            &path,
            open(&path).unwrap(),
            format,
            &RunOptions::default(),
            Run::default(),
        );
        let mut sent = Vec::new();
        reader
            .read_appended(usize::MAX, |batches, checkpoint| {
                let spans = batches.iter().filter(|batch| batch.signal == Signal::Traces);
                let items: Vec<u32> = spans.map(|batch| batch.items).collect();
                sent.push((items, checkpoint.offset));
            })
            .unwrap();
        assert_eq!(sent, [(vec![3, 3], text.len() as u64)]);
        assert!(reader.flush().is_empty());
    }
}
