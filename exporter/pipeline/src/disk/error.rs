//! Errors that prevent the use of a disk queue folder, and notices about losses and failures after which the queue
//! continues.

use std::{
    fmt, io,
    path::{Path, PathBuf},
};

use super::RecordCounts;
use crate::Problem;

/// The error of a disk queue whose folder cannot be used. Nothing in the folder was changed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DiskQueueError {
    /// The folder or a file in it cannot be created, read or written.
    Io {
        /// The failed action, as a verb.
        action: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
    /// Another process uses the folder.
    InUse {
        /// The folder.
        path: PathBuf,
    },
    /// A queue of this process in the folder is being closed, and its disk does not respond.
    Closing {
        /// The folder.
        path: PathBuf,
    },
    /// A segment was written by another version of this program.
    Version {
        /// The segment.
        path: PathBuf,
        /// The version of the segment.
        version: u32,
        /// The version that this program reads.
        supported: u32,
    },
}

impl DiskQueueError {
    /// Returns the cause and the remedy.
    pub fn problem(&self) -> Problem {
        let (what, remedy) = match self {
            Self::Io { action, path, source } => (
                format!("cannot {action} {}: {source}", path.display()),
                remedy(source),
            ),
            Self::InUse { path } => (
                format!("the disk queue {} is in use by another process", path.display()),
                "stop it, or give this one another state_folder",
            ),
            Self::Closing { path } => (
                format!(
                    "the disk queue {} is still being written for the sink that was removed",
                    path.display()
                ),
                "check the disk",
            ),
            Self::Version {
                path,
                version,
                supported,
            } => (
                format!(
                    "{} has version {version} of the format, and this program reads version {supported}",
                    path.display()
                ),
                "let the version that wrote it send its queue, or move the folder away, which gives up its data",
            ),
        };
        Problem::new(what).with_remedy(remedy)
    }
}

impl fmt::Display for DiskQueueError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.problem().fmt(f)
    }
}

/// A loss or a failure that a disk queue reports before it continues.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Notice {
    /// An incomplete record at the end of a segment was truncated. Its process ended while it wrote the record, or it
    /// appended the record again to the next segment. Only after a failure of the machine, the last record of the log may
    /// have been acknowledged ([`SyncPolicy::Interval`](super::SyncPolicy::Interval),
    /// [`SyncPolicy::Never`](super::SyncPolicy::Never)).
    TornTail {
        /// The segment.
        path: PathBuf,
        /// The number of bytes that were truncated.
        bytes: u64,
    },
    /// A part of a segment cannot be read.
    Unreadable {
        /// The segment.
        path: PathBuf,
        /// The length of the part.
        bytes: u64,
        /// The records that are missing.
        lost: RecordCounts,
        /// Whether the numbers of other records show what is missing. Otherwise it is estimated from the corrupt bytes.
        is_exact: bool,
        /// The copy of the part, if it could be made.
        aside: Option<PathBuf>,
    },
    /// A segment was deleted.
    Missing {
        /// The segment.
        path: PathBuf,
        /// The records in the segment that were not sent yet.
        lost: RecordCounts,
    },
    /// The end of a segment was deleted, or the newest segment.
    Shortened {
        /// The last segment that was found.
        path: PathBuf,
        /// The records that are missing after it.
        lost: RecordCounts,
    },
    /// The cursor cannot be read, or is not in the log: all stored batches are sent again.
    BadCursor {
        /// The file of the cursor.
        path: PathBuf,
        /// The reason.
        reason: String,
    },
    /// The disk rejects writes or reads: the queue has no room until a retry succeeds.
    Stalled {
        /// The failed operation and the folder.
        problem: Problem,
    },
    /// The disk works again.
    Resumed {
        /// The folder.
        path: PathBuf,
    },
    /// `fsync` failed: a failure of the machine could lose the records that were appended since the last sync.
    NotSynced {
        /// The folder.
        path: PathBuf,
        /// The failed operation.
        problem: Problem,
    },
    /// The folder was deleted or replaced while it was in use.
    FolderGone {
        /// The folder.
        path: PathBuf,
        /// The records in the folder that were not sent yet.
        lost: RecordCounts,
    },
}

impl Notice {
    /// Returns the lost records.
    pub fn lost(&self) -> RecordCounts {
        match self {
            Self::Unreadable { lost, .. }
            | Self::Missing { lost, .. }
            | Self::Shortened { lost, .. }
            | Self::FolderGone { lost, .. } => *lost,
            _ => RecordCounts::default(),
        }
    }
}

impl fmt::Display for Notice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let items = self.lost().total_items();
        match self {
            Self::TornTail { path, bytes } => write!(
                f,
                "{}: truncated the last {bytes} bytes, an incomplete record that was not acknowledged unless the machine \
                 failed",
                path.display()
            ),
            Self::Unreadable {
                path, bytes, aside, ..
            } if items == 0 => {
                write!(
                    f,
                    "{}: {bytes} bytes are not records of this file; no item is missing",
                    path.display()
                )?;
                write_aside(f, aside.as_deref())
            }
            Self::Unreadable {
                path,
                bytes,
                is_exact,
                aside,
                ..
            } => {
                write!(
                    f,
                    "{}: lost {}{items} items in {bytes} bytes that are corrupt; the rest is sent; check the disk",
                    path.display(),
                    if *is_exact { "" } else { "at least " }
                )?;
                write_aside(f, aside.as_deref())
            }
            Self::Shortened { path, .. } => write!(
                f,
                "{}: lost {items} items, because its end or the file after it was deleted; the rest is sent; check the disk, \
                 and keep other programs out of this folder",
                path.display()
            ),
            Self::Missing { path, .. } => write!(
                f,
                "{}: lost {items} items, because the file was deleted before it was sent; keep other programs out of this folder",
                path.display()
            ),
            Self::BadCursor { path, reason } => write!(
                f,
                "{}: {reason}; all data in its folder is sent again, so some arrives twice",
                path.display()
            ),
            Self::Stalled { problem } => write!(f, "{problem}; nothing more is accepted until then"),
            Self::Resumed { path } => write!(f, "the disk queue {} works again", path.display()),
            Self::NotSynced { problem, .. } => write!(f, "fsync failed: {problem}"),
            Self::FolderGone { path, .. } => write!(
                f,
                "{}: lost {items} items, because the folder was deleted while it was in use; it is created again",
                path.display()
            ),
        }
    }
}

/// Writes where corrupt bytes were copied to.
fn write_aside(f: &mut fmt::Formatter<'_>, aside: Option<&Path>) -> fmt::Result {
    match aside {
        Some(aside) => write!(f, " (the bytes are in {})", aside.display()),
        None => Ok(()),
    }
}

/// Returns the remedy for an error of the file system.
pub(super) fn remedy(error: &io::Error) -> &'static str {
    if matches!(error.raw_os_error(), Some(libc::EMFILE | libc::ENFILE)) {
        return "raise the limit of open files (ulimit -n, LimitNOFILE of systemd)";
    }
    match error.kind() {
        io::ErrorKind::InvalidData => "move it out of the folder of the queue",
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge => {
            "make room on the disk, or lower the bytes of the disk_queue"
        }
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
            "make the folder writable for this user, name another state_folder, or set disk_queue: off"
        }
        io::ErrorKind::NotADirectory | io::ErrorKind::AlreadyExists => {
            "a file is in the place of the folder: move it away, or name another state_folder"
        }
        _ => "check the disk, name another state_folder, or set disk_queue: off",
    }
}
