//! Settings of an output file: rotation, compression, permissions.

use std::{fmt, time::Duration};

/// The settings of an output file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FileConfig {
    /// When the file is rotated, or `None` if another program rotates it.
    pub rotation: Option<FileRotation>,
    /// The permissions of the file and of rotated files. `None` leaves them to the umask.
    pub permissions: Option<FilePermissions>,
}

/// The rotation of an output file.
///
/// `out.jsonl` is renamed to `out-20261122T215500Z-0000.jsonl`: the time of the rotation in UTC and a number,
/// so that names sort by time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileRotation {
    /// The maximum size of a file in bytes. A longer record gets its own file.
    pub max_bytes: u64,
    /// The maximum age of a file, or `None` for no limit. It is checked before each record.
    pub max_age: Option<Duration>,
    /// The number of rotated files to keep. 0 keeps all.
    pub keep: usize,
    /// The compression of rotated files.
    pub compression: FileCompression,
}

/// The compression of rotated files.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FileCompression {
    /// No compression.
    #[default]
    None,
    /// `.gz`
    Gzip,
    /// `.zst`
    Zstd,
}

/// The permission bits of a file, such as `0640`.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct FilePermissions(u32);

impl Default for FileRotation {
    fn default() -> Self {
        Self {
            max_bytes: 256 << 20,
            max_age: None,
            keep: 10,
            compression: FileCompression::None,
        }
    }
}

impl FileCompression {
    /// The extensions of compressed files.
    pub(super) const ENDINGS: &'static [&'static str] = &[".gz", ".zst"];

    /// Returns the extension of a compressed file, or `None` without compression.
    pub(super) fn ending(self) -> Option<&'static str> {
        match self {
            Self::None => None,
            Self::Gzip => Some(".gz"),
            Self::Zstd => Some(".zst"),
        }
    }
}

impl FilePermissions {
    /// Parses three or four octal digits. Returns `None` for other text, and for bits that deny the owner
    /// reading or writing.
    pub fn parse(text: &str) -> Option<Self> {
        let is_octal =
            (3..=4).contains(&text.len()) && text.bytes().all(|byte| (b'0'..=b'7').contains(&byte));
        let mode = u32::from_str_radix(text, 8).ok().filter(|_| is_octal)?;
        (mode & 0o600 == 0o600 && mode <= 0o777).then_some(Self(mode))
    }

    /// Returns the bits.
    pub(super) fn mode(self) -> u32 {
        self.0
    }
}

impl fmt::Debug for FilePermissions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:04o}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn permissions_are_octal_and_must_let_the_owner_read_and_write() {
        for (text, mode) in [("0640", 0o640), ("600", 0o600), ("0666", 0o666)] {
            assert_eq!(
                FilePermissions::parse(text).map(FilePermissions::mode),
                Some(mode)
            );
        }
        for text in [
            "",
            "0",
            "64",
            "0840",
            "-640",
            "+640",
            "0440",
            "1640",
            "00640",
            "rw-r-----",
        ] {
            assert_eq!(FilePermissions::parse(text), None, "{text}");
        }
    }
}
