//! The current output file, and the switch to the next one: by rotation, or because another program moved the
//! file.
//!
//! A switch has three steps: the file is renamed, a new file is opened under the old name, and a new journal
//! starts while the old one is kept. After a kill between them, the journal still has the identity of its
//! file, so a restart finds the file under its new name.

use std::{
    fs::{self, File},
    io,
    path::{Path, PathBuf},
    sync::Arc,
    time::UNIX_EPOCH,
};

use pulsetrain_pipeline::{
    Batch,
    clock::{self, Instant},
};

use super::{
    config::{FileCompression, FileConfig},
    foreign,
    format::FileFormat,
    identity::{self, FileIdentity},
    journal::OpenJournal,
    open::Opened,
    output::{Output, WrittenCounts},
    rotated::{RotatedFileError, RotatedFileWorker, RotatedFiles},
};
use crate::file_series::FileSeries;

/// The output of a file sink.
pub(super) struct Destination {
    output: Output,
    /// The journal of records, by which a restart knows which records to keep.
    journal: Option<OpenJournal>,
    /// `None` for outputs that cannot be rotated or reopened: a pipe, a device, stdout.
    place: Option<RegularFile>,
    unsynced: UnsyncedFiles,
}

/// A regular file and its settings.
struct RegularFile {
    /// The path without symbolic links.
    path: PathBuf,
    format: FileFormat,
    config: FileConfig,
    identity: FileIdentity,
    created: Instant,
    series: Option<FileSeries>,
    rotated_worker: RotatedFileWorker,
}

/// Files that are no longer written and may not be synced yet.
#[derive(Clone, Default)]
pub(super) struct UnsyncedFiles {
    /// Outputs, and the folder with their names.
    outputs: Vec<Arc<File>>,
    journals: Vec<Arc<File>>,
}

impl Destination {
    /// Returns an output that cannot be rotated or reopened.
    pub(super) fn fixed(output: Output) -> Self {
        Self {
            output,
            journal: None,
            place: None,
            unsynced: UnsyncedFiles::default(),
        }
    }

    /// Returns an open file that holds complete records up to `end`.
    pub(super) fn file(
        path: &Path,
        format: FileFormat,
        opened: Opened,
        end: u64,
        journal: Option<OpenJournal>,
        config: &FileConfig,
    ) -> io::Result<Self> {
        let place = match opened.is_regular {
            true => Some(RegularFile::new(
                identity::resolved(path)?,
                format,
                config,
                &opened.file,
            )?),
            false => None,
        };
        let mut destination = Self {
            output: Output::file_from(opened.file, end),
            journal,
            place,
            unsynced: UnsyncedFiles::default(),
        };
        destination.record_folder();
        destination.process_rotated();
        Ok(destination)
    }

    /// Returns the number of records written here, and the size of the file.
    pub(super) fn written(&self) -> WrittenCounts {
        self.output.written()
    }

    /// Returns whether an incomplete record could not be removed, so that nothing more can be written.
    pub(super) fn is_torn(&self) -> bool {
        self.output.is_torn()
    }

    /// Prepares for a record of `length` bytes: reopens a removed file, and rotates a full or old one.
    pub(super) fn prepare(&mut self, length: usize) -> io::Result<()> {
        if self.journal.as_mut().is_some_and(OpenJournal::remove_acked) {
            self.process_rotated();
        }
        if self.place.is_none() {
            return Ok(());
        }
        if self.output.is_removed()? {
            self.reopen()?;
        }
        let written = self.output.written().bytes;
        match &self.place {
            Some(place) if place.is_due(written, length as u64) => self.rotate(),
            _ => Ok(()),
        }
    }

    /// Journals and writes the record of `batch`. After an error, file and journal are unchanged.
    pub(super) fn append(&mut self, batch: &Batch, [head, body]: [&[u8]; 2]) -> io::Result<()> {
        let changed = self.output.notice_change()?;
        let Some(journal) = &mut self.journal else {
            return self.output.append(head, body);
        };
        if let Some(length) = changed {
            journal.restart_at(length);
        }
        let start = self.output.written().bytes;
        journal.record(batch, start, start + (head.len() + body.len()) as u64);
        self.output
            .append(head, body)
            .inspect_err(|_| journal.undo_last())
    }

    /// Reopens the path if its file was moved or removed. Returns whether it was.
    pub(super) fn reopen(&mut self) -> io::Result<bool> {
        let Some(place) = &self.place else {
            return Ok(false);
        };
        if FileIdentity::at(&place.path)? == Some(place.identity) {
            return Ok(false);
        }
        let mut opened = place.open()?;
        let (end, _) = foreign::keep_complete(&mut opened.file, &place.path, place.format)?;
        self.switch(opened.file, end)?;
        Ok(true)
    }

