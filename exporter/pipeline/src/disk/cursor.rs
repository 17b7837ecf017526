//! The cursor file: the oldest unfinished record, and what the segments must hold from it on. It is replaced atomically,
//! so that a kill leaves the old cursor or the new one.

use std::{
    fmt::Write as _,
    fs,
    io::{self, ErrorKind, Write as _},
    path::{Path, PathBuf},
};

use super::{counts::RecordCounts, file, record::Position};

const NAME: &str = "cursor";
const NEW_NAME: &str = "cursor.new";
const MAX_BYTES: u64 = 4096;

/// The contents of a cursor file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Cursor {
    /// The position of the oldest unfinished record.
    pub(super) position: Position,
    /// `None` in a cursor of version 1.
    pub(super) totals: Option<CursorTotals>,
}

/// The records that the segments must hold.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct CursorTotals {
    /// The totals before the oldest unfinished record.
    pub(super) start: RecordCounts,
    /// The totals after the newest record.
    pub(super) end: RecordCounts,
    /// The records between both that are lost and were counted.
    pub(super) lost: RecordCounts,
}

/// Returns the path of the cursor file of a folder.
pub(super) fn path(folder: &Path) -> PathBuf {
    folder.join(NAME)
}

/// Reads the cursor; returns `None` if there is no file. The outer error is an I/O error, the inner one describes a damaged
/// file.
pub(super) fn read(folder: &Path) -> io::Result<Result<Option<Cursor>, String>> {
    match file::read(&path(folder), MAX_BYTES) {
        Ok(bytes) => Ok(Cursor::parse(&bytes)
            .map(Some)
            .ok_or_else(|| format!("the {} bytes of the file are not a cursor", bytes.len()))),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(Ok(None)),
        Err(error) => Err(error),
    }
}

/// Replaces the cursor.
pub(super) fn write(folder: &Path, cursor: Cursor) -> io::Result<()> {
    let new = folder.join(NEW_NAME);
    file::create(&new)?.write_all(cursor.encode().as_bytes())?;
    fs::rename(new, path(folder))
}

impl Cursor {
    fn encode(self) -> String {
        let Position { segment, offset } = self.position;
        let version = if self.totals.is_some() { 2 } else { 1 };
        let mut line = format!("{version} {segment} {offset}");
        let totals = self.totals.map(|totals| [totals.start, totals.end, totals.lost]);
        for field in totals.into_iter().flatten().flat_map(RecordCounts::fields) {
            // Writing to a string does not fail.
            let _ = write!(line, " {field}");
        }
        format!("{line} {:08x}\n", crc32fast::hash(line.as_bytes()))
    }

    fn parse(bytes: &[u8]) -> Option<Self> {
        let text = std::str::from_utf8(bytes).ok()?;
        let mut fields = text.trim_end().split(' ').skip(1);
        let position = Position {
            segment: fields.next()?.parse().ok()?,
            offset: fields.next()?.parse().ok()?,
        };
        let mut numbers = fields.map_while(|field| field.parse().ok());
        let mut counts = || {
            let mut fields = [0; RecordCounts::FIELDS];
            for field in &mut fields {
                *field = numbers.next()?;
            }
            Some(RecordCounts::from_fields(fields))
        };
        let totals = (|| {
            Some(CursorTotals {
                start: counts()?,
                end: counts()?,
                lost: counts()?,
            })
        })();
        let cursor = Self { position, totals };
        (cursor.encode() == text).then_some(cursor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cursor_round_trips_and_any_changed_byte_is_rejected() {
        let position = Position {
            segment: 12,
            offset: 345,
        };
        let totals = CursorTotals {
            start: RecordCounts::from_fields([1, 2, 3, 4]),
            end: RecordCounts::from_fields([50, 60, 70, 80]),
            lost: RecordCounts::default(),
        };
        for totals in [None, Some(totals)] {
            let cursor = Cursor { position, totals };
            let text = cursor.encode();
            assert_eq!(Cursor::parse(text.as_bytes()), Some(cursor));
            for place in 0..text.len() {
                let mut bytes = text.clone().into_bytes();
                bytes[place] ^= 1;
                assert_eq!(Cursor::parse(&bytes), None, "byte {place}");
                assert_eq!(Cursor::parse(&text.as_bytes()[..place]), None);
            }
        }
        assert_eq!(
            Cursor {
                position,
                totals: None
            }
            .encode(),
            "1 12 345 9cb949db\n",
            "the line of version 1"
        );
    }
}
