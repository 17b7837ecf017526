//! Finds the rotated files of a log in its folder, in their order: `train.log.1`, `train.log-20261121`, `train.log.2.gz`.

use std::{
    cmp::Reverse,
    fs::{File, Metadata},
    path::{Path, PathBuf},
    time::UNIX_EPOCH,
};

use pulsetrain_otlp::UnixNanos;

use super::{
    candidates::open,
    identity::{FileIdentity, Inode},
};

/// The suffixes of compressed files, which are not read.
const COMPRESSED: [&str; 5] = [".gz", ".zst", ".xz", ".bz2", ".lz4"];

/// A rotated file of a log.
#[derive(Debug)]
pub(super) struct Rotated {
    pub(super) path: PathBuf,
    pub(super) inode: Inode,
    pub(super) is_compressed: bool,
    modified_unix_nanos: UnixNanos,
    age: Age,
}

/// The age in the name of a rotated file. Older files are less.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Age {
    /// The digits of a date: `20261121` and `2026-11-21` are equal.
    Date(String),
    /// A number that grows with the age.
    Number(Reverse<u32>),
}

/// Returns the files that were rotated after a file with this identity and modification time, the oldest first. If that file is
/// deleted, returns the files with a later modification time.
pub(super) fn after(path: &Path, identity: &FileIdentity, modified_unix_nanos: UnixNanos) -> Vec<Rotated> {
    let mut all = all(path);
    // The inode of a deleted file is reused soon.
    let is_same = |rotated: &Rotated| {
        rotated.inode == identity.inode
            && open(&rotated.path).is_ok_and(|(file, _)| identity.has_content(&file).unwrap_or(false))
    };
    match all.iter().position(is_same) {
        Some(place) => all.split_off(place + 1),
        None => {
            all.retain(|rotated| rotated.modified_unix_nanos > modified_unix_nanos);
            all
        }
    }
}

/// Finds the copy of a truncated file (`copytruncate`). The copy holds the bytes that were read, up to `read_offset`.
pub(super) fn copy_of(path: &Path, identity: &FileIdentity, read_offset: u64) -> Option<(File, Inode)> {
    let is_copy = |(file, inode): &(File, Inode)| {
        let is_long_enough = file
            .metadata()
            .is_ok_and(|metadata| metadata.len() >= read_offset);
        *inode != identity.inode && is_long_enough && identity.has_content(file).unwrap_or(false)
    };
    // The file was truncated only if it still has its inode.
    let (_, current) = open(path).ok()?;
    if current != identity.inode || !identity.has_bytes() {
        return None;
    }
    let newest_first = all(path).into_iter().rev();
    newest_first
        .filter(|rotated| !rotated.is_compressed)
        .filter_map(|rotated| open(&rotated.path).ok())
        .find(is_copy)
}

/// Opens the file with this inode in the folder of the log, under any name.
pub(super) fn open_by_inode(path: &Path, inode: Inode) -> Option<(File, Inode)> {
    let siblings = path.parent()?.read_dir().ok()?;
    siblings
        .flatten()
        .filter_map(|entry| open(&entry.path()).ok())
        .find(|(_, found)| *found == inode)
}

/// Returns the log that a file was rotated from if the log exists, else the file itself.
pub(crate) fn log_of(path: &str) -> &str {
    let is_log = |at: &usize| {
        let (log, rest) = path.split_at(*at);
        Age::parse(plain(rest).unwrap_or(rest)).is_some() && Path::new(log).is_file()
    };
    let mut ends = path.match_indices(['.', '-']).map(|(at, _)| at);
    ends.find(is_log).map_or(path, |at| &path[..at])
}

/// Returns a suffix without that of a compressed file, or `None` if the file is not compressed.
fn plain(suffix: &str) -> Option<&str> {
    COMPRESSED.iter().find_map(|ending| suffix.strip_suffix(ending))
}