    /// Renames the file to a name with the time, and creates the next one.
    fn rotate(&mut self) -> io::Result<()> {
        let Some((place, series)) = self
            .place
            .as_ref()
            .and_then(|place| Some((place, place.series.as_ref()?)))
        else {
            return Ok(());
        };
        let rotated = series.next(clock::unix_now());
        let path = place.path.clone();
        series.record_created(&rotated);
        match fs::rename(&path, &rotated) {
            // Another program moved the file, so the next one can be created now.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            renamed => renamed?,
        }
        let opened = place.open();
        let switched = opened.and_then(|opened| self.switch(opened.file, 0));
        if let Err(error) = switched {
            // The next record tries again. Nothing else has changed.
            let _ = fs::rename(&rotated, &path);
            let message = format!("cannot rotate it to {}: {error}", rotated.display());
            return Err(io::Error::new(error.kind(), message));
        }
        self.process_rotated();
        Ok(())
    }

    /// Switches to `next`, which holds complete records up to `end`.
    fn switch(&mut self, next: File, end: u64) -> io::Result<()> {
        let identity = FileIdentity::from_file(&next)?;
        if let Some(journal) = &mut self.journal {
            let before = journal.next_file(identity, end)?;
            self.unsynced.journals.push(Arc::new(before));
        }
        let before = std::mem::replace(&mut self.output, Output::file_from(next, end));
        self.unsynced.outputs.push(Arc::new(before.into_file()));
        if let Some(place) = &mut self.place {
            (place.identity, place.created) = (identity, clock::now());
        }
        self.record_folder();
        Ok(())
    }

    /// Records that the folder's names changed and need a sync.
    fn record_folder(&mut self) {
        let folder = self.place.as_ref().map(|place| identity::folder(&place.path));
        // If a folder cannot be opened, its names cannot be synced either.
        self.unsynced
            .outputs
            .extend(folder.and_then(|folder| File::open(folder).ok()).map(Arc::new));
    }

    /// Compresses rotated files whose records are acknowledged, and removes the oldest.
    fn process_rotated(&mut self) {
        let Some(place) = &self.place else { return };
        if let (Some(series), Some(rotation)) = (&place.series, &place.config.rotation) {
            let unacked = self.journal.as_ref().map(OpenJournal::files_with_unacked);
            let files = RotatedFiles::list(series, rotation, &unacked.unwrap_or_default());
            place.rotated_worker.start(files);
        }
    }

    /// Removes and returns the error of compressing or removing rotated files.
    pub(super) fn take_fault(&mut self) -> Option<RotatedFileError> {
        self.place.as_ref()?.rotated_worker.take_fault()
    }

    /// Writes journal entries that could not be written before.
    pub(super) fn catch_up(&mut self) {
        if let Some(journal) = &mut self.journal {
            journal.catch_up();
        }
    }

    /// Returns handles of everything that may not be synced yet.
    pub(super) fn unsynced(&self) -> io::Result<UnsyncedFiles> {
        let mut unsynced = self.unsynced.clone();
        unsynced.outputs.extend(self.output.handle()?.map(Arc::new));
        if let Some(journal) = &self.journal {
            unsynced.journals.extend(journal.handles()?.map(Arc::new));
        }
        Ok(unsynced)
    }

    /// Records that these files are synced.
    pub(super) fn record_synced(&mut self, synced: &UnsyncedFiles) {
        let is_left =
            |files: &[Arc<File>], file: &Arc<File>| !files.iter().any(|other| Arc::ptr_eq(other, file));
        self.unsynced
            .outputs
            .retain(|file| is_left(&synced.outputs, file));
        self.unsynced
            .journals
            .retain(|file| is_left(&synced.journals, file));
    }
}

impl RegularFile {
    fn new(path: PathBuf, format: FileFormat, config: &FileConfig, file: &File) -> io::Result<Self> {
        let metadata = file.metadata()?;
        // If the file system does not record creation times, the age starts now.
        let age = metadata.created().ok().and_then(|created| {
            let now = UNIX_EPOCH + clock::unix_now();
            now.duration_since(created).ok()
        });
        let now = clock::now();
        let ending = path.extension().unwrap_or_default().to_string_lossy();
        let series = FileSeries::from_path(&path, &format!(".{ending}"), FileCompression::ENDINGS)
            .map(FileSeries::numbering_all);
        Ok(Self {
            format,
            config: config.clone(),
            identity: FileIdentity::from(&metadata),
            created: age.and_then(|age| now.checked_sub(age)).unwrap_or(now),
            series: series.filter(|_| config.rotation.is_some()),
            rotated_worker: RotatedFileWorker::default(),
            path,
        })
    }

    fn open(&self) -> io::Result<Opened> {
        Opened::open(&self.path, self.config.permissions).map_err(io::Error::other)
    }

    /// Returns whether a record of `length` bytes starts the next file.
    fn is_due(&self, written: u64, length: u64) -> bool {
        let Some(rotation) = &self.config.rotation else {
            return false;
        };
        let is_old = rotation
            .max_age
            .is_some_and(|max_age| clock::now().saturating_duration_since(self.created) >= max_age);
        written > 0 && (is_old || written.saturating_add(length) > rotation.max_bytes)
    }
}

impl UnsyncedFiles {
    /// Syncs the outputs, then the journals.
    pub(super) fn sync(&self) -> io::Result<()> {
        self.files().try_for_each(|file| file.sync_all())
    }

    /// Returns the files in the order of their sync.
    fn files(&self) -> impl Iterator<Item = &Arc<File>> {
        self.outputs.iter().chain(&self.journals)
    }
}

#[cfg(test)]
mod tests;
