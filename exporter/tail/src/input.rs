//! The input of an import: a file, a named pipe or the standard input.

use std::{
    fs::{File, Metadata},
    io::{self, Read},
    path::PathBuf,
    time::UNIX_EPOCH,
};

use pulsetrain_otlp::UnixNanos;

use crate::TailError;

/// The input of a log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LogInput {
    /// A file or a named pipe.
    Path(PathBuf),
    /// The standard input.
    Stdin,
}

impl LogInput {
    /// Returns the name for messages.
    pub fn name(&self) -> String {
        match self {
            Self::Path(path) => path.display().to_string(),
            Self::Stdin => "standard input".to_owned(),
        }
    }

    pub(crate) fn open(&self) -> Result<Box<dyn Read + Send>, TailError> {
        let Self::Path(path) = self else {
            return Ok(Box::new(io::stdin()));
        };
        let file = File::open(path).map_err(|error| TailError::open(path, error))?;
        let is_directory = file.metadata().is_ok_and(|metadata| metadata.is_dir());
        if is_directory {
            return Err(TailError::NoLogs { name: self.name() });
        }
        Ok(Box::new(file))
    }

    /// Returns the modification time of a file, or `None` for a pipe.
    pub(crate) fn last_change(&self) -> Option<UnixNanos> {
        let Self::Path(path) = self else { return None };
        let metadata = path.metadata().ok().filter(Metadata::is_file)?;
        let changed = metadata.modified().ok()?.duration_since(UNIX_EPOCH).ok()?;
        Some(UnixNanos::since_1970(changed))
    }
}
