//! One record of a segment: a header with a checksum, then a batch with its accepted time.

use std::time::Duration;

use bytes::Bytes;
use pulsetrain_otlp::Signal;

use super::counts::{RecordCounts, StoredCounts};

/// The size of the header in bytes.
pub(super) const HEADER_BYTES: usize = OLD_HEADER_BYTES + RecordCounts::BYTES;

/// The size of the header in version 1, which has no totals.
const OLD_HEADER_BYTES: usize = 25;

/// The first bytes of every record, for which a corrupt segment is searched.
const MARKER: [u8; 4] = *b"\xf5rc2";

/// The first bytes of a record of version 1.
const OLD_MARKER: [u8; 4] = *b"\xf5rec";

/// The position of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Position {
    /// The number of the segment.
    pub segment: u64,
    /// The offset in the file of the segment.
    pub offset: u64,
}

/// A batch in its stored form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// The signal of the payload.
    pub signal: Signal,
    /// The number of spans, points or log records in the payload.
    pub items: u32,
    /// The time at which the batch was accepted, since 1970-01-01 UTC.
    pub accepted: Duration,
    /// The OTLP message.
    pub bytes: Bytes,
}

/// The fields of a header, not verified yet.
#[derive(Clone, Copy, Debug)]
pub(super) struct Header {
    length: u32,
    crc: u32,
    signal: Signal,
    items: u32,
    /// The accepted time in nanoseconds.
    accepted: u64,
    /// The totals of the queue before this record; `None` in version 1.
    before: Option<RecordCounts>,
}

impl Record {
    /// Returns the number of bytes that a payload of this length occupies in a segment.
    pub fn stored_bytes(payload: usize) -> u64 {
        (HEADER_BYTES + payload) as u64
    }

    /// Returns the header of this record at `position`, or `None` if the payload is longer than the format allows.
    /// `before` are the totals of the queue before this record.
    pub(super) fn header(&self, position: Position, before: RecordCounts) -> Option<[u8; HEADER_BYTES]> {
        let mut header = Header {
            length: u32::try_from(self.bytes.len()).ok()?,
            crc: 0,
            signal: self.signal,
            items: self.items,
            accepted: u64::try_from(self.accepted.as_nanos()).unwrap_or(u64::MAX),
            before: Some(before),
        };
        header.crc = header.checksum(position, &self.bytes);
        Some(header.encode())
    }

    /// Returns the counts of this record.
    pub(super) fn counts(&self) -> RecordCounts {
        RecordCounts::one(self.signal, self.items.into())
    }
}

impl Header {
    /// Returns the header in version 2, in which that of version 1 has the first bytes except for the marker.
    fn encode(self) -> [u8; HEADER_BYTES] {
        let mut bytes = [0; HEADER_BYTES];
        bytes[..4].copy_from_slice(if self.before.is_some() {
            &MARKER
        } else {
            &OLD_MARKER
        });
        bytes[4..8].copy_from_slice(&self.length.to_le_bytes());
        bytes[8..12].copy_from_slice(&self.crc.to_le_bytes());
        bytes[12] = self.signal as u8;
        bytes[13..17].copy_from_slice(&self.items.to_le_bytes());
        bytes[17..OLD_HEADER_BYTES].copy_from_slice(&self.accepted.to_le_bytes());
        bytes[OLD_HEADER_BYTES..].copy_from_slice(&self.before.unwrap_or_default().encode());
        bytes
    }

