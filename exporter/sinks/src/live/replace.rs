//! Atomic replacement of a file.

use std::{io, path::Path};

use crate::UnfinishedFile;

/// Writes a temporary file and renames it to `path`.
pub(super) fn replace(
    path: &Path,
    write: impl FnOnce(&mut UnfinishedFile) -> io::Result<()>,
) -> io::Result<()> {
    let mut file = UnfinishedFile::create(path)?;
    write(&mut file)?;
    file.finish()
}
