//! The checkpoint file: JSON that is replaced atomically, and the previous version of it.

use std::{
    collections::BTreeMap,
    fs::{self, File},
    io::{self, Write},
    path::{Path, PathBuf},
};

use pulsetrain_otlp::UnixNanos;
use pulsetrain_pipeline::{clock, private_files};
use pulsetrain_record::{AttemptState, Run, SourcePosition, UsedTimezone};
use serde::{Deserialize, Deserializer, Serialize};

use super::{checkpoint_notice::CheckpointNotice, identity::FileIdentity};
use crate::{RunOptions, TailError};

const FILE_NAME: &str = "positions.json";
const VERSION: u32 = 1;

/// The contents of the checkpoint file.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq, Serialize)]
pub(super) struct CheckpointFile {
    version: u32,
    /// The checkpoint of each file.
    pub(super) files: BTreeMap<PathBuf, FileCheckpoint>,
    /// Files that were read to their end, the newest last.
    #[serde(default)]
    pub(super) finished: Vec<FileIdentity>,
    /// The number of the first unacknowledged entry. Its batches and all later ones are sent again.
    #[serde(rename = "entries")]
    pub(super) first_unacked: u64,
}

/// The checkpoint of one file: its offset, its run and the state that reading needs from there.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq, Serialize)]
pub(super) struct FileCheckpoint {
    pub(super) identity: FileIdentity,
    /// The first byte that is not acknowledged.
    pub(super) offset: u64,
    pub(super) line: u64,
    pub(super) format: String,
    pub(super) run: RunCheckpoint,
    /// The zone of times without one; `None` if this machine does not know it.
    #[serde(default, deserialize_with = "known_timezone")]
    pub(super) timezone: Option<UsedTimezone>,
    /// The instant of the last local time before the beginning of the file.
    #[serde(default)]
    pub(super) last_local_before: u64,
    #[serde(default, skip_serializing_if = "AttemptsCheckpoint::is_empty")]
    pub(super) attempts: AttemptsCheckpoint,
    /// Whether the run started in a file that this one replaced: its sums cannot be rebuilt.
    #[serde(default)]
    pub(super) is_continued: bool,
    /// Whether the series of the run have ended, because another run replaced it.
    #[serde(default)]
    pub(super) has_ended: bool,
    /// The modification time of the file when it was read last, in nanoseconds since 1970.
    #[serde(default)]
    pub(super) modified_unix_nanos: u64,
    /// The parser's record of items that were emitted, for a file that its writer rewrites.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) emitted: Option<serde_json::Value>,
}

/// The identity of a run when it was opened. Later bytes, or another start, could identify it differently.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq, Serialize)]
pub(super) struct RunCheckpoint {
    pub(super) id: String,
    pub(super) name: String,
    #[serde(default)]
    pub(super) project: String,
    pub(super) framework: String,
    pub(super) attempt: i64,
    pub(super) start_unix_nanos: u64,
}

/// Parses a zone. Returns `None` for a zone that this machine does not know, so that the checkpoint stays valid.
fn known_timezone<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<UsedTimezone>, D::Error> {
    let zone = serde_json::Value::deserialize(deserializer)?;
    Ok(serde_json::from_value(zone).ok())
}

/// The attempts of the ranks of a log. A replay starts from the first state, and a file that continues the run from the second.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Eq, Serialize)]
pub(super) struct AttemptsCheckpoint {
    /// The state at the beginning of the file.
    pub(super) before: Vec<AttemptState>,
    /// The state at the checkpoint.
    pub(super) now: Vec<AttemptState>,
}

impl AttemptsCheckpoint {
    fn is_empty(&self) -> bool {
        self.before.is_empty() && self.now.is_empty()
    }
}

impl Default for CheckpointFile {
    fn default() -> Self {
        Self {
            version: VERSION,
            files: BTreeMap::new(),
            finished: Vec::new(),
            first_unacked: 0,
        }
    }
}

