//! What GPUs said, kept on the disk: steps that are read again after a kill are told of again, and by the same readings.
//!
//! Readings come only once, steps again. So each batch of readings goes, behind its length, to the end of a file, by a thread
//! of its own: a slow disk holds up nothing, and what it cannot take is left out. A file that is full takes the place of the
//! one before, so that the last minutes are always there.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Write},
    path::{Path, PathBuf},
    sync::mpsc::{Receiver, SyncSender, sync_channel},
    thread,
};

/// How large the file becomes before it takes the place of the one before.
const FULL_BYTES: u64 = 4 << 20;

/// How many batches wait for a slow disk; of more the newest are left out.
const WAITING: usize = 64;

/// Keeps readings.
#[derive(Debug)]
pub(super) struct Memory(SyncSender<Vec<u8>>);

impl Memory {
    /// Opens the memory at `path`, and gives the readings that it holds, the oldest first.
    pub(super) fn open(path: &Path) -> io::Result<(Self, Vec<Vec<u8>>)> {
        let (mut kept, _) = whole(&read(&before(path))?);
        let (newer, end) = whole(&read(path)?);
        kept.extend(newer);
        let mut file = Writing::open(path)?;
        // What was torn by a kill would spoil what comes behind it.
        file.cut(end)?;
        let (sender, waiting) = sync_channel(WAITING);
        let name = "gpu-readings".to_owned();
        thread::Builder::new()
            .name(name)
            .spawn(move || file.keep_all(&waiting))?;
        Ok((Self(sender), kept))
    }

    /// Keeps a batch of readings.
    pub(super) fn keep(&self, readings: Vec<u8>) {
        // Without this one, what it would have told is told by those around it.
        let _ = self.0.try_send(readings);
    }
}

/// The file that is being written.
struct Writing {
    path: PathBuf,
    file: File,
    bytes: u64,
}

impl Writing {
    fn open(path: &Path) -> io::Result<Self> {
        let file = OpenOptions::new().create(true).append(true).open(path)?;
        Ok(Self {
            path: path.to_owned(),
            bytes: file.metadata()?.len(),
            file,
        })
    }

    fn keep_all(mut self, waiting: &Receiver<Vec<u8>>) {
        for readings in waiting {
            if self.keep(&readings).is_err() {
                // Nothing but whole batches; a disk that is full has room again one day.
                let _ = self.cut(self.bytes);
            }
        }
    }

    fn keep(&mut self, readings: &[u8]) -> io::Result<()> {
        if self.bytes >= FULL_BYTES {
            fs::rename(&self.path, before(&self.path))?;
            *self = Self::open(&self.path)?;
        }
        let length = u32::try_from(readings.len()).map_err(io::Error::other)?;
        let mut record = length.to_be_bytes().to_vec();
        record.extend_from_slice(readings);
        self.file.write_all(&record)?;
        self.bytes += record.len() as u64;
        Ok(())
    }

    fn cut(&mut self, bytes: u64) -> io::Result<()> {
        self.bytes = bytes;
        self.file.set_len(bytes)
    }
}

/// The batches that are whole, and where they end.
fn whole(bytes: &[u8]) -> (Vec<Vec<u8>>, u64) {
    let (mut batches, mut rest) = (Vec::new(), bytes);
    while let Some((length, behind)) = rest.split_first_chunk::<4>()
        && let Ok(length) = usize::try_from(u32::from_be_bytes(*length))
        && let Some((batch, behind)) = behind.split_at_checked(length)
    {
        batches.push(batch.to_vec());
        rest = behind;
    }
    (batches, (bytes.len() - rest.len()) as u64)
}

fn read(path: &Path) -> io::Result<Vec<u8>> {
    match fs::read(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        read => read,
    }
}

fn before(path: &Path) -> PathBuf {
    path.with_extension("before")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keep(path: &Path, batches: &[&[u8]]) {
        let mut file = Writing::open(path).expect("a file can be made");
        for batch in batches {
            file.keep(batch).expect("there is room");
        }
    }

    #[test]
    fn what_is_kept_is_there_again_but_what_a_kill_tore() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("readings.binpb");
        keep(&path, &[b"one", b"two"]);
        let mut torn = fs::read(&path).unwrap();
        torn.extend_from_slice(b"\0\0\0\x05thr");
        fs::write(&path, torn).unwrap();
        let (memory, kept) = Memory::open(&path).unwrap();
        assert_eq!(kept, [b"one", b"two"]);
        drop(memory);
        keep(&path, &[b"four"]);
        assert_eq!(whole(&fs::read(&path).unwrap()).0, [&b"one"[..], b"two", b"four"]);
    }

    #[test]
    fn a_full_file_takes_the_place_of_the_one_before() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("readings.binpb");
        let large = vec![7; FULL_BYTES as usize];
        keep(&path, &[b"gone", &large, b"new"]);
        keep(&path, &[&large, b"newest"]);
        let (_, kept) = Memory::open(&path).unwrap();
        let sizes: Vec<usize> = kept.iter().map(Vec::len).collect();
        assert_eq!(sizes, [3, large.len(), 6], "what was before is gone");
    }
}
