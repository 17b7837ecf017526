//! Opens an output file for appending, with a lock against a second writer.

use std::{
    fs::{File, OpenOptions, Permissions, TryLockError},
    io,
    os::unix::fs::{OpenOptionsExt, PermissionsExt},
    path::Path,
};

use super::{advice, config::FilePermissions};
use crate::SinkError;

/// A file that is open for appending. Its lock ends with it, also when the process is killed.
pub(super) struct Opened {
    pub(super) file: File,
    /// Whether it is a regular file. A pipe or a device has no end and no lock.
    pub(super) is_regular: bool,
    /// The reason why there is no lock, on a file system without locks.
    pub(super) unlocked: Option<io::Error>,
}

impl Opened {
    /// Opens or creates `path` and sets its permissions.
    pub(super) fn open(path: &Path, permissions: Option<FilePermissions>) -> Result<Self, SinkError> {
        let (file, is_regular) = open(path, permissions).map_err(|source| cannot_open(path, source))?;
        let unlocked = match is_regular {
            true => lock(&file, path)?,
            false => None,
        };
        Ok(Self {
            file,
            is_regular,
            unlocked,
        })
    }
}

pub(crate) fn cannot_open(path: &Path, source: io::Error) -> SinkError {
    SinkError::OpenFile {
        path: path.to_owned(),
        remedy: advice::open(&source),
        source,
    }
}

fn open(path: &Path, permissions: Option<FilePermissions>) -> io::Result<(File, bool)> {
    // A pipe must not be opened for reading too, because the end of its reader would be hidden.
    let is_other = path
        .metadata()
        .is_ok_and(|metadata| !metadata.is_file() && !metadata.is_dir());
    // Append mode leaves no hole after another program truncates the file.
    let file = OpenOptions::new()
        .read(!is_other)
        .append(true)
        .create(true)
        // The permissions apply from the creation on.
        .mode(permissions.map_or(0o666, FilePermissions::mode))
        .open(path)?;
    if let Some(permissions) = permissions.filter(|_| !is_other) {
        set_permissions(&file, permissions)?;
    }
    Ok((file, !is_other))
}

fn set_permissions(file: &File, permissions: FilePermissions) -> io::Result<()> {
    let mode = file.metadata()?.permissions().mode() & 0o7777;
    if mode == permissions.mode() {
        return Ok(());
    }
    file.set_permissions(Permissions::from_mode(permissions.mode()))
}

/// Locks a file. Returns an error as a value if its file system has no locks.
fn lock(file: &File, path: &Path) -> Result<Option<io::Error>, SinkError> {
    match file.try_lock() {
        Ok(()) => Ok(None),
        Err(TryLockError::WouldBlock) => Err(SinkError::FileInUse {
            path: path.to_owned(),
        }),
        Err(TryLockError::Error(error)) => Ok(Some(error)),
    }
}
