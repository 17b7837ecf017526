//! The notice about an output file at its opening.

use std::{fmt, io, path::PathBuf};

use super::foreign::MovedBytes;

/// Findings in an output file that the user needs to know.
#[derive(Debug)]
pub struct FileNotice {
    pub(super) path: PathBuf,
    /// The number of kept bytes of other programs.
    pub(super) foreign: u64,
    pub(super) aside: Option<MovedBytes>,
    /// The bytes of records that are delivered again, although a rotated file outside the folder holds them.
    pub(super) repeated: u64,
    /// The reason why the file has no lock.
    pub(super) unlocked: Option<io::Error>,
}

impl FileNotice {
    /// Returns `None` if there is nothing to report.
    pub(super) fn worth_reporting(self) -> Option<Self> {
        let is_worth =
            self.foreign > 0 || self.aside.is_some() || self.repeated > 0 || self.unlocked.is_some();
        is_worth.then_some(self)
    }
}

impl fmt::Display for FileNotice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.path.display())?;
        let mut separator = "";
        if self.foreign > 0 {
            write!(
                f,
                "keeps {} bytes that are not from this program and its state folder, and appends to them",
                self.foreign
            )?;
            separator = "; ";
        }
        if let Some(MovedBytes { path, bytes }) = &self.aside {
            write!(
                f,
                "{separator}moved {bytes} bytes after its last known complete record to {}",
                path.display()
            )?;
            separator = "; ";
        }
        if self.repeated > 0 {
            write!(
                f,
                "{separator}writes {} bytes again from the previous file, which is no longer in the folder under any name; if it \
                 was moved elsewhere, those records are duplicated",
                self.repeated
            )?;
            separator = "; ";
        }
        if let Some(error) = &self.unlocked {
            write!(
                f,
                "{separator}cannot be locked ({error}); make sure that no other program writes to it"
            )?;
        }
        Ok(())
    }
}
