//! Bytes in an output file that this program did not write: finds the end of the last complete record and
//! moves the rest.

use std::{
    fs::File,
    io::{self, BufReader, Read, Seek, SeekFrom},
    ops::Range,
    path::{Path, PathBuf},
};

use super::format::FileFormat;

/// The block size of a search.
const BLOCK: u64 = 64 << 10;

/// Bytes that were moved to another file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct MovedBytes {
    /// The other file.
    pub(super) path: PathBuf,
    /// The number of bytes.
    pub(super) bytes: u64,
}

/// Moves the bytes after the last complete record of `file`, at `path`, to another file. Returns the new end
/// of `file`.
pub(super) fn keep_complete(
    file: &mut File,
    path: &Path,
    format: FileFormat,
) -> io::Result<(u64, Option<MovedBytes>)> {
    let length = file.metadata()?.len();
    let end = complete_end(file, format, length)?;
    let aside = copy_aside(file, path, end..length)?;
    file.set_len(end)?;
    file.seek(SeekFrom::Start(end))?;
    Ok((end, aside))
}

/// Copies `bytes` of `file` to a new file in the folder of `path`: `out.aside-1.jsonl` for `out.jsonl`.
/// Returns `None` if there are no bytes.
pub(super) fn copy_aside(file: &mut File, path: &Path, bytes: Range<u64>) -> io::Result<Option<MovedBytes>> {
    if bytes.is_empty() {
        return Ok(None);
    }
    let (mut aside, path) = create_aside(path)?;
    aside.set_permissions(file.metadata()?.permissions())?;
    file.seek(SeekFrom::Start(bytes.start))?;
    let bytes = io::copy(&mut file.take(bytes.end - bytes.start), &mut aside)?;
    aside.sync_all()?;
    Ok(Some(MovedBytes { path, bytes }))
}

fn create_aside(path: &Path) -> io::Result<(File, PathBuf)> {
    let ending = path.extension().unwrap_or_default().to_string_lossy();
    let mut number = 1_u32;
    loop {
        let aside = path.with_extension(format!("aside-{number}.{ending}"));
        match File::create_new(&aside) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => number += 1,
            created => return Ok((created?, aside)),
        }
    }
}

/// Returns whether a record can start at `place`.
pub(super) fn is_record_end(file: &mut File, format: FileFormat, place: u64) -> io::Result<bool> {
    match format {
        FileFormat::JsonLines if place > 0 => Ok(first_newline(file, place - 1..place)?.is_some()),
        FileFormat::JsonLines => Ok(true),
        FileFormat::LengthPrefixed => Ok(complete_end(file, format, place)? == place),
    }
}

/// Returns the offset of the first line break in `bytes`.
pub(super) fn first_newline(file: &mut File, bytes: Range<u64>) -> io::Result<Option<u64>> {
    let mut start = bytes.start;
    while start < bytes.end {
        let block = read(file, start..bytes.end.min(start + BLOCK))?;
        if let Some(place) = memchr::memchr(b'\n', &block) {
            return Ok(Some(start + place as u64));
        }
        start += BLOCK;
    }
    Ok(None)
}

/// Returns the end of the last complete record in the first `length` bytes.
fn complete_end(file: &mut File, format: FileFormat, length: u64) -> io::Result<u64> {
    match format {
        FileFormat::JsonLines => lines_end(file, length),
        FileFormat::LengthPrefixed => frames_end(file, length),
    }
}

fn lines_end(file: &mut File, length: u64) -> io::Result<u64> {
    let mut end = length;
    while end > 0 {
        let start = end.saturating_sub(BLOCK);
        let block = read(file, start..end)?;
        if let Some(place) = memchr::memrchr(b'\n', &block) {
            return Ok(start + place as u64 + 1);
        }
        end = start;
    }
    Ok(0)
}

fn frames_end(file: &mut File, length: u64) -> io::Result<u64> {
    let mut reader = BufReader::new(file);
    reader.seek(SeekFrom::Start(0))?;
    let mut end = 0;
    while length - end >= 4 {
        let mut prefix = [0; 4];
        reader.read_exact(&mut prefix)?;
        let body = u32::from_be_bytes(prefix);
        let next = end + 4 + u64::from(body);
        if next > length {
            break;
        }
        reader.seek_relative(i64::from(body))?;
        end = next;
    }
    Ok(end)
}

fn read(file: &mut File, bytes: Range<u64>) -> io::Result<Vec<u8>> {
    let mut block = Vec::new();
    file.seek(SeekFrom::Start(bytes.start))?;
    file.take(bytes.end - bytes.start).read_to_end(&mut block)?;
    Ok(block)
}
