//! Files that are whole whenever they are looked at.

use std::{
    fs::{self, File},
    io::{self, BufWriter, Write},
    path::Path,
};

/// Writes a file under another name and puts it in the place of the one that is there, if any.
pub(super) fn replace(
    path: &Path,
    write: impl FnOnce(&mut BufWriter<File>) -> io::Result<()>,
) -> io::Result<()> {
    let mut unfinished = path.as_os_str().to_owned();
    unfinished.push(".partial");
    let written = File::create(&unfinished).and_then(|file| {
        let mut file = BufWriter::new(file);
        write(&mut file)?;
        file.flush()?;
        fs::rename(&unfinished, path)
    });
    if written.is_err() {
        // What is left of it would only take room on a disk that may be full.
        let _ = fs::remove_file(&unfinished);
    }
    written
}
