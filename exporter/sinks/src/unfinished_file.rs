//! An output file that gets its name when it is complete.

use std::{
    fs::{self, File},
    io::{self, BufWriter, Write},
    os::fd::AsFd,
    path::{Path, PathBuf},
};

/// The highest number in the name of a partial file.
const MAX_PARTIAL_NUMBER: u32 = 99;

/// A file that is written as `NAME.partial` and renamed to `NAME` by [`finish`](Self::finish).
///
/// If `NAME.partial` exists, this file is `NAME.1.partial`, and so on. It keeps the permissions of the file
/// that it replaces. If it is dropped before [`finish`](Self::finish), it is removed and an earlier `NAME`
/// stays, unless [`remove_replaced`](Self::remove_replaced) was called. A pipe or a device cannot be renamed, so it is
/// written directly.
#[derive(Debug)]
pub struct UnfinishedFile {
    /// `None` after [`complete`](Self::complete).
    file: Option<BufWriter<File>>,
    /// The final path.
    path: PathBuf,
    /// The path until then, or `None` for a pipe or a device.
    partial: Option<PathBuf>,
}

impl UnfinishedFile {
    /// Creates the partial file of `path`.
    ///
    /// # Errors
    /// The folder does not exist or is not writable.
    pub fn create(path: &Path) -> io::Result<Self> {
        // A symbolic link stays, and its target is replaced.
        let path = path.canonicalize().unwrap_or_else(|_| path.to_owned());
        let is_special = fs::metadata(&path).is_ok_and(|found| !found.is_file());
        let (file, partial) = if is_special {
            (File::options().write(true).open(&path)?, None)
        } else {
            let (file, partial) = create_partial(&path)?;
            (file, Some(partial))
        };
        // From here, an error removes the partial file.
        let unfinished = Self {
            file: Some(BufWriter::new(file)),
            path,
            partial,
        };
        unfinished.copy_permissions()?;
        Ok(unfinished)
    }

    /// Opens the standard output, which is written directly.
    ///
    /// # Errors
    /// The standard output is closed.
    pub fn standard_output() -> io::Result<Self> {
        let file = File::from(io::stdout().as_fd().try_clone_to_owned()?);
        Ok(Self {
            file: Some(BufWriter::new(file)),
            path: PathBuf::from("-"),
            partial: None,
        })
    }

    /// Copies the permissions of the file that it will replace.
    fn copy_permissions(&self) -> io::Result<()> {
        match (&self.file, &self.partial, fs::metadata(&self.path)) {
            (Some(file), Some(_), Ok(replaced)) => file.get_ref().set_permissions(replaced.permissions()),
            _ => Ok(()),
        }
    }

    /// Flushes, syncs and closes the file. It keeps its partial name until [`finish`](Self::finish).
    ///
    /// # Errors
    /// The disk is full.
    pub fn complete(&mut self) -> io::Result<()> {
        if let Some(mut file) = self.file.take() {
            file.flush()?;
            if self.partial.is_some() {
                // After a crash, the name must not belong to an empty file.
                file.get_ref().sync_all()?;
            }
        }
        Ok(())
    }

    /// Removes the file that it will replace, if there is one. A pipe or a device stays.
    ///
    /// # Errors
    /// The earlier file cannot be removed.
    pub fn remove_replaced(&self) -> io::Result<()> {
        match self.partial.as_ref().map(|_| fs::remove_file(&self.path)) {
            Some(Err(error)) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }

    /// Flushes and syncs the file, then renames it.
    ///
    /// # Errors
    /// The disk is full, or the name is a folder. The partial file is removed.
    pub fn finish(mut self) -> io::Result<()> {
        self.complete()?;
        if let Some(partial) = &self.partial {
            fs::rename(partial, &self.path)?;
            self.partial = None;
        }
        Ok(())
    }
}

impl Drop for UnfinishedFile {
    fn drop(&mut self) {
        if let Some(partial) = &self.partial {
            // A partial file would use space on a disk that may be full.
            let _ = fs::remove_file(partial);
        }
    }
}

impl Write for UnfinishedFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.file {
            Some(file) => file.write(bytes),
            None => Err(io::ErrorKind::BrokenPipe.into()),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.as_mut().map_or(Ok(()), Write::flush)
    }
}

/// Creates the first of `NAME.partial`, `NAME.1.partial`, ... that does not exist.
fn create_partial(path: &Path) -> io::Result<(File, PathBuf)> {
    let mut number = 0;
    loop {
        let partial = partial_name(path, number);
        match File::create_new(&partial) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists && number < MAX_PARTIAL_NUMBER => {
                number += 1;
            }
            created => return created.map(|file| (file, partial)),
        }
    }
}

fn partial_name(path: &Path, number: u32) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    if number > 0 {
        name.push(format!(".{number}"));
    }
    name.push(".partial");
    name.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).unwrap();
        let mut names: Vec<_> = entries
            .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
            .collect();
        names.sort();
        names
    }

    #[test]
    fn file_gets_its_final_name_only_when_finished() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("out.txt");
        let mut file = UnfinishedFile::create(&path).unwrap();
        file.write_all(b"new").unwrap();
        assert_eq!(names(folder.path()), ["out.txt.partial"]);
        file.complete().unwrap();
        file.remove_replaced().unwrap();
        assert_eq!(names(folder.path()), ["out.txt.partial"]);
        assert!(file.write_all(b"more").is_err());
        file.finish().unwrap();
        assert_eq!(names(folder.path()), ["out.txt"]);
        assert_eq!(fs::read(&path).unwrap(), b"new");
    }

    #[test]
    fn unfinished_file_keeps_the_earlier_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("out.txt");
        fs::write(&path, "old").unwrap();
        let mut file = UnfinishedFile::create(&path).unwrap();
        file.write_all(b"half").unwrap();
        drop(file);
        assert_eq!(names(folder.path()), ["out.txt"]);
        assert_eq!(fs::read(&path).unwrap(), b"old");
    }

    #[test]
    fn symbolic_link_is_kept_and_a_device_is_not_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let (path, link) = (folder.path().join("out.txt"), folder.path().join("link"));
        fs::write(&path, "old").unwrap();
        std::os::unix::fs::symlink(&path, &link).unwrap();
        let mut file = UnfinishedFile::create(&link).unwrap();
        file.write_all(b"new").unwrap();
        file.remove_replaced().unwrap();
        assert!(link.is_symlink() && !path.exists());
        file.finish().unwrap();
        assert!(link.is_symlink());
        assert_eq!(fs::read(&path).unwrap(), b"new");
        let mut device = UnfinishedFile::create(Path::new("/dev/null")).unwrap();
        device.write_all(b"gone").unwrap();
        device.remove_replaced().unwrap();
        device.finish().unwrap();
        assert!(!Path::new("/dev/null.partial").exists());
    }

    #[test]
    fn partial_file_of_another_program_and_permissions_are_kept() {
        use std::os::unix::fs::PermissionsExt;

        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("out.txt");
        let theirs = folder.path().join("out.txt.partial");
        fs::write(&theirs, "theirs").unwrap();
        fs::write(&path, "old").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
        let mut file = UnfinishedFile::create(&path).unwrap();
        file.write_all(b"new").unwrap();
        assert_eq!(
            names(folder.path()),
            ["out.txt", "out.txt.1.partial", "out.txt.partial"]
        );
        file.finish().unwrap();
        assert_eq!(names(folder.path()), ["out.txt", "out.txt.partial"]);
        assert_eq!(fs::read(&theirs).unwrap(), b"theirs");
        assert_eq!(fs::read(&path).unwrap(), b"new");
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o640);
    }
}