impl FileCheckpoint {
    /// Returns the zone of times without one: the user's zone, else the zone of the checkpoint.
    pub(super) fn timezone(&self, options: &RunOptions) -> UsedTimezone {
        let kept = self.timezone.clone().unwrap_or_default();
        UsedTimezone {
            last_local_unix_nanos: kept.last_local_unix_nanos,
            ..UsedTimezone::named(options.timezone.as_ref()).unwrap_or(kept)
        }
    }

    pub(super) fn place(&self) -> SourcePosition {
        SourcePosition {
            offset: self.offset,
            line: self.line,
        }
    }
}

impl RunCheckpoint {
    pub(super) fn new(run: &Run) -> Self {
        Self {
            id: run.id.clone(),
            name: run.name.clone(),
            project: run.project.clone(),
            framework: run.framework.clone(),
            attempt: run.attempt,
            start_unix_nanos: run.start_unix_nanos.0,
        }
    }

    /// Returns the run of the checkpoint with the user's options and the rank of `path` as they are now.
    pub(super) fn resumed(&self, options: &RunOptions, path: &Path) -> Run {
        let member = options.rank.member(&path.to_string_lossy(), options.member);
        Run {
            id: self.id.clone(),
            name: self.name.clone(),
            project: self.project.clone(),
            framework: self.framework.clone(),
            attempt: self.attempt,
            start_unix_nanos: UnixNanos(self.start_unix_nanos),
            service: options.service.clone().unwrap_or_default(),
            rank: member.rank,
            local_rank: member.local_rank,
            world_size: member.world_size,
            extra: options.resource.clone(),
        }
    }
}

/// Loads the checkpoint file of a folder. A file that cannot be parsed is moved aside, and the previous one is used: outputs are
/// truncated to it, and batches after it are sent again. Without a previous one, all earlier batches count as acknowledged:
/// every log is read from its beginning, and outputs keep what they hold.
pub(super) fn load(folder: &Path) -> Result<(CheckpointFile, Option<CheckpointNotice>), TailError> {
    let path = folder.join(FILE_NAME);
    let failed = |source| TailError::checkpoints(folder, source);
    let text = match fs::read(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Ok((CheckpointFile::default(), None));
        }
        Err(error) => return Err(failed(error)),
    };
    if let Some(saved) = parse(&path, &text)? {
        return Ok((saved, None));
    }
    let before = fs::read(before(&path)).unwrap_or_default();
    let before = parse(&path, &before)?;
    let notice = CheckpointNotice {
        moved_to: path.with_extension("json.unreadable"),
        is_recovered: before.is_some(),
        path,
    };
    fs::copy(&notice.path, &notice.moved_to).map_err(failed)?;
    let saved = before.unwrap_or_else(|| CheckpointFile {
        first_unacked: clock::unix_nanos().0,
        ..CheckpointFile::default()
    });
    replace(folder, &saved).map_err(failed)?;
    Ok((saved, Some(notice)))
}

/// Parses a checkpoint file. Returns `None` if it cannot be parsed.
fn parse(path: &Path, text: &[u8]) -> Result<Option<CheckpointFile>, TailError> {
    #[derive(Deserialize)]
    struct Versioned {
        version: u32,
    }

    match serde_json::from_slice::<Versioned>(text) {
        Ok(Versioned { version }) if version > VERSION => Err(TailError::NewerCheckpoints {
            path: path.to_owned(),
            version,
        }),
        Ok(Versioned { version: VERSION }) => Ok(serde_json::from_slice(text).ok()),
        _ => Ok(None),
    }
}

/// Writes the checkpoint file and keeps the previous one next to it.
pub(super) fn store(folder: &Path, saved: &CheckpointFile) -> io::Result<()> {
    let path = folder.join(FILE_NAME);
    let before = before(&path);
    match fs::remove_file(&before) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    match fs::hard_link(&path, &before) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        // Some file systems have no hard links.
        Err(_) => drop(fs::copy(&path, &before)?),
        Ok(()) => {}
    }
    replace(folder, saved)
}

