//! What others ask of an open output file: to be opened again, and to be on the disk.

use std::{
    io,
    sync::{Mutex, PoisonError, Weak},
};

use super::Writer;

/// Controls the file of a [`FileSink`](super::FileSink) from outside of its queue. Does nothing when the sink is gone.
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

    /// Opens the file under its path if another program moved or removed it, and returns whether one did. Waits for the record
    /// that is being written.
    ///
    /// # Errors
    /// A message with the path: records go on to the file before.
    pub fn reopen(&self) -> Result<bool, String> {
        let reopened = self.locked(|writer| writer.destination.reopen());
        let reopened = reopened.unwrap_or(Ok(false));
        reopened.map_err(|error| {
            format!(
                "{}: cannot open it again: {error}; continues to write to the file that was moved",
                self.name
            )
        })
    }

    /// Waits until every record that has been delivered is on the disk, rotated files included, and then the journal.
    ///
    /// # Errors
    /// What the disk did not take.
    pub fn sync(&self) -> io::Result<()> {
        let Some(unsynced) = self.locked(|writer| writer.destination.unsynced()) else {
            return Ok(());
        };
        let unsynced = unsynced?;
        // Without the lock: records are written meanwhile.
        unsynced.sync()?;
        self.locked(|writer| writer.destination.note_synced(&unsynced));
        Ok(())
    }

    fn locked<T>(&self, work: impl FnOnce(&mut Writer) -> T) -> Option<T> {
        let writer = self.writer.upgrade()?;
        let mut writer = writer.lock().unwrap_or_else(PoisonError::into_inner);
        Some(work(&mut writer))
    }
}
