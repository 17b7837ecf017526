//! Opening an output file: for appending, and with a lock against a second writer.

use std::{
    fs::{File, OpenOptions, TryLockError},
    io,
    os::unix::fs::MetadataExt,
    path::Path,
    sync::{Arc, Mutex, PoisonError, Weak},
};

use super::{Writer, advice};
use crate::SinkError;

/// The device and the inode of a file, which stay when it is renamed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FileId(u64, u64);

/// A file that is open for appending. Its lock ends with it, also when the process is killed.
pub(super) struct Opened {
    pub(super) file: File,
    pub(super) id: FileId,
    /// A pipe or a device has no end and no lock.
    pub(super) is_regular: bool,
    /// Why there is no lock, on a file system without locks.
    pub(super) unlocked: Option<io::Error>,
}

impl FileId {
    pub(super) fn of(path: &Path) -> io::Result<Self> {
        path.metadata().map(|found| Self(found.dev(), found.ino()))
    }
}

impl Opened {
    /// Opens `path` as it is, or creates it.
    pub(super) fn open(path: &Path) -> Result<Self, SinkError> {
        let (file, is_regular) = open(path).map_err(|source| cannot_open(path, source))?;
        let found = file.metadata().map_err(|source| cannot_open(path, source))?;
        let unlocked = match is_regular {
            true => lock(&file, path)?,
            false => None,
        };
        Ok(Self {
            file,
            id: FileId(found.dev(), found.ino()),
            is_regular,
            unlocked,
        })
    }
}

pub(super) fn cannot_open(path: &Path, source: io::Error) -> SinkError {
    SinkError::OpenFile {
        path: path.to_owned(),
        advice: advice::open(&source),
        source,
    }
}

fn open(path: &Path) -> io::Result<(File, bool)> {
    // A pipe must not be opened for reading too: its reader could go unnoticed then.
    let is_other = path
        .metadata()
        .is_ok_and(|metadata| !metadata.is_file() && !metadata.is_dir());
    // Appending leaves no hole where a rotation truncates the file.
    let file = OpenOptions::new()
        .read(!is_other)
        .append(true)
        .create(true)
        .open(path)?;
    Ok((file, !is_other))
}

/// Locks a file, or returns why its file system has no locks.
fn lock(file: &File, path: &Path) -> Result<Option<io::Error>, SinkError> {
    match file.try_lock() {
        Ok(()) => Ok(None),
        Err(TryLockError::WouldBlock) => Err(SinkError::FileInUse {
            path: path.to_owned(),
        }),
        Err(TryLockError::Error(error)) => Ok(Some(error)),
    }
}

/// The files that this program writes. A sink that is opened again, while an earlier one still drains, shares its writer.
static WRITERS: Mutex<Vec<(FileId, Weak<Mutex<Writer>>)>> = Mutex::new(Vec::new());

/// Returns the writer of a file that this program has open.
pub(super) fn writer_of(path: &Path) -> Option<Arc<Mutex<Writer>>> {
    let id = FileId::of(path).ok()?;
    let writers = WRITERS.lock().unwrap_or_else(PoisonError::into_inner);
    let mut alive = writers.iter().filter(|(other, _)| *other == id);
    alive.find_map(|(_, writer)| writer.upgrade())
}

/// Makes a writer known to [`writer_of`].
pub(super) fn share(id: FileId, writer: &Arc<Mutex<Writer>>) {
    let mut writers = WRITERS.lock().unwrap_or_else(PoisonError::into_inner);
    writers.retain(|(_, writer)| writer.strong_count() > 0);
    writers.push((id, Arc::downgrade(writer)));
}
