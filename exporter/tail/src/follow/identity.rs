//! The identity of a file: its inode and hashes of its bytes, because names and inodes are reused.

use std::{
    fs::{File, Metadata},
    io,
    os::unix::fs::{FileExt, MetadataExt},
};

use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_64;

/// The number of leading bytes that identify a file.
pub(super) const HEAD: usize = 1024;

/// The number of bytes before the read offset that distinguish files with the same leading bytes.
const LAST: usize = 256;

/// The number of a file on a device.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq, Hash, Serialize)]
pub(super) struct Inode {
    device: u64,
    inode: u64,
}

/// The identity of a file: its inode, and a hash of its leading bytes as far as they are parsed. Parsed bytes never change.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq, Serialize)]
pub(super) struct FileIdentity {
    pub(super) inode: Inode,
    head_bytes: u64,
    head_hash: u64,
    /// The last parsed bytes; `None` if all parsed bytes are leading bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    last: Option<LastBytes>,
}

/// A hash of the bytes before an offset. A restarted run writes the same leading bytes, and other bytes here.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq, Serialize)]
pub(super) struct LastBytes {
    end: u64,
    hash: u64,
}

impl LastBytes {
    /// Hashes the bytes before `end`. Returns `None` if the leading bytes reach `end`, or the file is shorter.
    pub(super) fn before(file: &File, end: u64) -> io::Result<Option<Self>> {
        let mut last = [0; LAST];
        if end <= HEAD as u64 {
            return Ok(None);
        }
        match file.read_exact_at(&mut last, end - LAST as u64) {
            Ok(()) => Ok(Some(Self {
                end,
                hash: xxh3_64(&last),
            })),
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(None),
            Err(error) => Err(error),
        }
    }
}

impl Inode {
    pub(super) fn from_metadata(metadata: &Metadata) -> Self {
        Self {
            device: metadata.dev(),
            inode: metadata.ino(),
        }
    }

    /// Returns whether the inode has this number, on any device.
    pub(super) fn has_number(&self, inode: u64) -> bool {
        self.inode == inode
    }
}

impl FileIdentity {
    /// The identity of a file whose parsed bytes are `done`.
    pub(super) fn new(inode: Inode, done: &[u8]) -> Self {
        let head = &done[..done.len().min(HEAD)];
        Self {
            inode,
            head_bytes: head.len() as u64,
            head_hash: xxh3_64(head),
            last: None,
        }
    }

    /// The same identity with the last parsed bytes.
    pub(super) fn read_to(self, last: Option<LastBytes>) -> Self {
        Self { last, ..self }
    }

    /// Returns whether the identity has leading bytes, and not only an inode.
    pub(super) fn has_bytes(&self) -> bool {
        self.head_bytes > 0
    }

    /// Returns whether an open file has this identity.
    pub(super) fn is_of(&self, file: &File) -> io::Result<bool> {
        Ok(Inode::from_metadata(&file.metadata()?) == self.inode && self.has_content(file)?)
    }

    /// Returns whether a file still holds the parsed bytes: the same leading and the same last ones.
    pub(super) fn has_content(&self, file: &File) -> io::Result<bool> {
        let last = self.last.map(|last| LastBytes::before(file, last.end));
        Ok(self.has_head(file)? && last.transpose()?.is_none_or(|last| last == self.last))
    }

    fn has_head(&self, file: &File) -> io::Result<bool> {
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
    fn file_identity_survives_growth_but_not_a_change_of_its_leading_bytes() {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(b"[\n  {\"log\": 1}").unwrap();
        let inode = Inode::from_metadata(&file.as_file().metadata().unwrap());
        let identity = FileIdentity::new(inode, b"[\n  {\"log\": 1}");
        file.write_all(b",\n  {\"log\": 2}").unwrap();
        let open = File::open(file.path()).unwrap();
        assert!(identity.is_of(&open).unwrap());
        fs::write(file.path(), "[\n  {\"log\": 3},\n  {\"log\": 2}").unwrap();
        assert!(!identity.is_of(&open).unwrap());
        fs::write(file.path(), "[\n").unwrap();
        assert!(!identity.is_of(&open).unwrap());
    }

    #[test]
    fn files_with_equal_heads_but_different_last_bytes_have_different_identities() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let [first, second] = ["1", "2"].map(|run| [&"head ".repeat(HEAD), run, &"x".repeat(20)].concat());
        fs::write(file.path(), &first).unwrap();
        let open = File::open(file.path()).unwrap();
        let inode = Inode::from_metadata(&open.metadata().unwrap());
        let last = LastBytes::before(&open, first.len() as u64).unwrap();
        let identity = FileIdentity::new(inode, first.as_bytes()).read_to(last);
        assert!(last.is_some() && identity.is_of(&open).unwrap());
        for written in [&second, &first[..first.len() - 1]] {
            fs::write(file.path(), written).unwrap();
            assert!(!identity.is_of(&open).unwrap());
        }
        fs::write(file.path(), [&first, "more"].concat()).unwrap();
        assert!(identity.is_of(&open).unwrap());
    }
}
