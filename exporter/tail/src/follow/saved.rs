//! What is kept of positions on the disk, and how: one JSON file, replaced as a whole, and the one before it.

use std::{
    collections::BTreeMap,
    fs::{self, File},
    io::{self, Write},
    path::{Path, PathBuf},
};

use pulsetrain_pipeline::clock;
use serde::{Deserialize, Deserializer, Serialize};

use super::{identity::FileIdentity, notice::PositionsNotice};
use crate::{RunOptions, TailError};
use pulsetrain_record::{AttemptState, Place, Run, UsedTimezone};

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
    /// The number of the first entry that does not count: what outputs hold of it and of later ones comes again.
    pub(super) entries: u64,
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
    /// The zone of times without one; `None` where this machine does not know it.
    #[serde(default, deserialize_with = "known_timezone")]
    pub(super) timezone: Option<UsedTimezone>,
    #[serde(default, skip_serializing_if = "SavedAttempts::is_empty")]
    pub(super) attempts: SavedAttempts,
    /// Whether the run began in a file that this one took the place of: its sums cannot be rebuilt.
    #[serde(default)]
    pub(super) is_continued: bool,
    /// Whether the series of the run have ended: another run has taken its place.
    #[serde(default)]
    pub(super) has_ended: bool,
    /// When it was last written to, as far as it is read.
    #[serde(default)]
    pub(super) modified_unix_nanos: u64,
    /// What was told of it, where it is written anew as a whole: its parser knows how to read that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) told: Option<serde_json::Value>,
}

/// What the first bytes said of a run when it was opened. It is kept because more bytes, or another start, could say more.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq, Serialize)]
pub(super) struct SavedRun {
    pub(super) id: String,
    pub(super) name: String,
    #[serde(default)]
    pub(super) project: String,
    pub(super) framework: String,
    pub(super) attempt: i64,
    pub(super) start_unix_nanos: u64,
}

/// Reads a zone; one that is not known here makes no position unreadable.
fn known_timezone<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<UsedTimezone>, D::Error> {
    let kept = serde_json::Value::deserialize(deserializer)?;
    Ok(serde_json::from_value(kept).ok())
}

/// The attempts that the ranks of a log were in. A file is replayed from its beginning, and another file goes on with its run.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Eq, Serialize)]
pub(super) struct SavedAttempts {
    /// At the beginning of the file.
    pub(super) before: Vec<AttemptState>,
    /// At the position.
    pub(super) now: Vec<AttemptState>,
}

impl SavedAttempts {
    fn is_empty(&self) -> bool {
        self.before.is_empty() && self.now.is_empty()
    }
}

impl Default for Saved {
    fn default() -> Self {
        Self {
            version: VERSION,
            files: BTreeMap::new(),
            finished: Vec::new(),
            entries: 0,
        }
    }
}

impl FilePosition {
    /// The zone of times without one: that the user names now, or that they were read in before.
    pub(super) fn timezone(&self, options: &RunOptions) -> UsedTimezone {
        let named = UsedTimezone::named(options.timezone.as_ref());
        named.or_else(|| self.timezone.clone()).unwrap_or_default()
    }

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
            project: run.project.clone(),
            framework: run.framework.clone(),
            attempt: run.attempt,
            start_unix_nanos: run.start_unix_nanos,
        }
    }

    /// Returns the run as it was saved, with the options of the user and the rank of `path` as they are now.
    pub(super) fn resumed(&self, options: &RunOptions, path: &Path) -> Run {
        let member = options.rank.member(&path.to_string_lossy(), options.member);
        Run {
            id: self.id.clone(),
            name: self.name.clone(),
            project: self.project.clone(),
            framework: self.framework.clone(),
            attempt: self.attempt,
            start_unix_nanos: self.start_unix_nanos,
            service: options.service.clone().unwrap_or_default(),
            rank: member.rank,
            local_rank: member.local_rank,
            world_size: member.world_size,
            extra: options.resource.clone(),
        }
    }
}

/// Reads what is kept in a folder. A file that makes no sense is put aside; then what was kept before it counts, and what
/// files hold of later receipts is read again. Without that too every receipt that there ever was counts as settled: all
/// is read from its beginning, and nothing is taken back that was delivered.
pub(super) fn load(folder: &Path) -> Result<(Saved, Option<PositionsNotice>), TailError> {
    let path = folder.join(FILE_NAME);
    let failed = |source| TailError::positions(folder, source);
    let text = match fs::read(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok((Saved::default(), None)),
        Err(error) => return Err(failed(error)),
    };
    if let Some(saved) = parse(&path, &text)? {
        return Ok((saved, None));
    }
    let before = fs::read(before(&path)).unwrap_or_default();
    let before = parse(&path, &before)?;
    let notice = PositionsNotice {
        put_aside: path.with_extension("json.unreadable"),
        goes_on: before.is_some(),
        path,
    };
    fs::copy(&notice.path, &notice.put_aside).map_err(failed)?;
    let saved = before.unwrap_or_else(|| Saved {
        entries: clock::unix_now().as_nanos() as u64,
        ..Saved::default()
    });
    replace(folder, &saved).map_err(failed)?;
    Ok((saved, Some(notice)))
}

