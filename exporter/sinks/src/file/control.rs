//! Requests to an open output file from other tasks: reopen and sync.

use std::{
    io,
    sync::{Mutex, PoisonError, Weak},
};

use super::Writer;
use crate::SinkError;

/// Controls the file of a [`FileSink`](super::FileSink) from outside its queue. Does nothing after the sink
/// is dropped.
#[derive(Clone)]
pub struct FileControl {
    name: String,
    writer: Weak<Mutex<Writer>>,
}

impl FileControl {
    pub(super) fn new(name: &str, writer: Weak<Mutex<Writer>>) -> Self {
        Self {
            name: name.to_owned(),
            writer,
        }
    }

    /// Reopens the path if another program moved or removed its file. Returns whether one did. Waits for the
    /// record that is being written.
    ///
    /// # Errors
    /// A path that cannot be opened. Records continue in the earlier file.
    pub fn reopen(&self) -> Result<bool, SinkError> {
        let reopened = self.locked(|writer| writer.destination.reopen());
        let reopened = reopened.unwrap_or(Ok(false));
        reopened.map_err(|source| SinkError::ReopenFile {
            sink: self.name.clone(),
            source,
        })
    }

    /// Syncs every delivered record to the disk, rotated files included, and then the journal.
    ///
    /// # Errors
    /// A file that cannot be synced.
    pub fn sync(&self) -> io::Result<()> {
        let Some(unsynced) = self.locked(|writer| writer.destination.unsynced()) else {
            return Ok(());
        };
        let unsynced = unsynced?;
        // The lock is released, so that records are written meanwhile.
        unsynced.sync()?;
        self.locked(|writer| writer.destination.record_synced(&unsynced));
        Ok(())
    }

    fn locked<T>(&self, work: impl FnOnce(&mut Writer) -> T) -> Option<T> {
        let writer = self.writer.upgrade()?;
        let mut writer = writer.lock().unwrap_or_else(PoisonError::into_inner);
        Some(work(&mut writer))
    }
}
