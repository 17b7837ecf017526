//! The segment files of a log: their names, their header, and the search for readable records.

use std::{
    ffi::OsStr,
    fs, io,
    ops::Range,
    path::{Path, PathBuf},
};

use pulsetrain_otlp::Signal;

use super::{
    counts::{RecordCounts, StoredCounts},
    file,
    record::{Header, Position},
};

/// The size of the file header in bytes.
pub(super) const HEADER_BYTES: u64 = 16;

/// The maximum size of a file in bytes. A segment has at most 16 MiB, or one record that is larger.
pub(super) const MAX_BYTES: u64 = 128 << 20;

const MAGIC: [u8; 8] = *b"PTQUEUE\n";
/// The version of new segments. Records of version 1 have no totals.
pub(super) const VERSION: u32 = 2;
const EXTENSION: &str = "segment";

/// The limit on the bytes that are hashed to find the next record in a corrupt file, as a multiple of the length of the
/// file.
const SEARCH_FACTOR: usize = 8;

/// One file of the log.
#[derive(Debug)]
pub(super) struct Segment {
    pub(super) number: u64,
    /// The offset of the end of the last record.
    pub(super) end: u64,
    /// The parts that cannot be read, in order.
    pub(super) gaps: Vec<Range<u64>>,
    /// The counts of the records that were not read yet.
    pub(super) unread: StoredCounts,
}

/// The header of a segment file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FileHeader {
    Sound,
    /// The header of another version of the format.
    Version(u32),
    /// The file is shorter than the header, or the header is not one.
    Corrupt,
}

/// A part of a segment.
#[derive(Debug)]
pub(super) enum Part {
    /// A sound record.
    Record(Header),
    Gap(Gap),
}

/// A part of a segment that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Gap {
    pub(super) bytes: Range<u64>,
    /// The contents as far as the corrupt bytes show them; at least one item.
    pub(super) estimate: RecordCounts,
    /// Whether this is the start of a record at the end of the file.
    pub(super) is_torn: bool,
}

/// An iterator over the parts of a segment.
#[derive(Debug)]
pub(super) struct Scan<'a> {
    file: &'a [u8],
    position: Position,
    /// The limit on the bytes that are hashed to find the next record.
    budget: usize,
}

impl Segment {
    pub(super) fn new(number: u64) -> Self {
        Self {
            number,
            end: HEADER_BYTES,
            gaps: Vec::new(),
            unread: StoredCounts::default(),
        }
    }

    /// Returns the first offset at or after `offset` that is not in a gap.
    pub(super) fn skip_gaps(&self, offset: u64) -> u64 {
        let gap = self.gaps.iter().find(|gap| gap.contains(&offset));
        gap.map_or(offset, |gap| gap.end)
    }
}

/// Returns the path of a segment.
pub(super) fn path(folder: &Path, number: u64) -> PathBuf {
    folder.join(format!("{number:020}.{EXTENSION}"))
}

/// Returns the path for a copy of the unreadable bytes at `offset`.
pub(super) fn path_aside(folder: &Path, Position { segment, offset }: Position) -> PathBuf {
    folder.join(format!("{segment:020}.at-{offset}.corrupt"))
}

/// Returns the numbers of the segments in a folder, in order.
pub(super) fn list(folder: &Path) -> io::Result<Vec<u64>> {
    let mut numbers = Vec::new();
    for entry in fs::read_dir(folder)? {
        numbers.extend(number_of(Path::new(&entry?.file_name())));
    }
    numbers.sort_unstable();
    Ok(numbers)
}

/// Returns the contents of a segment.
///
/// # Errors
/// The conditions of [`file::open`] apply.
pub(super) fn read(folder: &Path, number: u64) -> io::Result<Vec<u8>> {
    file::read(&path(folder, number), MAX_BYTES)
}