/// What a text says; nothing where it makes no sense.
fn parse(path: &Path, text: &[u8]) -> Result<Option<Saved>, TailError> {
    #[derive(Deserialize)]
    struct Versioned {
        version: u32,
    }

    match serde_json::from_slice::<Versioned>(text) {
        Ok(Versioned { version }) if version > VERSION => Err(TailError::PositionsOfLater {
            path: path.to_owned(),
            version,
        }),
        Ok(Versioned { version: VERSION }) => Ok(serde_json::from_slice(text).ok()),
        _ => Ok(None),
    }
}

/// Keeps what is to be kept, and what was kept before beside it.
pub(super) fn store(folder: &Path, saved: &Saved) -> io::Result<()> {
    let path = folder.join(FILE_NAME);
    let before = before(&path);
    match fs::remove_file(&before) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    match fs::hard_link(&path, &before) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        // Not every file system has links.
        Err(_) => drop(fs::copy(&path, &before)?),
        Ok(()) => {}
    }
    replace(folder, saved)
}

/// Replaces what is kept: at every moment the file holds the old or the new state, also when the machine stops.
fn replace(folder: &Path, saved: &Saved) -> io::Result<()> {
    let path = folder.join(FILE_NAME);
    let new = path.with_extension("json.new");
    let mut file = File::create(&new)?;
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
    use super::{super::identity::Inode, *};

    fn saved(entries: u64) -> Saved {
        Saved {
            entries,
            ..Saved::default()
        }
    }

    #[test]
    fn what_is_stored_is_loaded() {
        let folder = tempfile::tempdir().unwrap();
        for entries in [7, 8] {
            store(folder.path(), &saved(entries)).unwrap();
            assert_eq!(load(folder.path()).unwrap(), (saved(entries), None));
        }
    }

    #[test]
    fn a_file_that_makes_no_sense_is_put_aside_and_what_was_kept_before_it_counts() {
        for nonsense in ["{\"version\":1,\"fil", "", "\0\0\0", "{\"version\":0}"] {
            let folder = tempfile::tempdir().unwrap();
            store(folder.path(), &saved(7)).unwrap();
            store(folder.path(), &saved(8)).unwrap();
            fs::write(folder.path().join(FILE_NAME), nonsense).unwrap();
            let (loaded, notice) = load(folder.path()).unwrap();
            let notice = notice.unwrap();
            assert_eq!((loaded, notice.goes_on), (saved(7), true), "{nonsense}");
            assert_eq!(fs::read_to_string(notice.put_aside).unwrap(), nonsense);
            assert_eq!(
                load(folder.path()).unwrap(),
                (saved(7), None),
                "it is in its place"
            );
        }
    }

    #[test]
    fn where_nothing_makes_sense_all_receipts_are_settled_and_nothing_is_read() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join(FILE_NAME), "{").unwrap();
        let (lost, notice) = load(folder.path()).unwrap();
        assert!(!notice.unwrap().goes_on);
        assert!(lost.files.is_empty() && lost.entries > 1 << 60, "{lost:?}");
        assert_eq!(load(folder.path()).unwrap(), (lost, None));
    }

    #[test]
    fn a_zone_that_is_not_known_here_makes_no_position_unreadable() {
        let inode = Inode::of(&std::env::temp_dir().metadata().unwrap());
        let position = FilePosition {
            identity: FileIdentity::new(inode, b"[\n"),
            offset: 7,
            line: 1,
            format: "surogate".to_owned(),
            run: SavedRun::of(&Run::default()),
            timezone: Some(UsedTimezone::default()),
            attempts: SavedAttempts::default(),
            is_continued: false,
            has_ended: false,
            modified_unix_nanos: 0,
            told: None,
        };
        let kept = serde_json::to_string(&position).unwrap();
        let load = |text: &str| serde_json::from_str::<FilePosition>(text).unwrap();
        assert_eq!(load(&kept), position);
        let unknown = load(&kept.replace("\"UTC\"", "\"Mars/Olympus\""));
        assert_eq!((unknown.timezone, unknown.offset), (None, 7));
    }

    #[test]
    fn what_a_later_version_kept_is_left_alone() {
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