/// Replaces the checkpoint file atomically: after a crash at any moment it holds the old or the new state.
fn replace(folder: &Path, saved: &CheckpointFile) -> io::Result<()> {
    let path = folder.join(FILE_NAME);
    let new = path.with_extension("json.new");
    let mut file = private_files::create_file(&new)?;
    serde_json::to_writer(&mut file, saved)?;
    file.write_all(b"\n")?;
    file.sync_data()?;
    fs::rename(&new, &path)?;
    File::open(folder)?.sync_all()
}

fn before(path: &Path) -> PathBuf {
    path.with_extension("json.before")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn saved(first_unacked: u64) -> CheckpointFile {
        CheckpointFile {
            first_unacked,
            ..CheckpointFile::default()
        }
    }

    #[test]
    fn a_stored_checkpoint_file_is_loaded() {
        let folder = tempfile::tempdir().unwrap();
        for number in [7, 8] {
            store(folder.path(), &saved(number)).unwrap();
            assert_eq!(load(folder.path()).unwrap(), (saved(number), None));
        }
    }

    #[test]
    fn a_file_that_cannot_be_parsed_is_moved_aside_and_the_previous_one_is_used() {
        for nonsense in ["{\"version\":1,\"fil", "", "\0\0\0", "{\"version\":0}"] {
            let folder = tempfile::tempdir().unwrap();
            store(folder.path(), &saved(7)).unwrap();
            store(folder.path(), &saved(8)).unwrap();
            fs::write(folder.path().join(FILE_NAME), nonsense).unwrap();
            let (loaded, notice) = load(folder.path()).unwrap();
            let notice = notice.unwrap();
            assert_eq!((loaded, notice.is_recovered), (saved(7), true), "{nonsense}");
            assert_eq!(fs::read_to_string(notice.moved_to).unwrap(), nonsense);
            assert_eq!(
                load(folder.path()).unwrap(),
                (saved(7), None),
                "the recovered file replaces it"
            );
        }
    }

    #[test]
    fn without_a_valid_checkpoint_file_all_entries_count_as_acknowledged() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join(FILE_NAME), "{").unwrap();
        let (lost, notice) = load(folder.path()).unwrap();
        assert!(!notice.unwrap().is_recovered);
        assert!(lost.files.is_empty() && lost.first_unacked > 1 << 60, "{lost:?}");
        assert_eq!(load(folder.path()).unwrap(), (lost, None));
    }

    #[test]
    fn a_checkpoint_with_an_unknown_zone_is_valid() {
        let checkpoint = FileCheckpoint {
            timezone: Some(UsedTimezone::default()),
            ..crate::follow::tests::checkpoint(7)
        };
        let text = serde_json::to_string(&checkpoint).unwrap();
        let load = |text: &str| serde_json::from_str::<FileCheckpoint>(text).unwrap();
        assert_eq!(load(&text), checkpoint);
        let old = text.replace(",\"last_local_unix_nanos\":0", "");
        let old = old.replace(",\"last_local_before\":0", "");
        assert!(!old.contains("last_local"), "{old}");
        assert_eq!(load(&old), checkpoint, "an older version has no such keys");
        let unknown = load(&text.replace("\"UTC\"", "\"Mars/Olympus\""));
        assert_eq!((unknown.timezone, unknown.offset), (None, 7));
    }

    #[test]
    fn a_checkpoint_file_of_a_newer_version_is_not_changed() {
        let folder = tempfile::tempdir().unwrap();
        let text = "{\"version\":99,\"places\":{}}";
        fs::write(folder.path().join(FILE_NAME), text).unwrap();
        let refused = load(folder.path()).unwrap_err().to_string();
        assert!(
            refused.contains("positions.json") && refused.contains("version 99"),
            "{refused}"
        );
        assert_eq!(fs::read_to_string(folder.path().join(FILE_NAME)).unwrap(), text);
    }
}
