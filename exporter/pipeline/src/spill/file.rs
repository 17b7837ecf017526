//! Temporary files: how much memory may be taken before they are made, what is appended to them, and what is read back.

use std::{
    env,
    fs::File,
    io::{self, Seek, SeekFrom, Write},
    os::unix::fs::FileExt,
    path::{Path, PathBuf},
};

/// How many bytes are gathered before they are written.
const CHUNK: usize = 256 << 10;

/// How much memory something may take, and where the rest goes.
#[derive(Clone, Debug, Default)]
pub struct MemoryBudget {
    /// The bytes of memory.
    pub bytes: usize,
    /// The folder of temporary files; none is the system's.
    pub folder: Option<PathBuf>,
}

impl MemoryBudget {
    /// Returns one of `parts` equal shares of the room.
    pub fn share(&self, parts: usize) -> Self {
        Self {
            bytes: self.bytes / parts,
            folder: self.folder.clone(),
        }
    }

    /// Makes a file for what does not fit.
    ///
    /// # Errors
    ///
    /// A folder that takes no file.
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
    /// Where it is, for errors: the file itself has no name.
    folder: PathBuf,
    pending: Vec<u8>,
    length: u64,
}

/// A piece of a file.
#[derive(Clone, Copy, Debug, Default)]
pub struct Extent {
    /// Where it begins.
    pub start: u64,
    /// Where what follows it begins.
    pub end: u64,
}

impl SpillFile {
    /// Whether nothing was appended.
    pub fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// How many bytes it has.
    pub fn len(&self) -> u64 {
        self.length
    }

    /// Appends some bytes, which reach the file with [`SpillFile::flush`] at the latest.
    ///
    /// # Errors
    ///
    /// A disk that takes no more.
    pub fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.pending.extend_from_slice(bytes);
        self.length += bytes.len() as u64;
        if self.pending.len() >= CHUNK {
            self.flush()?;
        }
        Ok(())
    }

    /// Writes what was gathered; needed before anything is read.
    ///
    /// # Errors
    ///
    /// A disk that takes no more.
    pub fn flush(&mut self) -> io::Result<()> {
        let written = self.file.seek(SeekFrom::End(0));
        written
            .and_then(|_| self.file.write_all(&self.pending))
            .map_err(|error| in_folder(&self.folder, &error))?;
        self.pending.clear();
        Ok(())
    }

    /// Fills `buffer` from a place in the file.
    ///
    /// # Errors
    ///
    /// Returns an error for a range past the end of the file, or if the disk cannot be read.
    pub fn read(&self, place: u64, buffer: &mut [u8]) -> io::Result<()> {
        self.file.read_exact_at(buffer, place)
    }
}

/// An error of a temporary file with the folder that it is in.
fn in_folder(folder: &Path, error: &io::Error) -> io::Error {
    io::Error::new(
        error.kind(),
        format!("temporary file in {}: {error}", folder.display()),
    )
}

/// Reads a piece of a file from its start to its end, some at a time.
#[derive(Debug)]
pub struct ExtentReader {
    left: Extent,
    buffer: Vec<u8>,
    next: usize,
    chunk: usize,
}

impl ExtentReader {
    /// A reader at the beginning of a piece, which reads `chunk` bytes at once.
    pub fn new(extent: Extent, chunk: usize) -> Self {
        Self {
            left: extent,
            buffer: Vec::new(),
            next: 0,
            chunk,
        }
    }

    /// Where in the file the next byte is.
    pub fn place(&self) -> u64 {
        self.left.start - (self.buffer.len() - self.next) as u64
    }

    /// Whether all of it was taken.
    pub fn is_at_end(&self) -> bool {
        self.next == self.buffer.len() && self.left.start == self.left.end
    }

    /// Appends the next bytes to `out`.
    ///
    /// # Errors
    ///
    /// Less is left than that, a disk that cannot be read.
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

    /// The next bytes as an array.
    ///
    /// # Errors
    ///
    /// As [`ExtentReader::take`].
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
    fn an_error_of_a_temporary_file_names_its_folder() {
        let room = MemoryBudget {
            bytes: 0,
            folder: Some("/no/such/folder".into()),
        };
        let error = room.spill().unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
        assert!(error.to_string().contains("/no/such/folder"), "{error}");
    }
}
