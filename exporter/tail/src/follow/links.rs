//! Decides whether a link is followed: an agent may have more rights than the users whose folders it follows.

use std::{
    fs::{self, File},
    io,
    os::fd::AsRawFd,
    path::{Path, PathBuf},
};

/// Where the links of an input may lead.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum LinkPolicy {
    /// To any file: the user names the path itself, or allows it.
    Anywhere,
    /// To files below this folder, whose own path has no links.
    Below(PathBuf),
}

impl LinkPolicy {
    /// Returns the policy for the files of a folder. A folder that does not exist has no links.
    pub(super) fn for_folder(folder: &Path, follow_links: bool) -> Self {
        if follow_links {
            return Self::Anywhere;
        }
        Self::Below(folder.canonicalize().unwrap_or_else(|_| folder.to_owned()))
    }

    /// Returns whether a file may be read whose path without links is `real`.
    pub(super) fn allows(&self, real: &Path) -> bool {
        match self {
            Self::Anywhere => true,
            Self::Below(folder) => real.starts_with(folder),
        }
    }
}

/// Returns the path of an open file without links. A link that is replaced after the file was opened has no effect.
pub(super) fn real_path(file: &File, path: &Path) -> io::Result<PathBuf> {
    fs::read_link(format!("/proc/self/fd/{}", file.as_raw_fd())).or_else(|_| path.canonicalize())
}
