//! One record of a segment: a header with a checksum, then a batch with its accepted time.

use std::time::Duration;

use bytes::Bytes;
use pulsetrain_otlp::Signal;

/// The size of the header in bytes.
pub(super) const HEADER_BYTES: usize = 25;

/// The end of the checksum in the header.
const CHECKSUM_END: usize = 12;

/// The first bytes of every record, for which a corrupt segment is searched.
const MARKER: [u8; 4] = *b"\xf5rec";

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
    signal: u8,
    items: u32,
    /// The accepted time in nanoseconds.
    accepted: u64,
}

impl Record {
    /// Returns the number of bytes that a payload of this length occupies in a segment.
    pub fn stored_bytes(payload: usize) -> u64 {
        (HEADER_BYTES + payload) as u64
    }

    /// Returns whether `torn` is the start of this record at `position`. Returns `false` if `torn` is too short to
    /// distinguish the record from others.
    pub(super) fn begins_with(&self, position: Position, torn: &[u8]) -> bool {
        let Some(header) = self.header(position).filter(|_| torn.len() >= CHECKSUM_END) else {
            return false;
        };
        let (of_header, of_payload) = torn.split_at(torn.len().min(HEADER_BYTES));
        header.starts_with(of_header) && self.bytes.starts_with(of_payload)
    }

    /// Returns the header of this record at `position`, or `None` if the payload is longer than the format allows.
    pub(super) fn header(&self, position: Position) -> Option<[u8; HEADER_BYTES]> {
        let mut header = Header {
            length: u32::try_from(self.bytes.len()).ok()?,
            crc: 0,
            signal: self.signal as u8,
            items: self.items,
            accepted: u64::try_from(self.accepted.as_nanos()).unwrap_or(u64::MAX),
        };
        header.crc = header.checksum(position, &self.bytes);
        Some(header.encode())
    }
}

impl Header {
    fn encode(self) -> [u8; HEADER_BYTES] {
        let mut bytes = [0; HEADER_BYTES];
        bytes[..4].copy_from_slice(&MARKER);
        bytes[4..8].copy_from_slice(&self.length.to_le_bytes());
        bytes[8..12].copy_from_slice(&self.crc.to_le_bytes());
        bytes[12] = self.signal;
        bytes[13..17].copy_from_slice(&self.items.to_le_bytes());
        bytes[17..].copy_from_slice(&self.accepted.to_le_bytes());
        bytes
    }

    /// Parses the header at the start of `bytes`. Returns `None` if there are too few bytes, the marker is missing, or
    /// the number of the signal is unknown.
    pub(super) fn parse(bytes: &[u8]) -> Option<Self> {
        let (length, rest) = bytes.strip_prefix(&MARKER)?.split_first_chunk()?;
        let (crc, rest) = rest.split_first_chunk()?;
        let (&signal, rest) = rest.split_first()?;
        let (items, rest) = rest.split_first_chunk()?;
        let accepted = rest.first_chunk()?;
        let header = Self {
            length: u32::from_le_bytes(*length),
            crc: u32::from_le_bytes(*crc),
            signal,
            items: u32::from_le_bytes(*items),
            accepted: u64::from_le_bytes(*accepted),
        };
        header.signal().map(|_| header)
    }

    /// Returns the size of the complete record in bytes.
    pub(super) fn record_bytes(self) -> u64 {
        Record::stored_bytes(self.length as usize)
    }

    /// Returns the number of items of the record.
    pub(super) fn items(self) -> u32 {
        self.items
    }

    /// Returns the number of items of an unverified record, limited to the number that its payload can hold.
    pub(super) fn plausible_items(self) -> u64 {
        u64::from(self.items.min(self.length))
    }

    /// Returns whether `record`, the bytes of the complete record, has the correct checksum for `position`.
    pub(super) fn is_sound(self, position: Position, record: &[u8]) -> bool {
        (record.get(HEADER_BYTES..)).is_some_and(|payload| self.crc == self.checksum(position, payload))
    }

    /// Returns the record with a payload that is verified already.
    pub(super) fn with_payload(self, bytes: Bytes) -> Option<Record> {
        Some(Record {
            signal: self.signal()?,
            items: self.items,
            accepted: Duration::from_nanos(self.accepted),
            bytes,
        })
    }

    fn signal(self) -> Option<Signal> {
        Signal::ALL.get(usize::from(self.signal)).copied()
    }

    fn checksum(self, position: Position, payload: &[u8]) -> u32 {
        let mut crc = crc32fast::Hasher::new();
        crc.update(&position.segment.to_le_bytes());
        crc.update(&position.offset.to_le_bytes());
        crc.update(&Self { crc: 0, ..self }.encode());
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
        let mut bytes = record.header(PLACE).unwrap().to_vec();
        bytes.extend_from_slice(&record.bytes);
        let header = Header::parse(&bytes).unwrap();
        assert_eq!(header.record_bytes(), bytes.len() as u64);
        assert!(header.is_sound(PLACE, &bytes));
        assert_eq!(header.with_payload(record.bytes.clone()), Some(record));
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
