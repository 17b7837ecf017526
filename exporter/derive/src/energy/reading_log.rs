//! GPU readings on disk: steps that are replayed after a kill get the same energy as before.
//!
//! Steps are replayed after a kill, readings are not. A thread appends each batch of readings, after its length in four bytes, to
//! a file. A slow disk blocks nothing: batches that do not fit into the queue of the thread are dropped. A full file replaces the
//! previous one, so that the last minutes are always on disk.

use std::{
    fs::{self, File},
    io::{self, Write},
    path::{Path, PathBuf},
    sync::mpsc::{Receiver, SyncSender, sync_channel},
    thread,
};

use pulsetrain_pipeline::private_files;

/// The size at which a file replaces the previous one.
const FULL_BYTES: u64 = 4 << 20;

/// The most batches that wait for a slow disk; newer ones are dropped.
const MAX_WAITING: usize = 64;

/// Writes readings to disk.
#[derive(Debug)]
pub(super) struct ReadingLog(SyncSender<Vec<u8>>);

impl ReadingLog {
    /// Opens the log at `path` and returns its readings, the oldest first.
    pub(super) fn open(path: &Path) -> io::Result<(Self, Vec<Vec<u8>>)> {
        let (mut saved, _) = complete_batches(&read(&previous(path))?);
        let (newer, end) = complete_batches(&read(path)?);
        saved.extend(newer);
        let mut file = LogFile::open(path)?;
        // A record that a kill truncated would make later records unreadable.
        file.truncate(end)?;
        let (sender, pending) = sync_channel(MAX_WAITING);
        let name = "gpu-readings".to_owned();
        thread::Builder::new()
            .name(name)
            .spawn(move || file.append_all(&pending))?;
        Ok((Self(sender), saved))
    }

    /// Appends a batch of readings.
    pub(super) fn append(&self, readings: Vec<u8>) {
        // If it is dropped, the readings around it are interpolated.
        let _ = self.0.try_send(readings);
    }
}

/// The file that is being written.
struct LogFile {
    path: PathBuf,
    file: File,
    bytes: u64,
}

impl LogFile {
    fn open(path: &Path) -> io::Result<Self> {
        let file = private_files::file_options()
            .create(true)
            .append(true)
            .open(path)?;
        Ok(Self {
            path: path.to_owned(),
            bytes: file.metadata()?.len(),
            file,
        })
    }

    fn append_all(mut self, pending: &Receiver<Vec<u8>>) {
        for readings in pending {
            if self.append(&readings).is_err() {
                // Removes the incomplete record; later batches are tried again.
                let _ = self.truncate(self.bytes);
            }
        }
    }

    fn append(&mut self, readings: &[u8]) -> io::Result<()> {
        if self.bytes >= FULL_BYTES {
            fs::rename(&self.path, previous(&self.path))?;
            *self = Self::open(&self.path)?;
        }
        let length = u32::try_from(readings.len()).map_err(io::Error::other)?;
        let mut record = length.to_be_bytes().to_vec();
        record.extend_from_slice(readings);
        self.file.write_all(&record)?;
        self.bytes += record.len() as u64;
        Ok(())
    }

    fn truncate(&mut self, bytes: u64) -> io::Result<()> {
        self.bytes = bytes;
        self.file.set_len(bytes)
    }
}

/// Returns the complete batches, and the offset of their end.
fn complete_batches(bytes: &[u8]) -> (Vec<Vec<u8>>, u64) {
    let (mut batches, mut rest) = (Vec::new(), bytes);
    while let Some((length, after)) = rest.split_first_chunk::<4>()
        && let Ok(length) = usize::try_from(u32::from_be_bytes(*length))
        && let Some((batch, after)) = after.split_at_checked(length)
    {
        batches.push(batch.to_vec());
        rest = after;
    }
    (batches, (bytes.len() - rest.len()) as u64)
}

fn read(path: &Path) -> io::Result<Vec<u8>> {
    match fs::read(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        read => read,
    }
}

fn previous(path: &Path) -> PathBuf {
    path.with_extension("before")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn append(path: &Path, batches: &[&[u8]]) {
        let mut file = LogFile::open(path).expect("a file can be made");
        for batch in batches {
            file.append(batch).expect("there is room");
        }
    }

    #[test]
    fn complete_batches_are_read_again_and_a_truncated_one_is_removed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("readings.binpb");
        append(&path, &[b"one", b"two"]);
        let mut truncated = fs::read(&path).unwrap();
        truncated.extend_from_slice(b"\0\0\0\x05thr");
        fs::write(&path, truncated).unwrap();
        let (log, saved) = ReadingLog::open(&path).unwrap();
        assert_eq!(saved, [b"one", b"two"]);
        drop(log);
        append(&path, &[b"four"]);
        assert_eq!(
            complete_batches(&fs::read(&path).unwrap()).0,
            [&b"one"[..], b"two", b"four"]
        );
    }

    #[test]
    fn append_does_not_wait_for_a_disk_that_hangs() {
        let (sender, pending) = sync_channel(MAX_WAITING);
        let log = ReadingLog(sender);
        for _ in 0..2 * MAX_WAITING {
            log.append(b"readings".to_vec());
        }
        assert_eq!(pending.try_iter().count(), MAX_WAITING);
    }

    #[test]
    fn full_file_replaces_the_previous_one() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("readings.binpb");
        let large = vec![7; FULL_BYTES as usize];
        append(&path, &[b"gone", &large, b"new"]);
        append(&path, &[&large, b"newest"]);
        let (_, saved) = ReadingLog::open(&path).unwrap();
        let sizes: Vec<usize> = saved.iter().map(Vec::len).collect();
        assert_eq!(sizes, [3, large.len(), 6], "the first file is deleted");
    }
}
