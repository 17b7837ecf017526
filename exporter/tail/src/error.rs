//! Errors of an import and of a follower; [`Skipped`](pulsetrain_record::Skipped) has those of single records.

use std::{io, path::PathBuf};

use pulsetrain_formats::FormatError;

/// Why a log could not be read, or not to its end.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TailError {
    /// The format of the input could not be chosen.
    #[error(transparent)]
    Format(#[from] FormatError),
    /// The input could not be opened.
    #[error("cannot open {path}: {source}; {advice}", path = path.display())]
    Open {
        /// What was to be opened.
        path: PathBuf,
        /// What to do.
        advice: &'static str,
        /// What the system said.
        source: io::Error,
    },
    /// Reading stopped before the end of the input.
    #[error("cannot read on in {name} at byte {offset}: {source}; what came before is used")]
    Read {
        /// The input.
        name: String,
        /// How far it was read.
        offset: u64,
        /// What the system said.
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
    /// Nothing in the input is of the format that was named.
    #[error("nothing in {name} is of the format {format}{instead}")]
    NothingOf {
        /// The input.
        name: String,
        /// The name of the format.
        format: &'static str,
        /// What the input looks like, and what to do.
        instead: String,
    },
    /// Nothing is in the input.
    #[error("{name} is empty; if the run has only just started, try again when it has logged its first step")]
    Empty {
        /// The input.
        name: String,
    },
    /// A pattern of files to follow makes no sense.
    #[error("{pattern} is no pattern: {message} at character {place}; it is taken for the name of a file")]
    Pattern {
        /// The pattern.
        pattern: String,
        /// Where it stops making sense, in characters.
        place: usize,
        /// What is wrong there.
        message: &'static str,
    },
    /// The positions of followed files cannot be read or written.
    #[error("cannot keep positions in {folder}: {source}; make the folder and its files readable and writable and its disk have room, or name another one", folder = folder.display())]
    Positions {
        /// The folder.
        folder: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A follower ended while the sinks had no room for what it had not read yet.
    #[error(
        "{bytes} bytes of the followed logs were not read: the sinks had no room for them; import the logs when the sinks are back"
    )]
    Unread {
        /// The bytes that were not read.
        bytes: u64,
    },
    /// A log was rotated and compressed before it was read.
    #[error("{path} was rotated and compressed before it was read, and is not read; to have it, decompress it and import it by itself", path = path.display())]
    RotatedAway {
        /// The file.
        path: PathBuf,
    },
    /// The positions were written by a later version of the program.
    #[error("{path} is of version {version}, which a later pulsetrain wrote; start that one, or move the file away to read every log from its beginning", path = path.display())]
    PositionsOfLater {
        /// The file.
        path: PathBuf,
        /// Its version.
        version: u32,
    },
    /// A file was written anew, and nobody knows what of it was told.
    #[error("{path} was written anew while nobody followed it, and its position does not say what of it was told before: all of it is told, what was told before once more", path = path.display())]
    ToldUnknown {
        /// The file.
        path: PathBuf,
    },
    /// Two logs have recorded one rank of a run.
    #[error("{name} {shared}")]
    SharedRank {
        /// The log.
        name: String,
        /// The rank, the other log and what to do.
        shared: String,
    },
    /// The pattern of the user finds no rank in a path.
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
        "cannot read on in {name}: its parser panicked ({message}), which is a bug of pulsetrain; please report it with the file. What came before is used, and other inputs are read"
    )]
    Panicked {
        /// The input.
        name: String,
        /// The message of the panic.
        message: String,
    },
    /// Another program keeps its positions in the folder.
    #[error("another pulsetrain keeps its positions in {folder}; end it, or name another folder", folder = folder.display())]
    PositionsInUse {
        /// The folder.
        folder: PathBuf,
    },
    /// The pipeline takes no more.
    #[error("{name} was not read to its end (stopped at byte {offset})")]
    Stopped {
        /// The input.
        name: String,
        /// How far it was read.
        offset: u64,
    },
}

impl TailError {
    /// The panic of a parser, which [`caught`](crate::caught) has caught.
    pub fn panicked(name: &str, message: &str) -> Self {
        Self::Panicked {
            name: name.to_owned(),
            message: message.to_owned(),
        }
    }

    /// An error of reading or writing the positions in a folder.
    pub(crate) fn positions(folder: impl Into<PathBuf>, source: io::Error) -> Self {
        Self::Positions {
            folder: folder.into(),
            source,
        }
    }

    /// An error of opening, with the advice that its kind calls for.
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
