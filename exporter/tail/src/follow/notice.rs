//! What a user is told of positions that make no sense.

use std::{fmt, path::PathBuf};

/// Positions made no sense and were put aside.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PositionsNotice {
    /// Where they were.
    pub path: PathBuf,
    /// Where they are now.
    pub put_aside: PathBuf,
    /// Whether those that were written before them are there, so that all goes on where it was.
    pub goes_on: bool,
}

impl fmt::Display for PositionsNotice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (path, put_aside) = (self.path.display(), self.put_aside.display());
        write!(f, "{path} makes no sense and was put aside as {put_aside}; ")?;
        match self.goes_on {
            true => write!(f, "the positions before it count, so nothing is lost or repeated"),
            false => write!(
                f,
                "every log is read from its beginning; files keep what they hold, so they get those items again: name \
                 new files to have each once"
            ),
        }
    }
}
