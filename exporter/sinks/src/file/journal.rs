//! What a file keeps when a restart cuts off what its sources bring again.
//!
//! A source with positions reads again what was not settled at the last written position. Records of it stand between others:
//! a stage may let an earlier batch go after a later one, and telemetry of other sources comes only once. So the journal
//! notes every record before it is written, and no kill leaves one of which nothing is known: a line `START END RECEIPT`, or
//! `START END` for what comes only once. A line with one number says up to where all stays. `recovery` reads it after a restart.

mod recovery;

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Write},
    path::{Path, PathBuf},
    sync::Arc,
};

use pulsetrain_pipeline::Batch;

/// A journal that has grown over this is written anew, without what stays in any case.
const TRIMMED_BYTES: u64 = 64 << 10;

/// The journal of one file.
#[derive(Clone)]
pub struct FileJournal {
    path: PathBuf,
    settled: Arc<dyn Fn() -> u64 + Send + Sync>,
    behind: Arc<dyn Fn(Option<io::Error>) + Send + Sync>,
}

/// A journal that is being written.
pub(super) struct OpenJournal {
    journal: FileJournal,
    file: File,
    bytes: u64,
    /// Grown over this, it is written anew.
    trim_at: u64,
    /// Lines that could not be written yet.
    unwritten: String,
    /// How long the last line is.
    last: usize,
}

/// What a journal says.
#[derive(Debug, Default, PartialEq, Eq)]
struct Notes {
    /// Up to here all stays.
    floor: u64,
    /// The records behind it, in the order of the file.
    spans: Vec<Span>,
}

/// Where a record stands, and whose it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Span {
    start: u64,
    end: u64,
    /// The number of its receipt; none for what comes only once.
    receipt: Option<u64>,
}

impl FileJournal {
    /// A journal at `path`; `settled` gives the number of the first receipt that the last written position does not cover:
    /// it comes again, and those after it.
    pub fn new(path: impl Into<PathBuf>, settled: impl Fn() -> u64 + Send + Sync + 'static) -> Self {
        Self {
            path: path.into(),
            settled: Arc::new(settled),
            behind: Arc::new(drop),
        }
    }

    /// The same journal; `behind` is told why notes cannot be written, and when they are again. Meanwhile no position may be
    /// written that covers their records.
    #[must_use]
    pub fn telling(self, behind: impl Fn(Option<io::Error>) + Send + Sync + 'static) -> Self {
        Self {
            behind: Arc::new(behind),
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
        let new = self.path.with_extension("new");
        fs::write(&new, notes.text())?;
        fs::rename(new, &self.path)
    }
}

impl OpenJournal {
    /// Notes that `batch` is to stand between `start` and `end`. Where that cannot be written, it is tried again with the next one.
    pub(super) fn note(&mut self, batch: &Batch, start: u64, end: u64) {
        let was_behind = !self.unwritten.is_empty();
        let receipt = batch.receipt_number();
        let line = Span { start, end, receipt }.line();
        self.unwritten += &line;
        self.last = line.len();
        self.write_again(was_behind);
    }

    /// Forgets all notes, because someone else changed the file: all that it holds now, up to `floor`, stays.
    pub(super) fn restart_at(&mut self, floor: u64) {
        let was_behind = !self.unwritten.is_empty();
        self.unwritten = format!("{floor}\n");
        self.last = 0;
        self.write_again(was_behind);
    }

    /// Forgets the last note: its record could not be written.
    pub(super) fn take_back(&mut self) {
        match self.unwritten.len().checked_sub(self.last) {
            Some(rest) => {
                self.unwritten.truncate(rest);
                if rest == 0 && self.last > 0 {
                    (self.journal.behind)(None);
                }
            }
            None => {
                let rest = self.bytes - self.last as u64;
                // A note of a record that is not whole says nothing to a restart, so it may stay.
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

    fn write_again(&mut self, was_behind: bool) {
        let trouble = self.write().err();
        if trouble.is_some() != was_behind {
            (self.journal.behind)(trouble);
        }
    }

    fn write(&mut self) -> io::Result<()> {
        if self.bytes > self.trim_at {
            self.trim()?;
        }
        let before = self.bytes;
        let written = self.file.write_all(self.unwritten.as_bytes());
        if let Err(error) = written {
            // A torn line would spoil the one behind it.
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
        notes.raise_floor((self.journal.settled)());
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
            match (Span::parse(line), line.parse()) {
                (Some(span), _) => {
                    while notes.spans.pop_if(|before| before.end > span.start).is_some() {}
                    notes.spans.push(span);
                }
                (None, Ok(floor)) => {
                    notes = Self {
                        floor,
                        spans: Vec::new(),
                    };
                }
                _ => {}
            }
        }
        notes
    }

    fn text(&self) -> String {
        let spans: String = self.spans.iter().map(Span::line).collect();
        format!("{}\n{spans}", self.floor)
    }

    /// Moves the floor over the records that stay, up to the first that comes again.
    fn raise_floor(&mut self, settled: u64) {
        let mut floor = self.floor;
        let stays = |span: &&Span| {
            let stays = span.start == floor && !span.comes_again(settled);
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
        let receipt = numbers.next().transpose().ok()?;
        (start < end).then_some(Self { start, end, receipt })
    }

    fn line(&self) -> String {
        let Self { start, end, receipt } = self;
        match receipt {
            Some(receipt) => format!("{start} {end} {receipt}\n"),
            None => format!("{start} {end}\n"),
        }
    }

    /// Whether its source brings it again.
    fn comes_again(&self, settled: u64) -> bool {
        self.receipt.is_some_and(|receipt| receipt >= settled)
    }

    fn len(self) -> u64 {
        self.end - self.start
    }
}

#[cfg(test)]
mod tests;
