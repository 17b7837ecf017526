//! Files that are complete whenever they are looked at.

use std::{io, path::Path};

use crate::UnfinishedFile;

/// Writes a file under another name and puts it in the place of the one that is there, if any.
pub(super) fn replace(
    path: &Path,
    write: impl FnOnce(&mut UnfinishedFile) -> io::Result<()>,
) -> io::Result<()> {
    let mut file = UnfinishedFile::create(path)?;
    write(&mut file)?;
    file.finish()
}
