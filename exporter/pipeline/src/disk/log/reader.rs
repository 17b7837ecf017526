//! A segment that is read in chunks.

use std::{
    fs::File,
    io::{self, Read, Seek, SeekFrom},
    ops::Range,
    path::Path,
};

use bytes::Bytes;

use super::segment;

/// How many bytes are read at once, where there are as many.
const CHUNK: u64 = 128 << 10;

/// The file of one segment, with the part that was read last.
#[derive(Debug)]
pub(super) struct SegmentReader {
    number: u64,
    file: File,
    chunk: Bytes,
    /// The offset of the chunk.
    start: u64,
}

impl SegmentReader {
    /// Opens a segment.
    pub(super) fn open(folder: &Path, number: u64) -> io::Result<Self> {
        Ok(Self {
            number,
            file: File::open(segment::path(folder, number))?,
            chunk: Bytes::new(),
            start: 0,
        })
    }

    /// The number of the segment.
    pub(super) fn number(&self) -> u64 {
        self.number
    }

    /// Returns a part of the file, or less where the file is shorter. Reads nothing from `end` on: there may be bytes that
    /// are going to be replaced.
    pub(super) fn read(&mut self, part: Range<u64>, end: u64) -> io::Result<Bytes> {
        if part.start < self.start || part.end > self.start + self.chunk.len() as u64 {
            let length = CHUNK
                .max(part.end - part.start)
                .min(end.saturating_sub(part.start));
            let mut chunk = Vec::with_capacity(usize::try_from(length).unwrap_or_default());
            self.file.seek(SeekFrom::Start(part.start))?;
            (&self.file).take(length).read_to_end(&mut chunk)?;
            (self.chunk, self.start) = (chunk.into(), part.start);
        }
        let from = (part.start - self.start) as usize;
        let to = (part.end - self.start).min(self.chunk.len() as u64) as usize;
        Ok(self.chunk.slice(from.min(to)..to))
    }
}
