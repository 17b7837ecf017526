//! The journal of an output file: which records stay when a restart truncates the file.
//!
//! After a restart, a source with checkpoints replays the batches after its last stored checkpoint. Their
//! records are interleaved with others: a stage may reorder batches, and other sources replay nothing. So
//! each record is journaled before it is written. The line `START END ACK` is a record that its source
//! replays, and `START END` one that no source replays. A line of one number is the floor: all bytes before
//! it stay. `recovery` reads the journal after a restart.
//!
//! The line `file DEVICE INODE` names the file. When the output is rotated or reopened, the journal is kept
//! (`previous`) until every record in it is acknowledged, so that a restart finds the file under its new
//! name.

mod previous;
mod recovery;

use std::{
    fs::{self, File},
    io::{self, Write},
    path::{Path, PathBuf},
    sync::Arc,
};

use pulsetrain_pipeline::{Batch, private_files};

use self::previous::PreviousJournal;
use super::identity::FileIdentity;

/// A journal larger than this is rewritten without the records that stay.
const TRIMMED_BYTES: u64 = 64 << 10;

/// The journal of one file.
#[derive(Clone)]
pub struct FileJournal {
    path: PathBuf,
    first_unacked: Arc<dyn Fn() -> u64 + Send + Sync>,
    on_error: Arc<dyn Fn(Option<io::Error>) + Send + Sync>,
}

/// A journal that is open for writing.
pub(super) struct OpenJournal {
    journal: FileJournal,
    file: File,
    bytes: u64,
    /// The size at which the journal is rewritten.
    trim_at: u64,
    /// Lines that could not be written yet.
    unwritten: String,
    /// The length of the last line.
    last: usize,
    /// The journals of earlier files that still have unacknowledged records.
    previous: Vec<PreviousJournal>,
}

/// The content of a journal.
#[derive(Debug, Default, PartialEq, Eq)]
struct JournalContent {
    /// The file, or `None` in a journal of a version that did not store it.
    file: Option<FileIdentity>,
    /// The offset before which all bytes stay.
    floor: u64,
    /// The records after the floor, in the order of the file.
    spans: Vec<Span>,
}

/// The offsets of a record and its ack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Span {
    start: u64,
    end: u64,
    /// The number of its ack, or `None` if no source replays it.
    ack: Option<u64>,
}

impl FileJournal {
    /// Creates a journal at `path`. `first_unacked` returns the first ack that the last stored checkpoint
    /// does not cover. Batches from this number on are replayed.
    pub fn new(path: impl Into<PathBuf>, first_unacked: impl Fn() -> u64 + Send + Sync + 'static) -> Self {
        Self {
            path: path.into(),
            first_unacked: Arc::new(first_unacked),
            on_error: Arc::new(drop),
        }
    }

    /// Reports to `on_error` when entries cannot be written, and `None` when they can be again. Meanwhile no
    /// checkpoint that covers their records may be stored.
    #[must_use]
    pub fn on_error(self, on_error: impl Fn(Option<io::Error>) + Send + Sync + 'static) -> Self {
        Self {
            on_error: Arc::new(on_error),
            ..self
        }
    }

    /// Opens the journal and keeps its content.
    pub(super) fn open(&self) -> io::Result<OpenJournal> {
        let mut options = private_files::file_options();
        let file = options.append(true).create(true).open(&self.path)?;
        Ok(OpenJournal {
            bytes: file.metadata()?.len(),
            journal: self.clone(),
            file,
            trim_at: TRIMMED_BYTES,
            unwritten: String::new(),
            last: 0,
            previous: PreviousJournal::all(&self.path)?,
        })
    }

    /// Opens the journal for `file`, which ends at `end`. A journal of another file is kept under a new name.
    pub(super) fn open_for(&self, file: FileIdentity, end: u64) -> io::Result<OpenJournal> {
        let mut open = self.open()?;
        let described = self.read()?.and_then(|notes| notes.file);
        if described.is_some_and(|described| described != file) {
            open.next_file(file, end)?;
        }
        Ok(open)
    }

