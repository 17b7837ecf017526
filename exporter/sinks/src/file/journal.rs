//! What a file keeps when a restart cuts off what its sources bring again.
//!
//! A source with positions reads again what was not settled at the last written position. Records of it are between others:
//! a stage may let an earlier batch go after a later one, and telemetry of other sources comes only once. So the journal
//! notes every record before it is written, and no kill leaves one of which nothing is known: a line `START END RECEIPT`, or
//! `START END` for what comes only once. A line with one number is the position up to which all stays. `recovery` reads it after a restart.
//!
//! The line `file DEVICE INODE` names the file. When the output is rotated or reopened, the journal of the file before is set
//! aside (`set_aside`) until every record in it is settled, so that a restart finds that file under its new name.

mod previous;
mod recovery;

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Write},
    path::{Path, PathBuf},
    sync::Arc,
};

use pulsetrain_pipeline::Batch;

use self::previous::PreviousJournal;
use super::identity::FileIdentity;

/// A journal that has grown over this is written again, without what stays in any case.
const TRIMMED_BYTES: u64 = 64 << 10;

/// The journal of one file.
#[derive(Clone)]
pub struct FileJournal {
    path: PathBuf,
    first_unacked: Arc<dyn Fn() -> u64 + Send + Sync>,
    on_error: Arc<dyn Fn(Option<io::Error>) + Send + Sync>,
}

/// A journal that is being written.
pub(super) struct OpenJournal {
    journal: FileJournal,
    file: File,
    bytes: u64,
    /// Grown over this, it is written again.
    trim_at: u64,
    /// Lines that could not be written yet.
    unwritten: String,
    /// How long the last line is.
    last: usize,
    /// The journals of earlier files that still have records that are not settled.
    previous: Vec<PreviousJournal>,
}

/// The content of a journal.
#[derive(Debug, Default, PartialEq, Eq)]
struct Notes {
    /// The file, or `None` in the journal of a version that did not note it.
    file: Option<FileIdentity>,
    /// Up to here all stays.
    floor: u64,
    /// The records after it, in the order of the file.
    spans: Vec<Span>,
}

/// Where a record is, and whose it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Span {
    start: u64,
    end: u64,
    /// The number of its ack; none for what comes only once.
    ack: Option<u64>,
}

impl FileJournal {
    /// A journal at `path`; `settled` gives the number of the first ack that the last written position does not cover:
    /// it comes again, and those after it.
    pub fn new(path: impl Into<PathBuf>, first_unacked: impl Fn() -> u64 + Send + Sync + 'static) -> Self {
        Self {
            path: path.into(),
            first_unacked: Arc::new(first_unacked),
            on_error: Arc::new(drop),
        }
    }

    /// The same journal; `behind` is told why notes cannot be written, and when they are again. Meanwhile no position may be
    /// written that covers their records.
    #[must_use]
    pub fn on_error(self, on_error: impl Fn(Option<io::Error>) + Send + Sync + 'static) -> Self {
        Self {
            on_error: Arc::new(on_error),
            ..self
        }
    }

    /// Goes on with what the journal holds.
    pub(super) fn open(&self) -> io::Result<OpenJournal> {
        let mut options = OpenOptions::new();
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

    /// Opens the journal for `file`, which ends at `end`. If it describes another file, its notes are set aside.
    pub(super) fn open_for(&self, file: FileIdentity, end: u64) -> io::Result<OpenJournal> {
        let mut open = self.open()?;
        let described = self.read()?.and_then(|notes| notes.file);
        if described.is_some_and(|described| described != file) {
            open.next_file(file, end)?;
        }
        Ok(open)
    }

    /// Notes that all of `file` up to `floor` stays.
    fn begin(&self, file: FileIdentity, floor: u64) -> io::Result<()> {
        self.write(&Notes {
            file: Some(file),
            floor,
            spans: Vec::new(),
        })
    }

    /// Where it is, for messages.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Reads the notes, or `None` where there is no note at all: then nothing is known of the file.
    fn read(&self) -> io::Result<Option<Notes>> {
        match fs::read_to_string(&self.path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            read => read.map(|text| text.contains('\n').then(|| Notes::parse(&text))),
        }
    }

    /// Replaces what the journal holds.
    fn write(&self, notes: &Notes) -> io::Result<()> {
        let path = self.path.with_extension("new");
        let mut new = File::create(&path)?;
        new.write_all(notes.text().as_bytes())?;
        // After a power failure the name must not belong to an empty journal.
        new.sync_data()?;
        fs::rename(path, &self.path)
    }
}

impl OpenJournal {
    /// Notes that `batch` will be between `start` and `end`. Where that cannot be written, it is tried again with the next one.
    pub(super) fn note(&mut self, batch: &Batch, start: u64, end: u64) {
        let had_error = !self.unwritten.is_empty();
        let ack = batch.ack_number();
        let line = Span { start, end, ack }.line();
        self.unwritten += &line;
        self.last = line.len();
        self.write_again(had_error);
    }

