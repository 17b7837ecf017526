//! The file sink: every batch becomes one record of a file, or one line on stdout.
//!
//! `format` frames a batch; `output` writes the record in place and takes a torn one back; `journal` notes which records a
//! restart must not cut off; `advice` words what went wrong. There is no buffer behind a delivery: a batch that counts as delivered has been handed to the system.

mod advice;
mod format;
mod journal;
mod output;

use std::{
    fs::{File, OpenOptions},
    io::{self, Seek, SeekFrom},
    path::Path,
    sync::{Arc, Mutex, PoisonError},
};

use pulsetrain_pipeline::{Batch, BoxFuture, Delivery, Sink};

pub use self::{format::FileFormat, journal::FileJournal};
use self::{format::Record, journal::OpenJournal, output::Output};
use crate::SinkError;

/// Writes batches to a file or to stdout.
///
/// The file is written in place: one that exists already is emptied first, or cut back to what no source brings again
/// ([`recover`](Self::recover)). Records follow one another in the order of delivery, whatever their signal. Where a record cannot be written whole (full disk, quota), the file is cut back to the
/// end of the record before, so that it stays readable; a pipe or a terminal cannot be cut back and takes nothing more.
pub struct FileSink {
    name: String,
    writer: Arc<Mutex<Writer>>,
}

struct Writer {
    format: FileFormat,
    output: Output,
    record: Record,
    /// Where records are noted, so that a restart knows whose they are.
    journal: Option<OpenJournal>,
}

impl FileSink {
    /// Opens `path`, whose ending says the format: `.jsonl` or `.binpb`.
    pub fn create(path: &Path) -> Result<Self, SinkError> {
        let format = FileFormat::of(path)?;
        let file = File::create(path).map_err(|source| cannot_open(path, source))?;
        Ok(Self::of_file(path, format, Output::file(file), None))
    }

    /// Opens `path` after a restart: what its sources bring again is cut off, all else is kept, by what the `journal` says.
    pub fn recover(path: &Path, journal: &FileJournal) -> Result<Self, SinkError> {
        let format = FileFormat::of(path)?;
        let (mut file, is_regular) = open(path).map_err(|source| cannot_open(path, source))?;
        if !is_regular {
            return Ok(Self::of_file(path, format, Output::file(file), None));
        }
        let recovered = journal
            .recover(&mut file, format)
            .and_then(|end| Ok((end, journal.open()?)));
        let (end, open) = recovered.map_err(|source| cannot_recover(path, journal, source))?;
        Ok(Self::of_file(
            path,
            format,
            Output::file_from(file, end),
            Some(open),
        ))
    }

    /// Opens `path` to go on at its end, where a sink of the same program wrote to it before.
    pub fn go_on(path: &Path, journal: Option<&FileJournal>) -> Result<Self, SinkError> {
        let format = FileFormat::of(path)?;
        let opened = open(path).and_then(|(mut file, is_regular)| {
            let end = match is_regular {
                true => file.seek(SeekFrom::End(0))?,
                false => 0,
            };
            Ok((file, end, journal.map(FileJournal::open).transpose()?))
        });
        let (file, end, journal) = opened.map_err(|source| cannot_open(path, source))?;
        Ok(Self::of_file(path, format, Output::file_from(file, end), journal))
    }

    /// The name of the file at `path`, wherever the program stands.
    pub fn output_name(path: &Path) -> String {
        let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        path.display().to_string()
    }

    /// JSON lines on stdout. Fails where the process has none.
    pub fn stdout() -> Result<Self, SinkError> {
        let output = Output::stdout().map_err(|source| cannot_open("stdout".as_ref(), source))?;
        Ok(Self::new("stdout", FileFormat::JsonLines, output, None))
    }

    fn of_file(path: &Path, format: FileFormat, output: Output, journal: Option<OpenJournal>) -> Self {
        Self::new(&path.display().to_string(), format, output, journal)
    }

    fn new(place: &str, format: FileFormat, output: Output, journal: Option<OpenJournal>) -> Self {
        let writer = Writer {
            format,
            output,
            record: Record::default(),
            journal,
        };
        Self {
            name: format!("file {place}"),
            writer: Arc::new(Mutex::new(writer)),
        }
    }

    /// Runs `work` on the blocking pool: a slow disk or a slow reader of a pipe holds up no other task.
    async fn blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Writer) -> Result<T, String> + Send + 'static,
    ) -> Result<T, String> {
        let writer = Arc::clone(&self.writer);
        let work = move || work(&mut writer.lock().unwrap_or_else(PoisonError::into_inner));
        let done = tokio::task::spawn_blocking(work).await;
        done.unwrap_or_else(|error| Err(format!("the writer stopped: {error}")))
            .map_err(|message| format!("{}: {message}", self.name))
    }
}

impl Sink for FileSink {
    fn name(&self) -> &str {
        &self.name
    }

    fn deliver<'a>(&'a mut self, batch: &'a Batch) -> BoxFuture<'a, Delivery> {
        let batch = batch.clone();
        Box::pin(async move {
            match self.blocking(move |writer| writer.write(&batch)).await {
                Ok(()) => Delivery::Delivered,
                Err(message) => Delivery::Refused { message },
            }
        })
    }

    fn finish(&mut self) -> BoxFuture<'_, Result<(), String>> {
        Box::pin(self.blocking(Writer::finish))
    }
}

impl Writer {
    fn write(&mut self, batch: &Batch) -> Result<(), String> {
        let (head, body) = self
            .record
            .of(self.format, batch)
            .map_err(|error| error.to_string())?;
        let written = self.output.written();
        if let Some(journal) = &mut self.journal {
            let length = (head.len() + body.len()) as u64;
            journal.note(batch, written.bytes, written.bytes + length);
        }
        let appended = self.output.append(head, body);
        if let (Err(_), Some(journal)) = (&appended, &mut self.journal) {
            journal.take_back();
        }
        appended.map_err(|error| advice::write(&error, &written))
    }

    fn finish(&mut self) -> Result<(), String> {
        if let Some(journal) = &mut self.journal {
            // The file holds everything; only what a kill would have cut off is not known.
            journal.catch_up();
        }
        let written = self.output.written();
        self.output
            .sync()
            .map_err(|error| advice::write(&error, &written))
    }
}

fn cannot_open(path: &Path, source: io::Error) -> SinkError {
    SinkError::OpenFile {
        path: path.to_owned(),
        advice: advice::open(&source),
        source,
    }
}

fn cannot_recover(path: &Path, journal: &FileJournal, source: io::Error) -> SinkError {
    SinkError::RecoverFile {
        path: path.to_owned(),
        journal: journal.path().to_owned(),
        source,
    }
}

/// Opens a file as it is, and says whether it is one: a pipe or a device has no end.
fn open(path: &Path) -> io::Result<(File, bool)> {
    // A pipe must not be opened for reading too: its reader could go unnoticed then.
    let is_other = path
        .metadata()
        .is_ok_and(|metadata| !metadata.is_file() && !metadata.is_dir());
    let file = OpenOptions::new()
        .read(!is_other)
        .write(true)
        .create(true)
        .truncate(false)
        .open(path)?;
    Ok((file, !is_other))
}

#[cfg(test)]
mod tests;
