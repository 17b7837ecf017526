//! What a file was like at a look, and how its beginning is read.

use std::{
    fs::{File, Metadata},
    io,
    os::unix::fs::FileExt,
    time::{Duration, SystemTime},
};

use pulsetrain_formats::HEAD_BYTES;

use super::super::identity::Inode;

/// What has not been written to for so long is taken as it is, even if more could be said of its run.
const PATIENCE: Duration = Duration::from_secs(30);

/// By what it is seen that a file has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Seen {
    inode: Inode,
    pub(super) len: u64,
    modified: Option<SystemTime>,
}

impl Seen {
    pub(super) fn of(metadata: &Metadata) -> Self {
        Self {
            inode: Inode::of(metadata),
            len: metadata.len(),
            modified: metadata.modified().ok(),
        }
    }

    /// Whether it may be the same file as an earlier look found, at most longer.
    pub(super) fn is_grown_from(&self, earlier: Self) -> bool {
        self.inode == earlier.inode && self.len >= earlier.len
    }
}

/// Whether nobody has written to a file for long.
pub(super) fn is_silent(metadata: &Metadata) -> bool {
    let since = metadata.modified().map(|modified| modified.elapsed());
    since.is_ok_and(|since| since.is_ok_and(|since| since >= PATIENCE))
}

/// The first bytes of a file: so many that format and run can be told, where there are so many.
pub(super) fn head_of(file: &File) -> io::Result<Vec<u8>> {
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