    /// Parses the header at the start of `bytes`. Returns `None` if there are too few bytes, the marker is missing, or
    /// the number of the signal is unknown.
    pub(super) fn parse(bytes: &[u8]) -> Option<Self> {
        let (marker, rest) = bytes.split_first_chunk()?;
        let is_old = *marker == OLD_MARKER;
        if !is_old && *marker != MARKER {
            return None;
        }
        let (length, rest) = rest.split_first_chunk()?;
        let (crc, rest) = rest.split_first_chunk()?;
        let (&signal, rest) = rest.split_first()?;
        let (items, rest) = rest.split_first_chunk()?;
        let (accepted, rest) = rest.split_first_chunk()?;
        Some(Self {
            length: u32::from_le_bytes(*length),
            crc: u32::from_le_bytes(*crc),
            signal: Signal::ALL.get(usize::from(signal)).copied()?,
            items: u32::from_le_bytes(*items),
            accepted: u64::from_le_bytes(*accepted),
            before: match is_old {
                true => None,
                false => Some(RecordCounts::parse(rest.first_chunk()?)),
            },
        })
    }

    /// Returns the totals of the queue before this record, or `None` for a record of version 1.
    pub(super) fn before(self) -> Option<RecordCounts> {
        self.before
    }

    /// Returns the counts of this record.
    pub(super) fn counts(self) -> StoredCounts {
        StoredCounts {
            records: RecordCounts::one(self.signal, self.items.into()),
            bytes: self.record_bytes(),
        }
    }

    /// Returns the counts of an unverified record, with at least one item and at most the number that its payload can
    /// hold.
    pub(super) fn plausible_counts(self) -> RecordCounts {
        RecordCounts::one(self.signal, self.items.min(self.length).max(1).into())
    }

    /// Returns the size of the header in bytes.
    fn header_bytes(self) -> usize {
        self.before.map_or(OLD_HEADER_BYTES, |_| HEADER_BYTES)
    }

    /// Returns the size of the complete record in bytes.
    pub(super) fn record_bytes(self) -> u64 {
        self.header_bytes() as u64 + u64::from(self.length)
    }

    /// Returns whether `record`, the bytes of the complete record, has the correct checksum for `position`.
    pub(super) fn is_sound(self, position: Position, record: &[u8]) -> bool {
        (record.get(self.header_bytes()..))
            .is_some_and(|payload| self.crc == self.checksum(position, payload))
    }

    /// Returns the record whose bytes are verified already.
    pub(super) fn record(self, bytes: &Bytes) -> Record {
        Record {
            signal: self.signal,
            items: self.items,
            accepted: Duration::from_nanos(self.accepted),
            bytes: bytes.slice(self.header_bytes()..),
        }
    }

    fn checksum(self, position: Position, payload: &[u8]) -> u32 {
        let mut crc = crc32fast::Hasher::new();
        crc.update(&position.segment.to_le_bytes());
        crc.update(&position.offset.to_le_bytes());
        crc.update(&Self { crc: 0, ..self }.encode()[..self.header_bytes()]);
        crc.update(payload);
        crc.finalize()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLACE: Position = Position {
        segment: 3,
        offset: 16,
    };

    #[test]
    fn record_checksum_is_valid_only_at_its_own_position() {
        let record = Record {
            signal: Signal::Logs,
            items: 7,
            accepted: Duration::from_nanos(1_700_000_000_123_456_789),
            bytes: Bytes::from_static(b"payload"),
        };
        let before = RecordCounts::from_fields([9, 1, 2, 1 << 40]);
        let mut bytes = record.header(PLACE, before).unwrap().to_vec();
        bytes.extend_from_slice(&record.bytes);
        let header = Header::parse(&bytes).unwrap();
        assert_eq!(header.record_bytes(), bytes.len() as u64);
        assert_eq!(header.before(), Some(before));
        assert!(header.is_sound(PLACE, &bytes));
        assert_eq!(header.record(&bytes.clone().into()), record);
        let elsewhere = Position { offset: 17, ..PLACE };
        assert!(!header.is_sound(elsewhere, &bytes));
        for place in 0..bytes.len() {
            let mut flipped = bytes.clone();
            flipped[place] ^= 0x10;
            let is_sound = Header::parse(&flipped).is_some_and(|header| header.is_sound(PLACE, &flipped));
            assert!(!is_sound, "byte {place}");
        }
    }
}
