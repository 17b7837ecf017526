//! Settings of an output file: rotation, compression, permissions.

use std::{fmt, time::Duration};

/// How an output file is kept.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FileConfig {
    /// When the file is renamed and the next one begins; `None` leaves that to other programs.
    pub rotation: Option<FileRotation>,
    /// The permissions of the file, of rotated and of compressed ones; `None` leaves them to the umask.
    pub permissions: Option<FilePermissions>,
}

/// When an output file is rotated, and what becomes of the rotated ones.
///
/// `out.jsonl` is renamed to `out-20261122T215500Z-0000.jsonl`: the time of the rotation in UTC and a number, so that names
/// sort by time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileRotation {
    /// The most bytes in one file. A record that is longer has a file of its own.
    pub max_bytes: u64,
    /// The longest that one file is written to; `None` for no limit. Checked before each record.
    pub max_age: Option<Duration>,
    /// How many rotated files are kept; 0 keeps all.
    pub keep: usize,
    /// How rotated files are compressed.
    pub compression: FileCompression,
}

/// How rotated files are compressed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FileCompression {
    /// They stay as they are.
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
    /// All endings of compressed files.
    pub(super) const ENDINGS: &'static [&'static str] = &[".gz", ".zst"];

    /// Returns the ending of a compressed file, or `None` if files stay as they are.
    pub(super) fn ending(self) -> Option<&'static str> {
        match self {
            Self::None => None,
            Self::Gzip => Some(".gz"),
            Self::Zstd => Some(".zst"),
        }
    }
}

impl FilePermissions {
    /// Parses three or four octal digits. Returns `None` for anything else, and for bits that deny the owner reading or
    /// writing.
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
    fn permissions_are_three_or_four_octal_digits_that_leave_the_owner_in() {
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
