//! Reads a segment in chunks.

use std::{
    fs::File,
    io::{self, Read, Seek, SeekFrom},
    ops::Range,
    path::Path,
};

use bytes::Bytes;

use super::segment;
use crate::disk::file;

/// The size in bytes of one read.
const CHUNK: u64 = 128 << 10;

/// The file of one segment, with the chunk that was read last.
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
            file: file::open(&segment::path(folder, number), segment::MAX_BYTES)?,
            chunk: Bytes::new(),
            start: 0,
        })
    }

    /// Returns the number of the segment.
    pub(super) fn number(&self) -> u64 {
        self.number
    }

    /// Returns a part of the file, or less if the file is shorter. Never reads at or after `end`, where bytes may still
    /// be replaced.
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
