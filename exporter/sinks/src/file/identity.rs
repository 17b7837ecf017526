//! The identity of a file under any name: device and inode.

use std::{
    fs::{self, File, Metadata},
    io,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
};

/// Returns the target of a symbolic link at `path`, or `path` itself.
pub(super) fn resolved(path: &Path) -> io::Result<PathBuf> {
    match path.is_symlink() {
        true => path.canonicalize(),
        false => Ok(path.to_owned()),
    }
}

/// Returns the folder of a file.
pub(super) fn folder(path: &Path) -> &Path {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    folder.unwrap_or(Path::new("."))
}

/// The identity of an existing file. A file system without stable inodes changes it at a restart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FileIdentity {
    device: u64,
    inode: u64,
}

impl FileIdentity {
    /// Returns the identity of an open file.
    pub(super) fn from_file(file: &File) -> io::Result<Self> {
        file.metadata().map(|metadata| Self::from(&metadata))
    }

    /// Returns the identity of the file at `path`, or `None` if no file exists.
    pub(super) fn at(path: &Path) -> io::Result<Option<Self>> {
        match fs::metadata(path) {
            Ok(metadata) => Ok(Some(Self::from(&metadata))),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Finds the file in `folder` under its current name.
    pub(super) fn find_in(self, folder: &Path) -> io::Result<Option<PathBuf>> {
        for entry in fs::read_dir(folder)? {
            let entry = entry?;
            // A file that is removed meanwhile does not match.
            let metadata = entry.metadata().ok().filter(Metadata::is_file);
            if metadata.is_some_and(|metadata| Self::from(&metadata) == self) {
                return Ok(Some(entry.path()));
            }
        }
        Ok(None)
    }

    /// Parses the text of [`line`](Self::line).
    pub(super) fn parse(line: &str) -> Option<Self> {
        let (device, inode) = line.strip_prefix("file ")?.split_once(' ')?;
        Some(Self {
            device: device.parse().ok()?,
            inode: inode.parse().ok()?,
        })
    }

    /// Returns the line of a journal.
    pub(super) fn line(self) -> String {
        let Self { device, inode } = self;
        format!("file {device} {inode}\n")
    }
}

impl From<&Metadata> for FileIdentity {
    fn from(metadata: &Metadata) -> Self {
        Self {
            device: metadata.dev(),
            inode: metadata.ino(),
        }
    }
}