fn number_of(name: &Path) -> Option<u64> {
    let stem = name.file_stem()?.to_str()?;
    let is_segment = name.extension() == Some(OsStr::new(EXTENSION)) && stem.len() == 20;
    stem.parse().ok().filter(|_| is_segment)
}

/// Returns the header of a new segment.
pub(super) fn file_header() -> [u8; HEADER_BYTES as usize] {
    header_of(VERSION)
}

fn header_of(version: u32) -> [u8; HEADER_BYTES as usize] {
    let mut header = [0; HEADER_BYTES as usize];
    header[..8].copy_from_slice(&MAGIC);
    header[8..12].copy_from_slice(&version.to_le_bytes());
    let crc = crc32fast::hash(&header[..12]);
    header[12..].copy_from_slice(&crc.to_le_bytes());
    header
}

impl FileHeader {
    /// Parses the header at the start of a file.
    pub(super) fn parse(bytes: &[u8]) -> Self {
        let Some(header) = bytes.first_chunk::<{ HEADER_BYTES as usize }>() else {
            return Self::Corrupt;
        };
        let version = u32::from_le_bytes([header[8], header[9], header[10], header[11]]);
        if *header != header_of(version) {
            Self::Corrupt
        } else if (1..=VERSION).contains(&version) {
            Self::Sound
        } else {
            Self::Version(version)
        }
    }
}

impl<'a> Scan<'a> {
    /// Scans the bytes of a segment from the offset `from` on.
    pub(super) fn new(file: &'a [u8], segment: u64, from: u64) -> Self {
        let offset = from.max(HEADER_BYTES);
        Self {
            file,
            position: Position { segment, offset },
            budget: file.len().saturating_mul(SEARCH_FACTOR),
        }
    }

    /// Returns the part from a corrupt record to the next sound one, or to the end of the file.
    fn gap(&mut self) -> Gap {
        let start = self.position.offset;
        let length = self.file.len() as u64;
        let end = self.next_sound().unwrap_or(length);
        let record = record_at(self.file, start);
        // A header whose length leads exactly to that offset is probably sound.
        let plausible = record.filter(|(header, _)| start + header.record_bytes() == end);
        Gap {
            bytes: start..end,
            estimate: plausible.map_or(RecordCounts::one(Signal::Logs, 1), |(header, _)| {
                header.plausible_counts()
            }),
            is_torn: end == length && record.is_none(),
        }
    }

    /// Returns the offset of the first sound record after a corrupt one. The length in a corrupt header is not trusted: it
    /// could lead past sound records.
    fn next_sound(&mut self) -> Option<u64> {
        let corrupt = self.position;
        for offset in corrupt.offset + 1..self.file.len() as u64 {
            if let Some((header, record)) = record_at(self.file, offset) {
                self.budget = self.budget.checked_sub(record.len())?;
                if header.is_sound(Position { offset, ..corrupt }, record) {
                    return Some(offset);
                }
            }
        }
        None
    }
}

impl Iterator for Scan<'_> {
    type Item = Part;

    fn next(&mut self) -> Option<Part> {
        let position = self.position;
        if position.offset >= self.file.len() as u64 {
            return None;
        }
        let sound = record_at(self.file, position.offset)
            .filter(|(header, record)| header.is_sound(position, record));
        let (part, end) = match sound {
            Some((header, _)) => (Part::Record(header), position.offset + header.record_bytes()),
            None => {
                let gap = self.gap();
                let end = gap.bytes.end;
                (Part::Gap(gap), end)
            }
        };
        self.position.offset = end;
        Some(part)
    }
}

/// Returns the header and the bytes of the possible record at `offset`, or `None` if they are incomplete.
fn record_at(file: &[u8], offset: u64) -> Option<(Header, &[u8])> {
    let rest = file.get(usize::try_from(offset).ok()?..)?;
    let header = Header::parse(rest)?;
    let record = rest.get(..usize::try_from(header.record_bytes()).ok()?)?;
    Some((header, record))
}
