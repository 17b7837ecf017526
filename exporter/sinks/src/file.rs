//! The file sink: every batch becomes one record of a file, or one line on stdout.
//!
//! `open` locks the file; `format` frames a batch; `output` appends the record and takes a torn one back; `journal` notes
//! which records a restart must not cut off; `destination` rotates and reopens the file, and `rotated` compresses and removes
//! what was rotated; `control` is for those who want a file reopened or synced. `foreign` keeps what others wrote, and
//! `notice` reports it; `advice` words what went wrong. No delivery is buffered: a batch that counts as delivered has been
//! handed to the system.

mod advice;
mod config;
mod control;
mod destination;
mod foreign;
mod format;
mod identity;
mod journal;
mod notice;
mod open;
mod output;
mod rotated;

use std::{
    io::{self, Seek, SeekFrom},
    path::Path,
    sync::{Arc, Mutex},
};

use pulsetrain_pipeline::{Batch, BoxFuture, Delivery, Sink};

pub(crate) use self::open::cannot_open;
pub use self::{
    config::{FileCompression, FileConfig, FilePermissions, FileRotation},
    control::FileControl,
    format::FileFormat,
    journal::FileJournal,
    notice::FileNotice,
};
use self::{
    destination::Destination, format::Record, identity::FileIdentity, journal::OpenJournal, open::Opened,
    output::Output,
};
use crate::{SinkError, blocking};

/// Writes batches to a file or to stdout.
///
/// The file is appended to, and locked: a second program that opens it gets [`SinkError::FileInUse`]. One that exists
/// already is [replaced](Self::create), [kept](Self::append), or cut back to what no source brings again
/// ([`recover`](Self::recover)). Records follow one another in the order of delivery, whatever their signal. Where a record
/// cannot be written completely (full disk, quota), the file is cut back to the end of the record before, so that it stays
/// readable, and the delivery is to be retried; a pipe or a terminal cannot be cut back and takes nothing more.
///
/// A file that is removed is created again before the next record. One that is moved is written until
/// [`FileControl::reopen`]; one that is truncated is continued at its new end.
pub struct FileSink {
    name: String,
    writer: Arc<Mutex<Writer>>,
    notice: Option<FileNotice>,
}

struct Writer {
    format: FileFormat,
    record: Record,
    destination: Destination,
}

/// Why a record is not written.
enum WriteError {
    /// It never can be.
    Final(String),
    /// It may be later.
    Temporary(String),
}

impl FileSink {
    /// Opens `path`, whose ending names the format, `.jsonl` or `.binpb`, and replaces its content.
    pub fn create(path: &Path) -> Result<Self, SinkError> {
        let format = FileFormat::of(path)?;
        let opened = Opened::open(path, None)?;
        if opened.is_regular {
            let emptied = opened.file.set_len(0);
            emptied.map_err(|source| cannot_open(path, source))?;
        }
        Self::of_file(path, format, opened, 0, None, &FileConfig::default())
    }

    /// Opens `path` to append to what it holds, whoever wrote that. A torn record at its end moves to another file.
    pub fn append(path: &Path, config: &FileConfig) -> Result<Self, SinkError> {
        let format = FileFormat::of(path)?;
        let mut opened = Opened::open(path, config.permissions)?;
        if !opened.is_regular {
            return Self::of_file(path, format, opened, 0, None, config);
        }
        let kept = foreign::keep_complete(&mut opened.file, path, format);
        let (end, aside) = kept.map_err(|source| cannot_open(path, source))?;
        let notice = FileNotice {
            path: path.to_owned(),
            foreign: end,
            aside,
            repeated: 0,
            unlocked: opened.unlocked.take(),
        };
        Ok(Self::of_file(path, format, opened, end, None, config)?.with_notice(notice))
    }

    /// Opens `path` after a restart: what its sources bring again is cut off, all else is kept, by the `journal`.
    /// A file that the journal does not describe is appended to.
    pub fn recover(path: &Path, journal: &FileJournal, config: &FileConfig) -> Result<Self, SinkError> {
        let format = FileFormat::of(path)?;
        let mut opened = Opened::open(path, config.permissions)?;
        if !opened.is_regular {
            return Self::of_file(path, format, opened, 0, None, config);
        }
        let recovered = journal
            .recover(&mut opened.file, path, format)
            .and_then(|recovered| Ok((recovered, journal.open()?)));
        let (recovered, open) = recovered.map_err(|source| cannot_recover(path, journal, source))?;
        let notice = FileNotice {
            path: path.to_owned(),
            foreign: recovered.foreign,
            aside: recovered.aside,
            repeated: recovered.repeated,
            unlocked: opened.unlocked.take(),
        };
        let sink = Self::of_file(path, format, opened, recovered.end, Some(open), config)?;
        Ok(sink.with_notice(notice))
    }

