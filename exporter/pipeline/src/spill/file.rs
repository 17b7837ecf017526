//! Memory budgets, and the temporary files for data that exceeds them.

use std::{
    env,
    fs::File,
    io::{self, Seek, SeekFrom, Write},
    os::unix::fs::FileExt,
    path::{Path, PathBuf},
};

/// The size in bytes of the write buffer.
const CHUNK: usize = 256 << 10;

/// The limit on memory, and the folder of the data that exceeds it.
#[derive(Clone, Debug, Default)]
pub struct MemoryBudget {
    /// The limit in bytes.
    pub bytes: usize,
    /// The folder of temporary files; `None` for that of the system.
    pub folder: Option<PathBuf>,
}

impl MemoryBudget {
    /// Returns one of `parts` equal shares of the budget.
    pub fn share(&self, parts: usize) -> Self {
        Self {
            bytes: self.bytes / parts,
            folder: self.folder.clone(),
        }
    }

    /// Creates a temporary file.
    ///
    /// # Errors
    ///
    /// Returns an error if no file can be created in the folder.
    pub fn spill(&self) -> io::Result<SpillFile> {
        let folder = self.folder.clone().unwrap_or_else(env::temp_dir);
        let file = tempfile::tempfile_in(&folder).map_err(|error| in_folder(&folder, &error))?;
        Ok(SpillFile {
            file,
            folder,
            pending: Vec::with_capacity(CHUNK),
            length: 0,
        })
    }
}

/// A temporary file that is appended to and then read.
#[derive(Debug)]
pub struct SpillFile {
    file: File,
    /// The folder of the file, for errors: the file itself has no name.
    folder: PathBuf,
    pending: Vec<u8>,
    length: u64,
}

/// A range of a file.
#[derive(Clone, Copy, Debug, Default)]
pub struct Extent {
    /// The start.
    pub start: u64,
    /// The end, exclusive.
    pub end: u64,
}

impl SpillFile {
    /// Returns whether the range is empty.
    pub fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// Returns the size in bytes.
    pub fn len(&self) -> u64 {
        self.length
    }

    /// Appends bytes, which reach the file with [`SpillFile::flush`] at the latest.
    ///
    /// # Errors
    ///
    /// Returns an error if the disk accepts no more bytes.
    pub fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.pending.extend_from_slice(bytes);
        self.length += bytes.len() as u64;
        if self.pending.len() >= CHUNK {
            self.flush()?;
        }
        Ok(())
    }

    /// Writes the buffered bytes; required before a read.
    ///
    /// # Errors
    ///
    /// Returns an error if the disk accepts no more bytes.
    pub fn flush(&mut self) -> io::Result<()> {
        let written = self.file.seek(SeekFrom::End(0));
        written
            .and_then(|_| self.file.write_all(&self.pending))
            .map_err(|error| in_folder(&self.folder, &error))?;
        self.pending.clear();
        Ok(())
    }

    /// Fills `buffer` from an offset in the file.
    ///
    /// # Errors
    ///
    /// Returns an error for a range past the end of the file, or if the disk cannot be read.
    pub fn read(&self, place: u64, buffer: &mut [u8]) -> io::Result<()> {
        self.file.read_exact_at(buffer, place)
    }
}

/// Adds the folder to an error of a temporary file.
fn in_folder(folder: &Path, error: &io::Error) -> io::Error {
    io::Error::new(
        error.kind(),
        format!("temporary file in {}: {error}", folder.display()),
    )
}

/// Reads a range of a file from its start to its end in chunks.
#[derive(Debug)]
pub struct ExtentReader {
    left: Extent,
    buffer: Vec<u8>,
    next: usize,
    chunk: usize,
}

impl ExtentReader {
    /// Creates a reader at the start of a range, which reads `chunk` bytes at once.
    pub fn new(extent: Extent, chunk: usize) -> Self {
        Self {
            left: extent,
            buffer: Vec::new(),
            next: 0,
            chunk,
        }
    }

    /// Returns the offset of the next byte in the file.
    pub fn place(&self) -> u64 {
        self.left.start - (self.buffer.len() - self.next) as u64
    }

    /// Returns whether the complete range was read.
    pub fn is_at_end(&self) -> bool {
        self.next == self.buffer.len() && self.left.start == self.left.end
    }

    /// Appends the next bytes to `out`.
    ///
    /// # Errors
    ///
    /// Returns an error if fewer than `count` bytes are left, or if the disk cannot be read.
    pub fn take(&mut self, file: &SpillFile, count: usize, out: &mut Vec<u8>) -> io::Result<()> {
        let mut missing = count;
        while missing > 0 {
            if self.next == self.buffer.len() {
                self.refill(file)?;
            }
            let here = missing.min(self.buffer.len() - self.next);
            out.extend_from_slice(&self.buffer[self.next..self.next + here]);
            self.next += here;
            missing -= here;
        }
        Ok(())
    }

    /// Returns the next bytes as an array.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`ExtentReader::take`].
    pub fn array<const N: usize>(&mut self, file: &SpillFile) -> io::Result<[u8; N]> {
        let mut out = Vec::with_capacity(N);
        self.take(file, N, &mut out)?;
        out.try_into().map_err(|_| io::ErrorKind::UnexpectedEof.into())
    }

    fn refill(&mut self, file: &SpillFile) -> io::Result<()> {
        let count = (self.left.end - self.left.start).min(self.chunk as u64);
        if count == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        self.buffer.resize(count as usize, 0);
        file.read(self.left.start, &mut self.buffer)?;
        self.left.start += count;
        self.next = 0;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn temporary_file_error_reports_its_folder() {
        let room = MemoryBudget {
            bytes: 0,
            folder: Some("/no/such/folder".into()),
        };
        let error = room.spill().unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
        assert!(error.to_string().contains("/no/such/folder"), "{error}");
    }
}
