//! Errors of an import and of a follower; [`ParseReport`](pulsetrain_record::ParseReport) has those of single records.

use std::{io, path::PathBuf};

use pulsetrain_formats::FormatError;

/// The error of a log that could not be read, or not to its end.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TailError {
    /// The format of the input could not be determined.
    #[error(transparent)]
    Format(#[from] FormatError),
    /// The input could not be opened.
    #[error("cannot open {path}: {source}; {advice}", path = path.display())]
    Open {
        /// The path of the input.
        path: PathBuf,
        /// The fix.
        advice: &'static str,
        /// The error of the system.
        source: io::Error,
    },
    /// A read failed.
    #[error("cannot read {name} at byte {offset}: {source}; the records before it are used")]
    Read {
        /// The input.
        name: String,
        /// The number of bytes that were read.
        offset: u64,
        /// The error of the system.
        source: io::Error,
    },
    /// The input is a folder without logs.
    #[error(
        "{name} is a directory, and no file in it is a log that is recognised; name the log, and its format with --format"
    )]
    NoLogs {
        /// The folder.
        name: String,
    },
    /// The input contains no record of the format that the user named.
    #[error("{name} has no records of the format {format}{format_hint}")]
    NoRecords {
        /// The input.
        name: String,
        /// The name of the format.
        format: &'static str,
        /// The format that the input has, and the fix.
        format_hint: String,
    },
    /// The input is empty.
    #[error("{name} is empty; if the run has only just started, try again when it has logged its first step")]
    Empty {
        /// The input.
        name: String,
    },
    /// A pattern of files to follow is invalid.
    #[error(
        "{pattern} is not a valid pattern: {message} at character {place}; it is used as the name of a file"
    )]
    Pattern {
        /// The pattern.
        pattern: String,
        /// The position of the error, in characters.
        place: usize,
        /// The error.
        message: &'static str,
    },
    /// The checkpoints of followed files cannot be read or written.
    #[error("cannot store checkpoints in {folder}: {source}; make the folder and its files readable and writable, free disk space, or name another folder", folder = folder.display())]
    Checkpoints {
        /// The folder.
        folder: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// A follower ended while the sinks had no room for its unread bytes.
    #[error(
        "{bytes} bytes of the followed logs were not read: the sinks had no room for them; import the logs when the sinks are back"
    )]
    Unread {
        /// The number of unread bytes.
        bytes: u64,
    },
    /// A log was rotated and compressed before it was read.
    #[error("{path} was rotated and compressed before it was read, and is not read; decompress it and import it by itself", path = path.display())]
    RotatedAway {
        /// The file.
        path: PathBuf,
    },
    /// The checkpoint file has the version of a newer program.
    #[error("{path} is of version {version}, which a newer pulsetrain wrote; start that one, or move the file away to read every log from its beginning", path = path.display())]
    NewerCheckpoints {
        /// The file.
        path: PathBuf,
        /// Its version.
        version: u32,
    },
    /// A file was rewritten while nothing followed it, and its checkpoint has no record of emitted items.
    #[error("{path} was rewritten while pulsetrain was not running; it is imported again in full, so earlier items may appear twice", path = path.display())]
    RewrittenUnobserved {
        /// The file.
        path: PathBuf,
    },
    /// Two logs have recorded the same rank of a run.
    #[error("{name} {shared}")]
    SharedRank {
        /// The log.
        name: String,
        /// The rank, the other log and the fix.
        shared: String,
    },
    /// The user's pattern finds no rank in a path.
    #[error(
        "{name}: the pattern {pattern} finds no rank in this path; correct the pattern, or give the rank itself"
    )]
    NoRank {
        /// The log.
        name: String,
        /// The pattern.
        pattern: String,
    },
    /// The parser of the input panicked.
    #[error(
        "cannot read on in {name}: its parser panicked ({message}), which is a bug of pulsetrain; please report it with the file. The records before it are used, and other inputs are read"
    )]
    Panicked {
        /// The input.
        name: String,
        /// The message of the panic.
        message: String,
    },
    /// Another process uses the state folder.
    #[error("another pulsetrain uses the state folder {folder}; end it, or name another folder", folder = folder.display())]
    StateFolderInUse {
        /// The folder.
        folder: PathBuf,
    },
    /// The pipeline was closed before the end of the input.
    #[error("{name} was not read to its end (stopped at byte {offset})")]
    Stopped {
        /// The input.
        name: String,
        /// The number of bytes that were read.
        offset: u64,
    },
}

impl TailError {
    /// Returns the error of a parser's panic, which [`catch_panic`](crate::catch_panic) has caught.
    pub fn panicked(name: &str, message: &str) -> Self {
        Self::Panicked {
            name: name.to_owned(),
            message: message.to_owned(),
        }
    }

    /// Returns the error of reading or writing checkpoints in a folder.
    pub(crate) fn checkpoints(folder: impl Into<PathBuf>, source: io::Error) -> Self {
        Self::Checkpoints {
            folder: folder.into(),
            source,
        }
    }

    /// Returns the error of opening a file, with the fix for its kind.
    pub(crate) fn open(path: impl Into<PathBuf>, source: io::Error) -> Self {
        let advice = match source.kind() {
            io::ErrorKind::NotFound => "check the path",
            io::ErrorKind::PermissionDenied => "run as a user who may read it, or change its permissions",
            io::ErrorKind::IsADirectory => "name the log file inside it",
            _ => "check the path and the disk",
        };
        Self::Open {
            path: path.into(),
            advice,
            source,
        }
    }
}
