//! The file sink: every batch becomes one record of a file, or one line on stdout.
//!
//! `open` locks the file; `format` frames a batch; `output` appends the record and takes a torn one back; `journal` notes
//! which records a restart must not cut off; `foreign` keeps what others wrote, and `notice` reports it; `advice` words what
//! went wrong. No delivery is buffered: a batch that counts as delivered has been handed to the system.

mod advice;
mod foreign;
mod format;
mod journal;
mod notice;
mod open;
mod output;

use std::{
    io::{self, Seek, SeekFrom},
    path::Path,
    sync::{Arc, Mutex, PoisonError},
};

use pulsetrain_pipeline::{Batch, BoxFuture, Delivery, Sink};

pub use self::{format::FileFormat, journal::FileJournal, notice::FileNotice};
use self::{
    format::Record,
    journal::OpenJournal,
    open::{Opened, cannot_open},
    output::Output,
};
use crate::SinkError;

/// Writes batches to a file or to stdout.
///
/// The file is appended to, and locked: a second program that opens it gets [`SinkError::FileInUse`]. One that exists
/// already is [replaced](Self::create), [kept](Self::append), or cut back to what no source brings again
/// ([`recover`](Self::recover)). Records follow one another in the order of delivery, whatever their signal. Where a record
/// cannot be written completely (full disk, quota), the file is cut back to the end of the record before, so that it stays
/// readable, and the delivery is to be retried; a pipe or a terminal cannot be cut back and takes nothing more.
pub struct FileSink {
    name: String,
    writer: Arc<Mutex<Writer>>,
    notice: Option<FileNotice>,
}

struct Writer {
    format: FileFormat,
    output: Output,
    record: Record,
    /// Where records are noted, so that a restart knows whose they are.
    journal: Option<OpenJournal>,
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
        let opened = Opened::open(path)?;
        if opened.is_regular {
            let emptied = opened.file.set_len(0);
            emptied.map_err(|source| cannot_open(path, source))?;
        }
        Ok(Self::of_file(path, format, opened, 0, None))
    }

    /// Opens `path` to append to what it holds, whoever wrote that. A torn record at its end moves to another file.
    pub fn append(path: &Path) -> Result<Self, SinkError> {
        let format = FileFormat::of(path)?;
        let mut opened = Opened::open(path)?;
        if !opened.is_regular {
            return Ok(Self::of_file(path, format, opened, 0, None));
        }
        let kept = foreign::keep_complete(&mut opened.file, path, format);
        let (end, aside) = kept.map_err(|source| cannot_open(path, source))?;
        let notice = FileNotice {
            path: path.to_owned(),
            foreign: end,
            aside,
            unlocked: opened.unlocked.take(),
        };
        Ok(Self::of_file(path, format, opened, end, None).with_notice(notice))
    }

    /// Opens `path` after a restart: what its sources bring again is cut off, all else is kept, by what the `journal` says.
    /// A file that the journal does not describe is appended to.
    pub fn recover(path: &Path, journal: &FileJournal) -> Result<Self, SinkError> {
        let format = FileFormat::of(path)?;
        let mut opened = Opened::open(path)?;
        if !opened.is_regular {
            return Ok(Self::of_file(path, format, opened, 0, None));
        }
        let recovered = journal
            .recover(&mut opened.file, path, format)
            .and_then(|recovered| Ok((recovered, journal.open()?)));
        let (recovered, open) = recovered.map_err(|source| cannot_recover(path, journal, source))?;
        let notice = FileNotice {
            path: path.to_owned(),
            foreign: recovered.foreign,
            aside: recovered.aside,
            unlocked: opened.unlocked.take(),
        };
        Ok(Self::of_file(path, format, opened, recovered.end, Some(open)).with_notice(notice))
    }

    /// Opens `path` to go on at its end, where a sink of the same program wrote to it before.
    pub fn go_on(path: &Path, journal: Option<&FileJournal>) -> Result<Self, SinkError> {
        let format = FileFormat::of(path)?;
        let mut opened = Opened::open(path)?;
        let end = match opened.is_regular {
            true => opened.file.seek(SeekFrom::End(0)),
            false => Ok(0),
        };
        let ready = end.and_then(|end| Ok((end, journal.map(FileJournal::open).transpose()?)));
        let (end, journal) = ready.map_err(|source| cannot_open(path, source))?;
        Ok(Self::of_file(path, format, opened, end, journal))
    }

    /// What the user should know of the file, as it was when it was opened.
    pub fn notice(&self) -> Option<&FileNotice> {
        self.notice.as_ref()
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

    fn of_file(
        path: &Path,
        format: FileFormat,
        opened: Opened,
        end: u64,
        journal: Option<OpenJournal>,
    ) -> Self {
        Self::new(
            &path.display().to_string(),
            format,
            Output::file_from(opened.file, end),
            journal,
        )
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
            notice: None,
        }
    }

    fn with_notice(self, notice: FileNotice) -> Self {
        Self {
            notice: notice.worth_reporting(),
            ..self
        }
    }

    /// Runs `work` on the blocking pool: a slow disk or a slow reader of a pipe holds up no other task.
    async fn blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Writer) -> T + Send + 'static,
    ) -> Result<T, String> {
        let writer = Arc::clone(&self.writer);
        let work = move || work(&mut writer.lock().unwrap_or_else(PoisonError::into_inner));
        let done = tokio::task::spawn_blocking(work).await;
        done.map_err(|error| format!("the writer stopped: {error}"))
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
            match self.blocking(move |writer| writer.write(&batch)).await {
                Ok(Ok(())) => Delivery::Delivered,
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
            let finished = self.blocking(Writer::finish).await;
            finished.flatten().map_err(|message| self.words(&message))
        })
    }
}

impl Writer {
    fn write(&mut self, batch: &Batch) -> Result<(), WriteError> {
        let (head, body) = self
            .record
            .of(self.format, batch)
            .map_err(|error| WriteError::Final(error.to_string()))?;
        let written = self.output.written();
        append(&mut self.output, self.journal.as_mut(), batch, [head, body]).map_err(|error| {
            let message = advice::write(&error, &written);
            // A reader that is gone does not return, and nothing can follow half a record.
            match self.output.is_torn() || error.kind() == io::ErrorKind::BrokenPipe {
                true => WriteError::Final(message),
                false => WriteError::Temporary(message),
            }
        })
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

/// Notes and writes the record of `batch`, or leaves file and journal as they were.
fn append(
    output: &mut Output,
    journal: Option<&mut OpenJournal>,
    batch: &Batch,
    [head, body]: [&[u8]; 2],
) -> io::Result<()> {
    let changed = output.notice_change()?;
    let Some(journal) = journal else {
        return output.append(head, body);
    };
    if let Some(length) = changed {
        journal.restart_at(length);
    }
    let start = output.written().bytes;
    journal.note(batch, start, start + (head.len() + body.len()) as u64);
    output.append(head, body).inspect_err(|_| journal.take_back())
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
