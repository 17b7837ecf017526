//! A temporary folder for the files of one test.

use std::{
    fs::{self, Permissions},
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
};

use tempfile::TempDir;

/// An empty folder, which is removed with its content when it is dropped.
#[derive(Debug)]
pub struct Folder(TempDir);

impl Default for Folder {
    fn default() -> Self {
        Self::new()
    }
}

impl Folder {
    /// Creates a folder.
    pub fn new() -> Self {
        Self(tempfile::tempdir().expect("a temporary folder can be made"))
    }

    /// Creates a folder that every user may enter.
    pub fn for_all() -> Self {
        let folder = Self::new();
        let permissions = Permissions::from_mode(0o755);
        fs::set_permissions(folder.root(), permissions).expect("permissions can be set");
        folder
    }

    /// Returns the path of the folder.
    pub fn root(&self) -> &Path {
        self.0.path()
    }

    /// Returns the path of a file in the folder, which need not exist.
    pub fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Writes a file with this text or these bytes, and returns its path.
    pub fn file(&self, name: &str, bytes: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(name);
        fs::write(&path, bytes).expect("a temporary file can be written");
        path
    }
}