    /// Opens `path` to go on at its end, where a sink of the same program wrote to it before.
    pub fn resume(
        path: &Path,
        journal: Option<&FileJournal>,
        config: &FileConfig,
    ) -> Result<Self, SinkError> {
        let format = FileFormat::of(path)?;
        let mut opened = Opened::open(path, config.permissions)?;
        let end = match opened.is_regular {
            true => opened.file.seek(SeekFrom::End(0)),
            false => Ok(0),
        };
        let ready = end.and_then(|end| {
            let identity = FileIdentity::of(&opened.file)?;
            let journal = journal.map(|journal| journal.open_for(identity, end));
            Ok((end, journal.transpose()?))
        });
        let (end, journal) = ready.map_err(|source| cannot_open(path, source))?;
        Self::of_file(path, format, opened, end, journal, config)
    }

    /// Returns what others control the file by.
    pub fn control(&self) -> FileControl {
        FileControl::new(&self.name, Arc::downgrade(&self.writer))
    }

    /// What the user should know of the file, as it was when it was opened.
    pub fn notice(&self) -> Option<&FileNotice> {
        self.notice.as_ref()
    }

    /// The name of the file at `path`, whatever the working directory.
    pub fn output_name(path: &Path) -> String {
        let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        path.display().to_string()
    }

    /// JSON lines on stdout. Fails where the process has none.
    pub fn stdout() -> Result<Self, SinkError> {
        let output = Output::stdout().map_err(|source| cannot_open("stdout".as_ref(), source))?;
        Ok(Self::new(
            "stdout",
            FileFormat::JsonLines,
            Destination::fixed(output),
        ))
    }

    fn of_file(
        path: &Path,
        format: FileFormat,
        opened: Opened,
        end: u64,
        journal: Option<OpenJournal>,
        config: &FileConfig,
    ) -> Result<Self, SinkError> {
        let destination = Destination::file(path, format, opened, end, journal, config);
        let destination = destination.map_err(|source| cannot_open(path, source))?;
        Ok(Self::new(&path.display().to_string(), format, destination))
    }

    fn new(place: &str, format: FileFormat, destination: Destination) -> Self {
        let writer = Writer {
            format,
            record: Record::default(),
            destination,
        };
        Self {
            name: format!("file {place}"),
            writer: Arc::new(Mutex::new(writer)),
            notice: None,
        }
    }

    fn with_notice(self, notice: FileNotice) -> Self {
        Self {
            notice: notice.worth_reporting(),
            ..self
        }
    }

    fn words(&self, message: &str) -> String {
        format!("{}: {message}", self.name)
    }
}

impl Sink for FileSink {
    fn name(&self) -> &str {
        &self.name
    }

    fn deliver<'a>(&'a mut self, batch: &'a Batch) -> BoxFuture<'a, Delivery> {
        let batch = batch.clone();
        Box::pin(async move {
            match blocking(&self.writer, move |writer| writer.write(&batch)).await {
                Ok(Ok(None)) => Delivery::Delivered,
                // The record is written; what happened to rotated files is a warning.
                Ok(Ok(Some(fault))) => Delivery::Partial {
                    rejected: 0,
                    message: self.words(&fault),
                },
                Ok(Err(WriteError::Temporary(message))) => Delivery::Retry {
                    after: None,
                    message: self.words(&message),
                },
                Ok(Err(WriteError::Final(message))) | Err(message) => Delivery::Refused {
                    message: self.words(&message),
                },
            }
        })
    }

    fn finish(&mut self) -> BoxFuture<'_, Result<(), String>> {
        Box::pin(async {
            let finished = blocking(&self.writer, Writer::finish).await;
            finished.flatten().map_err(|message| self.words(&message))
        })
    }
}

impl Writer {
    /// Writes the record of `batch`. Returns a warning about rotated files.
    fn write(&mut self, batch: &Batch) -> Result<Option<String>, WriteError> {
        let record = self
            .record
            .of(self.format, batch)
            .map_err(|error| WriteError::Final(error.to_string()))?;
        let destination = &mut self.destination;
        let length = record.iter().map(|part| part.len()).sum();
        let written = destination.written();
        let prepared = destination.prepare(length);
        prepared
            .and_then(|()| destination.append(batch, record))
            .map_err(|error| {
                let message = advice::write(&error, &written);
                // A reader that is gone does not return, and nothing can follow half a record.
                match destination.is_torn() || error.kind() == io::ErrorKind::BrokenPipe {
                    true => WriteError::Final(message),
                    false => WriteError::Temporary(message),
                }
            })?;
        Ok(destination.take_fault())
    }

    fn finish(&mut self) -> Result<(), String> {
        // The file holds everything; only what a kill would have cut off is not known.
        self.destination.catch_up();
        let written = self.destination.written();
        let unsynced = self.destination.unsynced();
        unsynced
            .and_then(|unsynced| unsynced.sync())
            .map_err(|error| advice::write(&error, &written))
    }
}

fn cannot_recover(path: &Path, journal: &FileJournal, source: io::Error) -> SinkError {
    SinkError::RecoverFile {
        path: path.to_owned(),
        journal: journal.path().to_owned(),
        source,
    }
}

#[cfg(test)]
mod tests;
