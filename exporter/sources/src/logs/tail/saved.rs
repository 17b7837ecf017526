//! What is kept of positions on the disk, and how: one JSON file, replaced as a whole.

use std::{
    collections::BTreeMap,
    fs::{self, File},
    io::{self, Write},
    path::{Path, PathBuf},
};

use serde::{Deserialize, Serialize};

use super::identity::FileIdentity;
use crate::{Place, Run, logs::RunOptions};

const FILE_NAME: &str = "positions.json";
const VERSION: u32 = 1;

/// Everything that is kept.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq, Serialize)]
pub(super) struct Saved {
    version: u32,
    /// How far each file is read and delivered.
    pub(super) files: BTreeMap<PathBuf, FilePosition>,
    /// Files that were read to their end and given up, the newest last.
    #[serde(default)]
    pub(super) finished: Vec<FileIdentity>,
    /// Where each output that can be cut back ended then.
    pub(super) outputs: BTreeMap<String, u64>,
}

/// How far one file is read, and as whose.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq, Serialize)]
pub(super) struct FilePosition {
    pub(super) identity: FileIdentity,
    /// The first byte that is not delivered.
    pub(super) offset: u64,
    pub(super) line: u64,
    pub(super) format: String,
    pub(super) run: SavedRun,
    /// Whether the run began in a file that this one took the place of: its sums cannot be rebuilt.
    #[serde(default)]
    pub(super) is_continued: bool,
}

/// What the first bytes said of a run when it was opened. It is kept because more bytes, or another start, could say more.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq, Serialize)]
pub(super) struct SavedRun {
    pub(super) id: String,
    pub(super) name: String,
    pub(super) framework: String,
    pub(super) attempt: i64,
    pub(super) start_unix_nanos: u64,
}

impl Default for Saved {
    fn default() -> Self {
        Self {
            version: VERSION,
            files: BTreeMap::new(),
            finished: Vec::new(),
            outputs: BTreeMap::new(),
        }
    }
}

impl FilePosition {
    pub(super) fn place(&self) -> Place {
        Place {
            offset: self.offset,
            line: self.line,
        }
    }
}

impl SavedRun {
    pub(super) fn of(run: &Run) -> Self {
        Self {
            id: run.id.clone(),
            name: run.name.clone(),
            framework: run.framework.clone(),
            attempt: run.attempt,
            start_unix_nanos: run.start_unix_nanos,
        }
    }

    /// The run as it was, with what the user says of it now.
    pub(super) fn resumed(&self, options: &RunOptions) -> Run {
        Run {
            id: self.id.clone(),
            name: self.name.clone(),
            framework: self.framework.clone(),
            attempt: self.attempt,
            start_unix_nanos: self.start_unix_nanos,
            service: options.service.clone().unwrap_or_default(),
            extra: options.resource.clone(),
            ..Run::default()
        }
    }
}

/// Reads what is kept in a folder; a file that makes no sense is put aside, and its new path is given.
pub(super) fn load(folder: &Path) -> io::Result<(Saved, Option<PathBuf>)> {
    let path = folder.join(FILE_NAME);
    let text = match fs::read(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok((Saved::default(), None)),
        Err(error) => return Err(error),
    };
    match serde_json::from_slice::<Saved>(&text) {
        Ok(saved) if saved.version == VERSION => Ok((saved, None)),
        _ => {
            let aside = path.with_extension("json.unreadable");
            fs::rename(&path, &aside)?;
            Ok((Saved::default(), Some(aside)))
        }
    }
}

/// Replaces what is kept: at every moment the file holds the old or the new state, also when the machine stops.
pub(super) fn store(folder: &Path, saved: &Saved) -> io::Result<()> {
    let path = folder.join(FILE_NAME);
    let new = path.with_extension("json.new");
    let mut file = File::create(&new)?;
    serde_json::to_writer(&mut file, saved)?;
    file.write_all(b"\n")?;
    file.sync_data()?;
    fs::rename(&new, &path)?;
    File::open(folder)?.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_stored_is_loaded() {
        let folder = tempfile::tempdir().unwrap();
        let saved = Saved {
            outputs: BTreeMap::from([("out.jsonl".to_owned(), 7)]),
            ..Saved::default()
        };
        store(folder.path(), &saved).unwrap();
        assert_eq!(load(folder.path()).unwrap(), (saved, None));
    }

    #[test]
    fn a_file_that_makes_no_sense_is_put_aside() {
        let folder = tempfile::tempdir().unwrap();
        for nonsense in [
            "{\"version\":1,\"fil",
            "{\"version\":99,\"files\":{},\"outputs\":{}}",
        ] {
            fs::write(folder.path().join(FILE_NAME), nonsense).unwrap();
            let (saved, aside) = load(folder.path()).unwrap();
            assert_eq!(saved, Saved::default());
            assert_eq!(fs::read_to_string(aside.unwrap()).unwrap(), nonsense);
        }
    }
}
