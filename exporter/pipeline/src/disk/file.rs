//! Opens the files of a folder. Another program may have put anything there: a FIFO blocks the one who opens it, and a link
//! to `/dev/zero` has no end.

use std::{
    fs::{self, File, Metadata, OpenOptions},
    io::{self, ErrorKind, Read},
    os::unix::fs::{FileTypeExt, OpenOptionsExt},
    path::Path,
};

use crate::private_files;

/// Opens a file to read it.
///
/// # Errors
/// Returns an error, of the kind `InvalidData`, if the path is not a regular file of at most `max_bytes`.
pub(super) fn open(path: &Path, max_bytes: u64) -> io::Result<File> {
    check(&fs::symlink_metadata(path)?, max_bytes)?;
    let file = guarded(OpenOptions::new().read(true)).open(path)?;
    check(&file.metadata()?, max_bytes)?;
    Ok(file)
}

/// Reads a file. The conditions of [`open`] apply.
pub(super) fn read(path: &Path, max_bytes: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    open(path, max_bytes)?.take(max_bytes).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Creates a private file, or truncates an existing regular file.
pub(super) fn create(path: &Path) -> io::Result<File> {
    match fs::symlink_metadata(path) {
        Ok(metadata) => check(&metadata, u64::MAX)?,
        Err(error) if error.kind() == ErrorKind::NotFound => {}
        Err(error) => return Err(error),
    }
    guarded(
        private_files::file_options()
            .write(true)
            .create(true)
            .truncate(true),
    )
    .open(path)
}

/// Makes an open fail for a link, and return at once for a FIFO.
fn guarded(options: &mut OpenOptions) -> &mut OpenOptions {
    options.custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK)
}

fn check(metadata: &Metadata, max_bytes: u64) -> io::Result<()> {
    let kind = metadata.file_type();
    let fault = if kind.is_fifo() {
        "it is a FIFO".to_owned()
    } else if kind.is_symlink() {
        "it is a symbolic link".to_owned()
    } else if kind.is_dir() {
        "it is a folder".to_owned()
    } else if !kind.is_file() {
        "it is a device or a socket".to_owned()
    } else if metadata.len() > max_bytes {
        format!(
            "it has {} bytes, more than the {max_bytes} of a file of the queue",
            metadata.len()
        )
    } else {
        return Ok(());
    };
    Err(io::Error::new(ErrorKind::InvalidData, fault))
}
