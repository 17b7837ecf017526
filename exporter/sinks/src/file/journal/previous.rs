//! Journals of files that were rotated or moved while some of their records were unacknowledged.
//!
//! The journal `NAME.journal` of such a file is `NAME.1.journal`, and so on, until its last record is
//! acknowledged.

use std::{
    ffi::OsStr,
    fs, io,
    path::{Path, PathBuf},
};

use super::{super::identity::FileIdentity, JournalContent};

/// The journal of an earlier file.
#[derive(Debug)]
pub(super) struct PreviousJournal {
    path: PathBuf,
    file: Option<FileIdentity>,
    /// The number after the last ack.
    end: u64,
}

impl PreviousJournal {
    /// Returns the journal at `path`, which holds `notes`.
    pub(super) fn new(path: PathBuf, notes: &JournalContent) -> Self {
        let acks = notes.spans.iter().filter_map(|span| span.ack);
        Self {
            path,
            file: notes.file,
            end: acks.max().map_or(0, |last| last.saturating_add(1)),
        }
    }

    /// Returns the earlier journals of the journal at `journal`.
    pub(super) fn all(journal: &Path) -> io::Result<Vec<Self>> {
        let folder = journal.parent().unwrap_or(Path::new("."));
        let mut numbered = Vec::new();
        for entry in fs::read_dir(folder)? {
            let path = entry?.path();
            numbered.extend(number(journal, &path).map(|number| (number, path)));
        }
        numbered.sort();
        let read = |(_, path): (u32, PathBuf)| {
            let notes = JournalContent::parse(&fs::read_to_string(&path)?);
            Ok(Self::new(path, &notes))
        };
        numbered.into_iter().map(read).collect()
    }

    /// Returns an unused path for another earlier journal.
    pub(super) fn free_path(journal: &Path) -> PathBuf {
        let mut paths = (1_u32..).map(|number| journal.with_extension(format!("{number}.journal")));
        paths.find(|path| !path.exists()).unwrap_or_default()
    }

    /// Returns the path of the journal.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the file that the journal describes.
    pub(super) fn file(&self) -> Option<FileIdentity> {
        self.file
    }

    /// Returns whether no record of the file is replayed. Removes the journal in this case. A journal that
    /// cannot be removed stays.
    pub(super) fn is_acked(&self, first_unacked: u64) -> bool {
        self.end <= first_unacked && self.remove().is_ok()
    }

    /// Removes the journal.
    pub(super) fn remove(&self) -> io::Result<()> {
        match fs::remove_file(&self.path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            removed => removed,
        }
    }
}

/// Returns the number in the name of an earlier journal of `journal`.
fn number(journal: &Path, path: &Path) -> Option<u32> {
    if path.extension() != Some(OsStr::new("journal")) {
        return None;
    }
    let stem = path.file_stem()?.to_str()?;
    let number = stem
        .strip_prefix(journal.file_stem()?.to_str()?)?
        .strip_prefix('.')?;
    number.parse().ok()
}
