//! A temporary folder for the files of one test.

use std::{
    fs,
    path::{Path, PathBuf},
};

use tempfile::TempDir;

/// An empty folder; dropped, it is gone with all that is in it.
#[derive(Debug)]
pub struct Folder(TempDir);

impl Default for Folder {
    fn default() -> Self {
        Self::new()
    }
}

impl Folder {
    /// A folder of its own.
    pub fn new() -> Self {
        Self(tempfile::tempdir().expect("a temporary folder can be made"))
    }

    /// The folder itself.
    pub fn root(&self) -> &Path {
        self.0.path()
    }

    /// Where a file of this name is, or will be.
    pub fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Writes a file with this text, or these bytes.
    pub fn file(&self, name: &str, bytes: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(name);
        fs::write(&path, bytes).expect("a temporary file can be written");
        path
    }
}
