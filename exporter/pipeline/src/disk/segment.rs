//! The segment files of a log: their names, their header, and the search for readable records.

use std::{
    ffi::OsStr,
    fs, io,
    ops::{AddAssign, Range, SubAssign},
    path::{Path, PathBuf},
};

use bytes::Bytes;

use super::record::{self, Header, Position, Record};

/// The size of the file header in bytes.
pub(super) const HEADER_BYTES: u64 = 16;

const MAGIC: [u8; 8] = *b"PTQUEUE\n";
pub(super) const VERSION: u32 = 1;
const EXTENSION: &str = "segment";

/// The limit on the bytes that are hashed to find the next record in a corrupt file, as a multiple of the length of the
/// file.
const SEARCH_FACTOR: usize = 8;

/// A number of records, items and bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct RecordCounts {
    pub(super) records: u64,
    pub(super) items: u64,
    /// The size of the records in bytes, headers included.
    pub(super) bytes: u64,
}

/// One file of the log.
#[derive(Debug)]
pub(super) struct Segment {
    pub(super) number: u64,
    /// The offset of the end of the last record.
    pub(super) end: u64,
    /// The parts that cannot be read, in order.
    pub(super) gaps: Vec<Range<u64>>,
    /// The counts of the records that were not read yet.
    pub(super) unread: RecordCounts,
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

/// The result of scanning a part of a segment.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Scan {
    pub(super) readable: RecordCounts,
    pub(super) gaps: Vec<Gap>,
}

/// A part of a segment that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Gap {
    pub(super) bytes: Range<u64>,
    /// The number of items in the gap; at least one.
    pub(super) items: u64,
}

impl Segment {
    pub(super) fn new(number: u64) -> Self {
        Self {
            number,
            end: HEADER_BYTES,
            gaps: Vec::new(),
            unread: RecordCounts::default(),
        }
    }

    /// Returns the first offset at or after `offset` that is not in a gap.
    pub(super) fn skip_gaps(&self, offset: u64) -> u64 {
        let gap = self.gaps.iter().find(|gap| gap.contains(&offset));
        gap.map_or(offset, |gap| gap.end)
    }
}

impl RecordCounts {
    pub(super) fn one(items: u32, bytes: u64) -> Self {
        Self {
            records: 1,
            items: u64::from(items),
            bytes,
        }
    }
}

impl AddAssign for RecordCounts {
    fn add_assign(&mut self, other: Self) {
        self.records += other.records;
        self.items += other.items;
        self.bytes += other.bytes;
    }
}

impl SubAssign for RecordCounts {
    fn sub_assign(&mut self, other: Self) {
        self.records -= other.records;
        self.items -= other.items;
        self.bytes -= other.bytes;
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
        } else if version == VERSION {
            Self::Sound
        } else {
            Self::Version(version)
        }
    }
}

impl Scan {
    /// Scans the bytes of a segment from the offset `from` on.
    pub(super) fn new(file: &[u8], segment: u64, from: u64) -> Self {
        let mut scan = Self::default();
        let end = file.len() as u64;
        let mut budget = file.len().saturating_mul(SEARCH_FACTOR);
        let mut offset = from.max(HEADER_BYTES);
        while offset < end {
            match verified(file, Position { segment, offset }) {
                Some(header) => {
                    scan.readable += RecordCounts::one(header.items(), header.record_bytes());
                    offset += header.record_bytes();
                }
                None => {
                    let gap = gap_at(file, Position { segment, offset }, &mut budget);
                    offset = gap.bytes.end;
                    scan.gaps.push(gap);
                }
            }
        }
        scan
    }
}

/// Returns the header of the record at `position`, or `None` if the record is not sound.
fn verified(file: &[u8], position: Position) -> Option<Header> {
    let (header, record) = record_at(file, position.offset)?;
    header.is_sound(position, record).then_some(header)
}

/// Returns the first record of a segment, or `None` if it is not sound.
pub(super) fn first_record(file: &[u8], segment: u64) -> Option<Record> {
    let position = Position {
        segment,
        offset: HEADER_BYTES,
    };
    let (header, record) = record_at(file, position.offset)?;
    let payload = Bytes::copy_from_slice(record.get(record::HEADER_BYTES..)?);
    header
        .is_sound(position, record)
        .then(|| header.with_payload(payload))?
}

/// Returns whether all bytes of the possible record at `offset` are present.
pub(super) fn is_complete(file: &[u8], offset: u64) -> bool {
    record_at(file, offset).is_some()
}

/// Returns the header and the bytes of the possible record at `offset`.
fn record_at(file: &[u8], offset: u64) -> Option<(Header, &[u8])> {
    let rest = file.get(usize::try_from(offset).ok()?..)?;
    let header = Header::parse(rest)?;
    let record = rest.get(..usize::try_from(header.record_bytes()).ok()?)?;
    Some((header, record))
}

/// Returns the part from a corrupt record to the next sound one, or to the end of the file.
fn gap_at(file: &[u8], corrupt: Position, budget: &mut usize) -> Gap {
    let next = next_sound(file, corrupt, budget).unwrap_or(file.len() as u64);
    // A header whose length leads exactly to that offset is probably sound.
    let items = record_at(file, corrupt.offset)
        .filter(|(header, _)| corrupt.offset + header.record_bytes() == next)
        .map_or(1, |(header, _)| header.plausible_items().max(1));
    Gap {
        bytes: corrupt.offset..next,
        items,
    }
}

/// Returns the offset of the first sound record after a corrupt one. The length in a corrupt header is not trusted: it
/// could lead past sound records.
fn next_sound(file: &[u8], corrupt: Position, budget: &mut usize) -> Option<u64> {
    for offset in corrupt.offset + 1..file.len() as u64 {
        if let Some((header, record)) = record_at(file, offset) {
            *budget = budget.checked_sub(record.len())?;
            if header.is_sound(Position { offset, ..corrupt }, record) {
                return Some(offset);
            }
        }
    }
    None
}
