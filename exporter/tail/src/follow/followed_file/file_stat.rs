//! The metadata by which a poll detects a change, and the head of a file.

use std::{
    fs::{File, Metadata},
    io,
    os::unix::fs::FileExt,
    time::{Duration, SystemTime},
};

use pulsetrain_formats::HEAD_BYTES;

use super::super::identity::Inode;

/// A file without writes for this long is read as it is, even if more bytes could identify its run better.
const SILENCE: Duration = Duration::from_secs(30);

/// The metadata that changes with each write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FileStat {
    inode: Inode,
    pub(super) len: u64,
    modified: Option<SystemTime>,
}

impl FileStat {
    pub(super) fn from_metadata(metadata: &Metadata) -> Self {
        Self {
            inode: Inode::from_metadata(metadata),
            len: metadata.len(),
            modified: metadata.modified().ok(),
        }
    }

    /// Returns whether the file has the same inode as `earlier` and is not shorter.
    pub(super) fn is_grown_from(&self, earlier: Self) -> bool {
        self.inode == earlier.inode && self.len >= earlier.len
    }
}

/// Returns whether a file had no writes for [`SILENCE`].
pub(super) fn is_silent(metadata: &Metadata) -> bool {
    let since = metadata.modified().map(|modified| modified.elapsed());
    since.is_ok_and(|since| since.is_ok_and(|since| since >= SILENCE))
}

/// Reads the first [`HEAD_BYTES`] of a file, or all of a shorter one.
pub(super) fn read_head(file: &File) -> io::Result<Vec<u8>> {
    let mut head = vec![0; HEAD_BYTES];
    let mut len = 0;
    while len < head.len() {
        match file.read_at(&mut head[len..], len as u64) {
            Ok(0) => break,
            Ok(count) => len += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    head.truncate(len);
    Ok(head)
}
