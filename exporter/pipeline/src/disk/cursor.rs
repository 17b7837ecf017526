//! The cursor file: the position of the oldest unfinished record. It is replaced atomically, so that a kill leaves the
//! old cursor or the new one.

use std::{
    fs,
    io::{self, ErrorKind, Write},
    path::{Path, PathBuf},
};

use super::record::Position;
use crate::private;

const NAME: &str = "cursor";
const NEW_NAME: &str = "cursor.new";

/// Returns the path of the cursor file of a folder.
pub(super) fn path(folder: &Path) -> PathBuf {
    folder.join(NAME)
}

/// Reads the cursor; returns `None` if there is no file. The outer error is an I/O error, the inner one describes a damaged
/// file.
pub(super) fn read(folder: &Path) -> io::Result<Result<Option<Position>, String>> {
    match fs::read(path(folder)) {
        Ok(bytes) => Ok(parse(&bytes)
            .map(Some)
            .ok_or_else(|| format!("the {} bytes of the file are not a cursor", bytes.len()))),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(Ok(None)),
        Err(error) => Err(error),
    }
}

/// Replaces the cursor.
pub(super) fn write(folder: &Path, position: Position) -> io::Result<()> {
    let new = folder.join(NEW_NAME);
    private::create_file(&new)?.write_all(encode(position).as_bytes())?;
    fs::rename(new, path(folder))
}

/// Removes the cursor file if it exists.
pub(super) fn remove(folder: &Path) -> io::Result<()> {
    match fs::remove_file(path(folder)) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

fn encode(Position { segment, offset }: Position) -> String {
    let line = format!("1 {segment} {offset}");
    format!("{line} {:08x}\n", crc32fast::hash(line.as_bytes()))
}

fn parse(bytes: &[u8]) -> Option<Position> {
    let text = std::str::from_utf8(bytes).ok()?;
    let mut fields = text.trim_end().split(' ').skip(1);
    let segment = fields.next()?.parse().ok()?;
    let offset = fields.next()?.parse().ok()?;
    let position = Position { segment, offset };
    (encode(position) == text).then_some(position)
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
        let text = encode(position);
        assert_eq!(parse(text.as_bytes()), Some(position));
        for place in 0..text.len() {
            let mut bytes = text.clone().into_bytes();
            bytes[place] ^= 1;
            assert_eq!(parse(&bytes), None, "byte {place}");
            assert_eq!(parse(&text.as_bytes()[..place]), None);
        }
    }
}
