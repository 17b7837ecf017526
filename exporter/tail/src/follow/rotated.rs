//! The files that a log was rotated to, beside it: `train.log.1`, `train.log-20261121`, `train.log.2.gz`, in their order.

use std::{
    cmp::Reverse,
    fs::{File, Metadata},
    path::{Path, PathBuf},
    time::UNIX_EPOCH,
};

use super::{
    candidates::open,
    identity::{FileIdentity, Inode},
};

/// Endings of compressed files, which are not read.
const COMPRESSED: [&str; 5] = [".gz", ".zst", ".xz", ".bz2", ".lz4"];

/// A file that a log was rotated to.
#[derive(Debug)]
pub(super) struct Rotated {
    pub(super) path: PathBuf,
    pub(super) inode: Inode,
    pub(super) is_compressed: bool,
    modified_unix_nanos: u64,
    place: Place,
}

/// What its name says of its place: the older, the less.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Place {
    /// By a date, of which only the digits count: `20261121` and `2026-11-21` are one day.
    Stamp(String),
    /// By a number that grows with its age.
    Age(Reverse<u32>),
}

/// The files that came after this one, which was last written to then; the oldest first. Where that one is gone, those that
/// were written to later.
pub(super) fn after(path: &Path, identity: &FileIdentity, modified_unix_nanos: u64) -> Vec<Rotated> {
    let mut all = all(path);
    // The inode of a file that is gone is soon that of another.
    let is_it = |rotated: &Rotated| {
        rotated.inode == identity.inode
            && open(&rotated.path).is_ok_and(|(file, _)| identity.has_content(&file).unwrap_or(false))
    };
    match all.iter().position(is_it) {
        Some(place) => all.split_off(place + 1),
        None => {
            all.retain(|rotated| rotated.modified_unix_nanos > modified_unix_nanos);
            all
        }
    }
}

/// A copy of a file that was emptied since, which holds what was read up to `read_to`.
pub(super) fn copy_of(path: &Path, identity: &FileIdentity, read_to: u64) -> Option<(File, Inode)> {
    let is_copy = |(file, inode): &(File, Inode)| {
        let is_long_enough = file.metadata().is_ok_and(|metadata| metadata.len() >= read_to);
        *inode != identity.inode && is_long_enough && identity.has_content(file).unwrap_or(false)
    };
    // Only where the file is still there, with something else in it, was it emptied.
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

/// A file beside the log, or the log itself, under whatever name it has by now.
pub(super) fn open_by_inode(path: &Path, inode: Inode) -> Option<(File, Inode)> {
    let siblings = path.parent()?.read_dir().ok()?;
    siblings
        .flatten()
        .filter_map(|entry| open(&entry.path()).ok())
        .find(|(_, found)| *found == inode)
}

/// Returns the log that a file was rotated from, if that is still there, else the file itself.
pub(crate) fn log_of(path: &str) -> &str {
    let is_log = |at: &usize| {
        let (log, rest) = path.split_at(*at);
        Place::parse(plain(rest).unwrap_or(rest)).is_some() && Path::new(log).is_file()
    };
    let mut ends = path.match_indices(['.', '-']).map(|(at, _)| at);
    ends.find(is_log).map_or(path, |at| &path[..at])
}

/// The end of a name without that of a compressed file.
fn plain(rest: &str) -> Option<&str> {
    COMPRESSED.iter().find_map(|ending| rest.strip_suffix(ending))
}

/// All that a log was rotated to, the oldest first.
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
            Rotated::of(entry.path(), rest, &entry.metadata().ok()?)
        })
        .collect();
    let has_stamps = all.iter().any(|rotated| matches!(rotated.place, Place::Stamp(_)));
    all.sort_by(|one, other| match has_stamps {
        true => (one.modified_unix_nanos, &one.place).cmp(&(other.modified_unix_nanos, &other.place)),
        false => one.place.cmp(&other.place),
    });
    all
}

impl Rotated {
    /// A file whose name has this behind that of the log; nothing where that is no place in a rotation.
    fn of(path: PathBuf, rest: &str, metadata: &Metadata) -> Option<Self> {
        let plain = plain(rest);
        let place = Place::parse(plain.unwrap_or(rest))?;
        let modified = metadata.modified().ok()?.duration_since(UNIX_EPOCH).ok()?;
        metadata.is_file().then(|| Self {
            path,
            inode: Inode::of(metadata),
            is_compressed: plain.is_some(),
            modified_unix_nanos: modified.as_nanos() as u64,
            place,
        })
    }
}

impl Place {
    fn parse(rest: &str) -> Option<Self> {
        let text = rest.strip_prefix(['.', '-', '_'])?;
        let is_of_date = |char: char| char.is_ascii_digit() || "-_.:TZ".contains(char);
        if !text.starts_with(|first: char| first.is_ascii_digit()) || !text.chars().all(is_of_date) {
            return None;
        }
        match text.parse() {
            Ok(age) if text.len() <= 4 => Some(Self::Age(Reverse(age))),
            _ => Some(Self::Stamp(text.chars().filter(char::is_ascii_digit).collect())),
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
        let inode = Inode::of(&path.metadata().expect("the file is there"));
        FileIdentity::new(inode, name.as_bytes())
    }

    #[test]
    fn numbers_grow_with_age_and_what_is_no_rotation_is_left_alone() {
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

    /// Files that are written at once often have one time of modification: their names tell them apart.
    #[test]
    fn dates_come_in_the_order_in_which_they_were_written() {
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
    fn what_came_after_a_file_is_known_by_its_place_and_where_it_is_gone_by_its_time() {
        let (folder, log) = folder(&["train.log.3", "train.log.2", "train.log.1"]);
        let second = folder.path().join("train.log.2");
        assert_eq!(
            names(&after(&log, &identity(&second, "train.log.2"), 0)),
            ["train.log.1"]
        );
        // Its inode is that of another file by now.
        let gone = identity(&second, "another");
        assert_eq!(after(&log, &gone, 0).len(), 3);
        assert_eq!(after(&log, &gone, u64::MAX).len(), 0);
    }
}