/// Returns all rotated files of a log, the oldest first.
fn all(path: &Path) -> Vec<Rotated> {
    let Some((name, siblings)) = path
        .file_name()
        .and_then(|name| name.to_str())
        .zip(path.parent().and_then(|folder| folder.read_dir().ok()))
    else {
        return Vec::new();
    };
    let mut all: Vec<Rotated> = siblings
        .flatten()
        .filter_map(|entry| {
            let file_name = entry.file_name();
            let rest = file_name.to_str()?.strip_prefix(name)?;
            Rotated::parse(entry.path(), rest, &entry.metadata().ok()?)
        })
        .collect();
    let has_dates = all.iter().any(|rotated| matches!(rotated.age, Age::Date(_)));
    all.sort_by(|one, other| match has_dates {
        true => (one.modified_unix_nanos, &one.age).cmp(&(other.modified_unix_nanos, &other.age)),
        false => one.age.cmp(&other.age),
    });
    all
}

impl Rotated {
    /// Returns the file whose name continues that of the log with `suffix`, or `None` if the suffix has no age.
    fn parse(path: PathBuf, suffix: &str, metadata: &Metadata) -> Option<Self> {
        let plain = plain(suffix);
        let age = Age::parse(plain.unwrap_or(suffix))?;
        let modified = metadata.modified().ok()?.duration_since(UNIX_EPOCH).ok()?;
        metadata.is_file().then(|| Self {
            path,
            inode: Inode::from_metadata(metadata),
            is_compressed: plain.is_some(),
            modified_unix_nanos: UnixNanos::since_1970(modified),
            age,
        })
    }
}

impl Age {
    fn parse(suffix: &str) -> Option<Self> {
        let text = suffix.strip_prefix(['.', '-', '_'])?;
        let is_of_date = |char: char| char.is_ascii_digit() || "-_.:TZ".contains(char);
        if !text.starts_with(|first: char| first.is_ascii_digit()) || !text.chars().all(is_of_date) {
            return None;
        }
        match text.parse() {
            Ok(age) if text.len() <= 4 => Some(Self::Number(Reverse(age))),
            _ => Some(Self::Date(text.chars().filter(char::is_ascii_digit).collect())),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn folder(names: &[&str]) -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().expect("a temporary folder can be made");
        for name in names {
            fs::write(folder.path().join(name), name).expect("a file can be written");
        }
        let log = folder.path().join("train.log");
        (folder, log)
    }

    fn names(rotated: &[Rotated]) -> Vec<String> {
        let name = |rotated: &Rotated| {
            rotated
                .path
                .file_name()
                .map(|name| name.to_string_lossy().into_owned())
        };
        rotated.iter().filter_map(name).collect()
    }

    /// The identity of a file that holds its own name.
    fn identity(path: &Path, name: &str) -> FileIdentity {
        let inode = Inode::from_metadata(&path.metadata().expect("the file is there"));
        FileIdentity::new(inode, name.as_bytes())
    }

    #[test]
    fn rotated_files_are_ordered_by_number_and_other_files_are_ignored() {
        let (_folder, log) = folder(&[
            "train.log",
            "train.log.1",
            "train.log.10",
            "train.log.2.gz",
            "train.log.bak",
            "train.log.3.tmp",
            "other.log.4",
        ]);
        let all = all(&log);
        assert_eq!(names(&all), ["train.log.10", "train.log.2.gz", "train.log.1"]);
        assert_eq!(
            all.iter().map(|file| file.is_compressed).collect::<Vec<_>>(),
            [false, true, false]
        );
    }

    /// Files that are written at once often have equal modification times. Then their names order them.
    #[test]
    fn files_with_dates_are_ordered_by_modification_time_and_date() {
        let (_folder, log) = folder(&[
            "train.log-20261119",
            "train.log-20261120",
            "train.log.2026-11-21_10-30",
        ]);
        assert_eq!(
            names(&all(&log)),
            [
                "train.log-20261119",
                "train.log-20261120",
                "train.log.2026-11-21_10-30"
            ]
        );
    }

    #[test]
    fn newer_rotated_files_are_found_by_number_or_modification_time() {
        let (folder, log) = folder(&["train.log.3", "train.log.2", "train.log.1"]);
        let second = folder.path().join("train.log.2");
        assert_eq!(
            names(&after(
                &log,
                &identity(&second, "train.log.2"),
                UnixNanos::UNKNOWN
            )),
            ["train.log.1"]
        );
        // Its inode was reused.
        let gone = identity(&second, "another");
        assert_eq!(after(&log, &gone, UnixNanos::UNKNOWN).len(), 3);
        assert_eq!(after(&log, &gone, UnixNanos::MAX).len(), 0);
    }
}