    /// Forgets all notes, because someone else changed the file: all that it holds now, up to `floor`, stays.
    pub(super) fn restart_at(&mut self, floor: u64) {
        let had_error = !self.unwritten.is_empty();
        self.unwritten = format!("{floor}\n");
        self.last = 0;
        self.write_again(had_error);
    }

    /// Forgets the last note: its record could not be written.
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
                // A note of a record that is not complete is ignored by a restart, so it may stay.
                if self.file.set_len(rest).is_ok() {
                    self.bytes = rest;
                }
            }
        }
        self.last = 0;
    }

    /// Writes what could not be written before.
    pub(super) fn catch_up(&mut self) {
        if !self.unwritten.is_empty() {
            self.write_again(true);
        }
    }

    /// Sets the notes of the file so far aside and begins those of the next one, of which all up to `floor` stays. Returns the
    /// journal before, which is not synced. An error leaves everything as it was.
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
            // Without the notes a restart would keep records that are delivered again.
            let _ = fs::rename(&aside, &self.journal.path);
        })?;
        self.previous.push(PreviousJournal::new(aside, &notes));
        let before = std::mem::replace(&mut self.file, begun.file);
        (self.bytes, self.last, self.trim_at) = (begun.bytes, 0, TRIMMED_BYTES);
        self.remove_acked();
        Ok(before)
    }

    /// Removes the journals of earlier files whose records are all settled. Returns whether there was one.
    pub(super) fn remove_acked(&mut self) -> bool {
        if self.previous.is_empty() {
            return false;
        }
        let first_unacked = (self.journal.first_unacked)();
        let before = self.previous.len();
        self.previous.retain(|aside| !aside.is_acked(first_unacked));
        self.previous.len() < before
    }

    /// Returns the earlier files that have records that are not settled: a restart may have to cut these off.
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
            // A torn line would spoil the one after it.
            self.file.set_len(before)?;
            return Err(error);
        }
        self.bytes += self.unwritten.len() as u64;
        self.unwritten.clear();
        Ok(())
    }

    /// Forgets the records that stay in any case.
    fn trim(&mut self) -> io::Result<()> {
        let mut notes = self.journal.read()?.unwrap_or_default();
        notes.raise_floor((self.journal.first_unacked)());
        self.journal.write(&notes)?;
        let reopened = self.journal.open()?;
        (self.file, self.bytes) = (reopened.file, reopened.bytes);
        // While nothing is settled the journal grows, and is not read again for every line.
        self.trim_at = TRIMMED_BYTES.max(2 * self.bytes);
        Ok(())
    }
}

impl Notes {
    /// What is noted; a line that was torn by a kill is of a record whose delivery did not count. A record that starts
    /// within an earlier one replaces it: the earlier one was not written.
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

    /// Moves the floor over the records that stay, up to the first that comes again.
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

    /// Whether its source brings it again.
    fn is_replayable(&self, first_unacked: u64) -> bool {
        self.ack.is_some_and(|ack| ack >= first_unacked)
    }

    fn len(self) -> u64 {
        self.end - self.start
    }
}

#[cfg(test)]
mod tests;
