//! Errors of an import and of a follower; [`ParseReport`](pulsetrain_record::ParseReport) has those of single records.

use std::{any::Any, borrow::Cow, fmt, io, path::PathBuf};

use pulsetrain_formats::FormatError;
use pulsetrain_pipeline::Problem;

use crate::claims::SharedRank;

/// The error of a log that could not be read, or not to its end.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TailError {
    /// The format of the input could not be determined.
    Format(#[from] FormatError),
    /// The input could not be opened.
    Open {
        /// The path of the input.
        path: PathBuf,
        /// The remedy.
        remedy: &'static str,
        /// The error of the system.
        source: io::Error,
    },
    /// A read failed.
    Read {
        /// The input.
        name: String,
        /// The number of bytes that were read.
        offset: u64,
        /// The error of the system.
        source: io::Error,
    },
    /// The input is a folder without logs.
    NoLogs {
        /// The folder.
        name: String,
    },
    /// The input contains no record of the format that the user named.
    NoRecords {
        /// The input.
        name: String,
        /// The name of the format.
        format: &'static str,
        /// The keys that the input has, if they explain the error.
        found: Option<String>,
        /// The remedy, with the format that the input has.
        remedy: String,
    },
    /// The input is empty.
    Empty {
        /// The input.
        name: String,
    },
    /// A pattern of files to follow is invalid.
    Pattern {
        /// The pattern.
        pattern: String,
        /// The position of the error, in characters.
        place: usize,
        /// The error.
        message: &'static str,
    },
    /// A link leads out of the folder or the pattern that is followed.
    LinkOutside {
        /// The link.
        link: PathBuf,
        /// The file or folder that it leads to.
        target: PathBuf,
    },
    /// The checkpoints of followed files cannot be read or written.
    Checkpoints {
        /// The folder.
        folder: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// A follower ended while the sinks had no room for its unread bytes.
    Unread {
        /// The number of unread bytes.
        bytes: u64,
    },
    /// A log was rotated and compressed before it was read.
    RotatedAway {
        /// The file.
        path: PathBuf,
    },
    /// The checkpoint file has the version of a newer program.
    NewerCheckpoints {
        /// The file.
        path: PathBuf,
        /// Its version.
        version: u32,
    },
    /// A file was rewritten while nothing followed it, and its checkpoint has no record of emitted items.
    RewrittenUnobserved {
        /// The file.
        path: PathBuf,
    },
    /// Two logs have recorded the same rank of a run.
    SharedRank {
        /// The log.
        name: String,
        /// The rank and the other log.
        shared: SharedRank,
    },
    /// The user's pattern finds no rank in a path.
    NoRank {
        /// The log.
        name: String,
        /// The pattern.
        pattern: String,
    },
    /// The parser of the input panicked.
    Panicked {
        /// The input.
        name: String,
        /// The message of the panic.
        message: String,
    },
    /// Another process uses the state folder.
    StateFolderInUse {
        /// The folder.
        folder: PathBuf,
    },
    /// The pipeline was closed before the end of the input.
    Stopped {
        /// The input.
        name: String,
        /// The number of bytes that were read.
        offset: u64,
    },
}

impl TailError {
    /// Returns the error of a parser's panic, which [`catch_panic`](crate::catch_panic) has caught.
    pub fn panicked(name: &str, panic: &(dyn Any + Send)) -> Self {
        let literal = panic.downcast_ref::<&str>().copied();
        let message = literal.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
        Self::Panicked {
            name: name.to_owned(),
            message: message.unwrap_or("no message").to_owned(),
        }
    }

    /// Returns the cause and the remedy.
    pub fn problem(&self) -> Problem {
        let problem = match self {
            Self::Format(error) => Problem::new(error.cause()).about(error.name()),
            _ => Problem::new(self.cause()),
        };
        Problem {
            remedy: self.remedy(),
            ..problem
        }
    }

    fn cause(&self) -> String {
        match self {
            Self::Format(error) => error.cause().to_string(),
            Self::Open { path, source, .. } => format!("cannot open {}: {source}", path.display()),
            Self::Read { name, offset, source } => format!("cannot read {name} at byte {offset}: {source}"),
            Self::NoLogs { name } => {
                format!("{name} is a directory, and no file in it is a log that is recognised")
            }
            Self::NoRecords {
                name, format, found, ..
            } => {
                let found = found.iter().map(|found| format!("; {found}")).collect::<String>();
                format!("{name} has no records of the format {format}{found}")
            }
            Self::Empty { name } => format!("{name} is empty"),
            Self::Pattern {
                pattern,
                place,
                message,
            } => format!("{pattern} is not a valid pattern: {message} at character {place}"),
            Self::LinkOutside { link, target } => format!(
                "{} is a link to {}, outside the folder that is followed, and is not read",
                link.display(),
                target.display()
            ),
            Self::Checkpoints { folder, source } => {
                format!("cannot store checkpoints in {}: {source}", folder.display())
            }
            Self::Unread { bytes } => {
                format!("{bytes} bytes of the followed logs were not read: the sinks had no room for them")
            }
            Self::RotatedAway { path } => format!(
                "{} was rotated and compressed before it was read, and is not read",
                path.display()
            ),
            Self::NewerCheckpoints { path, version } => format!(
                "{} is of version {version}, which a newer pulsetrain wrote",
                path.display()
            ),
            Self::RewrittenUnobserved { path } => format!(
                "{} was rewritten while pulsetrain was not running",
                path.display()
            ),
            Self::SharedRank { name, shared } => format!("{name} {}", shared.problem().what),
            Self::NoRank { name, pattern } => {
                format!("{name}: the pattern {pattern} finds no rank in this path")
            }
            Self::Panicked { name, message } => format!(
                "cannot read on in {name}: its parser panicked ({message}), which is a bug of pulsetrain"
            ),
            Self::StateFolderInUse { folder } => {
                format!("another pulsetrain uses the state folder {}", folder.display())
            }
            Self::Stopped { name, offset } => {
                format!("{name} was not read to its end (stopped at byte {offset})")
            }
        }
    }

    fn remedy(&self) -> Option<Cow<'static, str>> {
        Some(Cow::Borrowed(match self {
            Self::Format(error) => return Some(error.remedy()),
            Self::Open { remedy, .. } => remedy,
            Self::Read { .. } => "the records before it are used",
            Self::NoLogs { .. } => "name the log, and its format with --format",
            Self::NoRecords { remedy, .. } => return Some(Cow::Owned(remedy.clone())),
            Self::Empty { .. } => {
                "if the run has only just started, try again when it has logged its first step"
            }
            Self::Pattern { .. } => "it is used as the name of a file",
            Self::LinkOutside { .. } => "follow the target itself, or set follow_links: true",
            Self::Checkpoints { .. } => {
                "make the folder and its files readable and writable, free disk space, or name another folder"
            }
            Self::Unread { .. } => "import the logs when the sinks are back",
            Self::RotatedAway { .. } => "decompress it and import it by itself",
            Self::NewerCheckpoints { .. } => {
                "start that one, or move the file away to read every log from its beginning"
            }
            Self::RewrittenUnobserved { .. } => {
                "it is imported again in full, so earlier items may appear twice"
            }
            Self::SharedRank { shared, .. } => return shared.problem().remedy,
            Self::NoRank { .. } => "correct the pattern, or give the rank itself",
            Self::Panicked { .. } => {
                "please report it with the file. The records before it are used, and other inputs are read"
            }
            Self::StateFolderInUse { .. } => "end it, or name another folder",
            Self::Stopped { .. } => return None,
        }))
    }

    /// Returns the error of a link that is not followed.
    pub(crate) fn link_outside(link: impl Into<PathBuf>, target: PathBuf) -> Self {
        Self::LinkOutside {
            link: link.into(),
            target,
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
        let remedy = match source.kind() {
            io::ErrorKind::NotFound => "check the path",
            io::ErrorKind::PermissionDenied => "run as a user who may read it, or change its permissions",
            io::ErrorKind::IsADirectory => "name the log file inside it",
            _ => "check the path and the disk",
        };
        Self::Open {
            path: path.into(),
            remedy,
            source,
        }
    }
}

impl fmt::Display for TailError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.problem().fmt(f)
    }
}