    /// Starts a journal of `file` in which all bytes before `floor` stay.
    fn begin(&self, file: FileIdentity, floor: u64) -> io::Result<()> {
        self.write(&JournalContent {
            file: Some(file),
            floor,
            spans: Vec::new(),
        })
    }

    /// Returns the path, for messages.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Reads the entries. Returns `None` for a missing or empty journal, which describes no file.
    fn read(&self) -> io::Result<Option<JournalContent>> {
        match fs::read_to_string(&self.path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            read => read.map(|text| text.contains('\n').then(|| JournalContent::parse(&text))),
        }
    }

    /// Replaces the content of the journal.
    fn write(&self, notes: &JournalContent) -> io::Result<()> {
        let path = self.path.with_extension("new");
        let mut new = private_files::create_file(&path)?;
        new.write_all(notes.text().as_bytes())?;
        // After a power failure, the name must not belong to an empty journal.
        new.sync_data()?;
        fs::rename(path, &self.path)
    }
}

impl OpenJournal {
    /// Journals that `batch` will be between `start` and `end`. After an error the entry is written with the
    /// next one.
    pub(super) fn record(&mut self, batch: &Batch, start: u64, end: u64) {
        let had_error = !self.unwritten.is_empty();
        let ack = batch.ack_number();
        let line = Span { start, end, ack }.line();
        self.unwritten += &line;
        self.last = line.len();
        self.write_again(had_error);
    }

    /// Discards all entries, because another program changed the file: its bytes before `floor` stay.
    pub(super) fn restart_at(&mut self, floor: u64) {
        let had_error = !self.unwritten.is_empty();
        self.unwritten = format!("{floor}\n");
        self.last = 0;
        self.write_again(had_error);
    }

    /// Removes the last entry, whose record could not be written.
    pub(super) fn undo_last(&mut self) {
        match self.unwritten.len().checked_sub(self.last) {
            Some(rest) => {
                self.unwritten.truncate(rest);
                if rest == 0 && self.last > 0 {
                    (self.journal.on_error)(None);
                }
            }
            None => {
                let rest = self.bytes - self.last as u64;
                // A restart ignores the entry of an incomplete record, so it may stay.
                if self.file.set_len(rest).is_ok() {
                    self.bytes = rest;
                }
            }
        }
        self.last = 0;
    }

    /// Writes entries that could not be written before.
    pub(super) fn catch_up(&mut self) {
        if !self.unwritten.is_empty() {
            self.write_again(true);
        }
    }

    /// Keeps the current journal under a new name and starts that of the next file, whose bytes before
    /// `floor` stay. Returns the earlier journal, which is not synced. An error changes nothing.
    pub(super) fn next_file(&mut self, file: FileIdentity, floor: u64) -> io::Result<File> {
        self.catch_up();
        if !self.unwritten.is_empty() {
            return Err(io::Error::other(format!(
                "its journal {} cannot be written",
                self.journal.path.display()
            )));
        }
        let notes = self.journal.read()?.unwrap_or_default();
        let aside = PreviousJournal::free_path(&self.journal.path);
        fs::rename(&self.journal.path, &aside)?;
        let begun = self.journal.begin(file, floor).and_then(|()| self.journal.open());
        let begun = begun.inspect_err(|_| {
            // Without the entries, a restart would keep records that are delivered again.
            let _ = fs::rename(&aside, &self.journal.path);
        })?;
        self.previous.push(PreviousJournal::new(aside, &notes));
        let before = std::mem::replace(&mut self.file, begun.file);
        (self.bytes, self.last, self.trim_at) = (begun.bytes, 0, TRIMMED_BYTES);
        self.remove_acked();
        Ok(before)
    }

    /// Removes the journals of earlier files whose records are all acknowledged. Returns whether there was
    /// one.
    pub(super) fn remove_acked(&mut self) -> bool {
        if self.previous.is_empty() {
            return false;
        }
        let first_unacked = (self.journal.first_unacked)();
        let before = self.previous.len();
        self.previous.retain(|aside| !aside.is_acked(first_unacked));
        self.previous.len() < before
    }

