//! The file sink: each batch becomes one record of a file, or one line on stdout.
//!
//! `open` locks the file, `format` frames a batch, and `output` appends the record or removes an incomplete
//! one. `journal` records which data a restart must keep. `destination` rotates and reopens the file;
//! `rotated` compresses and removes rotated files. `control` lets other tasks reopen or sync the file.
//! `foreign` keeps data of other programs, `notice` reports it, and `advice` words errors. Writes are not
//! buffered: a delivered batch is in the system's page cache.

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

use pulsetrain_pipeline::{Batch, BoxFuture, Delivery, Problem, Sink};

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
    output::Output, rotated::RotatedFileError,
};
use crate::{SinkError, blocking};

/// Writes batches to a file or to stdout.
///
/// The file is opened for appending and locked; a second program gets [`SinkError::FileInUse`]. An existing
/// file is [replaced](Self::create), [kept](Self::append), or truncated to its last acknowledged record
/// ([`recover`](Self::recover)). Records of all signals are in order of delivery. If a record cannot be
/// written completely (full disk, quota), the file is truncated to the record before and the delivery is
/// retried. A pipe or a terminal cannot be truncated; after such an error it accepts no more records.
///
/// A removed file is created again before the next record. A moved file is written until
/// [`FileControl::reopen`]. After a truncation by another program, writing continues at the new end.
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

/// The reason why a record is not written.
enum WriteError {
    /// A permanent error.
    Final(Problem),
    /// A temporary error.
    Temporary(Problem),
}

impl FileSink {
    /// Opens `path` and replaces its content. The extension names the format, `.jsonl` or `.binpb`.
    pub fn create(path: &Path) -> Result<Self, SinkError> {
        let format = FileFormat::from_path(path)?;
        let opened = Opened::open(path, None)?;
        if opened.is_regular {
            let emptied = opened.file.set_len(0);
            emptied.map_err(|source| cannot_open(path, source))?;
        }
        Self::of_file(path, format, opened, 0, None, &FileConfig::default())
    }

    /// Opens `path` to append to its content, even if another program wrote it. An incomplete record at its
    /// end moves to another file.
    pub fn append(path: &Path, config: &FileConfig) -> Result<Self, SinkError> {
        let format = FileFormat::from_path(path)?;
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

    /// Opens `path` after a restart. By the `journal`, records that sources replay are cut off and all others
    /// stay. A file that the journal does not describe is appended to.
    pub fn recover(path: &Path, journal: &FileJournal, config: &FileConfig) -> Result<Self, SinkError> {
        let format = FileFormat::from_path(path)?;
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

    /// Opens `path` to append after a sink of the same process.
    pub fn resume(
        path: &Path,
        journal: Option<&FileJournal>,
        config: &FileConfig,
    ) -> Result<Self, SinkError> {
        let format = FileFormat::from_path(path)?;
        let mut opened = Opened::open(path, config.permissions)?;
        let end = match opened.is_regular {
            true => opened.file.seek(SeekFrom::End(0)),
            false => Ok(0),
        };
        let ready = end.and_then(|end| {
            let identity = FileIdentity::from_file(&opened.file)?;
            let journal = journal.map(|journal| journal.open_for(identity, end));
            Ok((end, journal.transpose()?))
        });
        let (end, journal) = ready.map_err(|source| cannot_open(path, source))?;
        Self::of_file(path, format, opened, end, journal, config)
    }

    /// Returns the control handle of the file.
    pub fn control(&self) -> FileControl {
        FileControl::new(&self.name, Arc::downgrade(&self.writer))
    }

    /// Returns what the user needs to know about the file as it was opened.
    pub fn notice(&self) -> Option<&FileNotice> {
        self.notice.as_ref()
    }

    /// Returns the name of the output at `path`, independent of the working directory.
    pub fn output_name(path: &Path) -> String {
        let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        path.display().to_string()
    }

    /// Returns a sink that writes JSON lines to stdout.
    ///
    /// # Errors
    /// The process has no stdout.
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

    fn about(&self, problem: impl Into<Problem>) -> Problem {
        problem.into().about(&self.name)
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
                // The record is written. An error with rotated files is a warning.
                Ok(Ok(Some(fault))) => Delivery::Partial {
                    rejected: 0,
                    problem: self.about(fault.to_string()),
                },
                Ok(Err(WriteError::Temporary(problem))) => Delivery::Retry {
                    after: None,
                    problem: self.about(problem),
                },
                Ok(Err(WriteError::Final(problem))) => Delivery::Refused(self.about(problem)),
                Err(stopped) => Delivery::Refused(self.about(stopped)),
            }
        })
    }

    fn finish(&mut self) -> BoxFuture<'_, Result<(), Problem>> {
        Box::pin(async {
            let finished = blocking(&self.writer, Writer::finish).await;
            finished
                .map_err(Problem::from)
                .flatten()
                .map_err(|problem| self.about(problem))
        })
    }
}

impl Writer {
    /// Writes the record of `batch`. Returns a warning about rotated files.
    fn write(&mut self, batch: &Batch) -> Result<Option<RotatedFileError>, WriteError> {
        let record = self
            .record
            .frame(self.format, batch)
            .map_err(|error| WriteError::Final(Problem::new(error.to_string())))?;
        let destination = &mut self.destination;
        let length = record.iter().map(|part| part.len()).sum();
        let written = destination.written();
        let prepared = destination.prepare(length);
        prepared
            .and_then(|()| destination.append(batch, record))
            .map_err(|error| {
                let problem = advice::write(&error, &written);
                // A pipe without a reader stays broken, and no record can follow an incomplete one.
                match destination.is_torn() || error.kind() == io::ErrorKind::BrokenPipe {
                    true => WriteError::Final(problem),
                    false => WriteError::Temporary(problem),
                }
            })?;
        Ok(destination.take_fault())
    }

    fn finish(&mut self) -> Result<(), Problem> {
        // The file is complete. Only its journal entries were missing.
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
