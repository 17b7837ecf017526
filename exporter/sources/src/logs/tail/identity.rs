//! Which file it is: not its name, which another one may take, nor its inode alone, which the system gives again.

use std::{
    fs::{File, Metadata},
    io,
    os::unix::fs::{FileExt, MetadataExt},
};

use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_64;

/// How many of the first bytes tell a file from others.
pub(super) const HEAD: usize = 1024;

/// A file on a device.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq, Hash, Serialize)]
pub(super) struct Inode {
    device: u64,
    inode: u64,
}

/// A file on a device, with its first bytes: those that are done with, because only they never change.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq, Serialize)]
pub(super) struct FileIdentity {
    pub(super) inode: Inode,
    head_bytes: u64,
    head_hash: u64,
}

impl Inode {
    pub(super) fn of(metadata: &Metadata) -> Self {
        Self {
            device: metadata.dev(),
            inode: metadata.ino(),
        }
    }

    /// Whether it has this number, on whichever device.
    pub(super) fn has_number(&self, inode: u64) -> bool {
        self.inode == inode
    }
}

impl FileIdentity {
    /// The identity of a file that begins with `done`.
    pub(super) fn new(inode: Inode, done: &[u8]) -> Self {
        let head = &done[..done.len().min(HEAD)];
        Self {
            inode,
            head_bytes: head.len() as u64,
            head_hash: xxh3_64(head),
        }
    }

    /// Whether there are bytes to tell it by, and not only its inode.
    pub(super) fn has_bytes(&self) -> bool {
        self.head_bytes > 0
    }

    /// Whether an open file is this one.
    pub(super) fn is_of(&self, file: &File) -> io::Result<bool> {
        Ok(Inode::of(&file.metadata()?) == self.inode && self.has_head(file)?)
    }

    /// Whether a file still begins with the same bytes.
    pub(super) fn has_head(&self, file: &File) -> io::Result<bool> {
        let mut head = [0; HEAD];
        let wanted = usize::try_from(self.head_bytes).map_or(HEAD, |bytes| bytes.min(HEAD));
        match file.read_exact_at(&mut head[..wanted], 0) {
            Ok(()) => Ok(xxh3_64(&head[..wanted]) == self.head_hash),
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(false),
            Err(error) => Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{fs, io::Write};

    use super::*;

    #[test]
    fn a_file_is_known_by_its_first_bytes_while_it_grows_and_no_longer_when_they_change() {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(b"[\n  {\"log\": 1}").unwrap();
        let inode = Inode::of(&file.as_file().metadata().unwrap());
        let identity = FileIdentity::new(inode, b"[\n  {\"log\": 1}");
        file.write_all(b",\n  {\"log\": 2}").unwrap();
        let open = File::open(file.path()).unwrap();
        assert!(identity.is_of(&open).unwrap());
        fs::write(file.path(), "[\n  {\"log\": 3},\n  {\"log\": 2}").unwrap();
        assert!(!identity.is_of(&open).unwrap());
        fs::write(file.path(), "[\n").unwrap();
        assert!(!identity.is_of(&open).unwrap());
    }
}
