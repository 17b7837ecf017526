//! The notice about a checkpoint file that cannot be parsed.

use std::{fmt, path::PathBuf};

/// A checkpoint file could not be parsed and was moved aside.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct CheckpointNotice {
    /// The path of the file.
    pub path: PathBuf,
    /// The path of its copy.
    pub moved_to: PathBuf,
    /// Whether the previous checkpoint file is in use instead.
    pub is_recovered: bool,
}

impl fmt::Display for CheckpointNotice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (path, moved_to) = (self.path.display(), self.moved_to.display());
        write!(f, "{path} cannot be parsed and was moved to {moved_to}; ")?;
        match self.is_recovered {
            true => write!(
                f,
                "the previous checkpoints are used, so nothing is lost or repeated"
            ),
            false => write!(
                f,
                "every log is read from its beginning; output files keep their contents, so they get those items again: name \
                 new files to avoid duplicates"
            ),
        }
    }
}