    /// Returns the earlier files with unacknowledged records, which a restart may truncate.
    pub(super) fn files_with_unacked(&self) -> Vec<FileIdentity> {
        self.previous.iter().filter_map(PreviousJournal::file).collect()
    }

    /// Returns handles of the journal and of its folder.
    pub(super) fn handles(&self) -> io::Result<[File; 2]> {
        let folder = self.journal.path.parent().unwrap_or(Path::new("."));
        Ok([self.file.try_clone()?, File::open(folder)?])
    }

    fn write_again(&mut self, had_error: bool) {
        let error = self.write().err();
        if error.is_some() != had_error {
            (self.journal.on_error)(error);
        }
    }

    fn write(&mut self) -> io::Result<()> {
        if self.bytes > self.trim_at {
            self.trim()?;
        }
        let before = self.bytes;
        let written = self.file.write_all(self.unwritten.as_bytes());
        if let Err(error) = written {
            // An incomplete line would corrupt the next one.
            self.file.set_len(before)?;
            return Err(error);
        }
        self.bytes += self.unwritten.len() as u64;
        self.unwritten.clear();
        Ok(())
    }

    /// Rewrites the journal without the records that stay.
    fn trim(&mut self) -> io::Result<()> {
        let mut notes = self.journal.read()?.unwrap_or_default();
        notes.raise_floor((self.journal.first_unacked)());
        self.journal.write(&notes)?;
        let reopened = self.journal.open()?;
        (self.file, self.bytes) = (reopened.file, reopened.bytes);
        // While nothing is acknowledged the journal grows, and is not reread for every line.
        self.trim_at = TRIMMED_BYTES.max(2 * self.bytes);
        Ok(())
    }
}

impl JournalContent {
    /// Parses the entries. An incomplete last line belongs to a record that was not delivered. A record that
    /// starts within an earlier one replaces it, because the earlier one was not written.
    fn parse(text: &str) -> Self {
        let mut notes = Self::default();
        let whole = text.rfind('\n').unwrap_or_default();
        for line in text[..whole].lines() {
            if let Some(file) = FileIdentity::parse(line) {
                notes.file = Some(file);
                continue;
            }
            match (Span::parse(line), line.parse()) {
                (Some(span), _) => {
                    while notes.spans.pop_if(|before| before.end > span.start).is_some() {}
                    notes.spans.push(span);
                }
                (None, Ok(floor)) => {
                    (notes.floor, notes.spans) = (floor, Vec::new());
                }
                _ => {}
            }
        }
        notes
    }

    fn text(&self) -> String {
        let spans: String = self.spans.iter().map(Span::line).collect();
        let file = self.file.map(FileIdentity::line).unwrap_or_default();
        format!("{file}{}\n{spans}", self.floor)
    }

    /// Raises the floor over the records that stay, up to the first that is replayed.
    fn raise_floor(&mut self, first_unacked: u64) {
        let mut floor = self.floor;
        let stays = |span: &&Span| {
            let stays = span.start == floor && !span.is_replayable(first_unacked);
            floor = if stays { span.end } else { floor };
            stays
        };
        let count = self.spans.iter().take_while(stays).count();
        self.floor = floor;
        self.spans.drain(..count);
    }
}

impl Span {
    fn parse(line: &str) -> Option<Self> {
        let mut numbers = line.split(' ').map(str::parse::<u64>);
        let (start, end) = (numbers.next()?.ok()?, numbers.next()?.ok()?);
        let ack = numbers.next().transpose().ok()?;
        (start < end).then_some(Self { start, end, ack })
    }

    fn line(&self) -> String {
        let Self { start, end, ack } = self;
        match ack {
            Some(ack) => format!("{start} {end} {ack}\n"),
            None => format!("{start} {end}\n"),
        }
    }

    /// Returns whether the source of the record replays it.
    fn is_replayable(&self, first_unacked: u64) -> bool {
        self.ack.is_some_and(|ack| ack >= first_unacked)
    }

    fn len(self) -> u64 {
        self.end - self.start
    }
}

#[cfg(test)]
mod tests;
