//! A series of files under names with a time: `run.pftrace` becomes `run-20261121T074000Z.pftrace`, and so
//! on.
//!
//! The names sort by time unless the clock steps back. [`FileSeries::oldest_first`] does not rely on the
//! clock for files of this process.

use std::{
    collections::VecDeque,
    fs, io,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, SystemTime},
};

/// The maximum number of own files that a series remembers.
const REMEMBERED: usize = 1000;

/// The files of one path. Clones share the list of files that this process created.
#[derive(Clone, Debug)]
pub(crate) struct FileSeries {
    folder: PathBuf,
    stem: String,
    /// The extension, with its dot.
    ending: String,
    /// The additional extensions of compressed files.
    compressed: &'static [&'static str],
    /// Whether the first file of a second has a number too, so that names sort by time in any collation.
    numbers_all: bool,
    /// The files that this process created, without the extension of a compressed file, the oldest first.
    created: Arc<Mutex<VecDeque<PathBuf>>>,
}

impl FileSeries {
    /// Returns the series of `path`, or `None` if its name is not UTF-8 or has no stem before `ending`.
    pub(crate) fn from_path(path: &Path, ending: &str, compressed: &'static [&'static str]) -> Option<Self> {
        let name = path.file_name()?.to_str()?;
        let stem = name.strip_suffix(ending).filter(|stem| !stem.is_empty())?;
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
        Some(Self {
            folder: folder.unwrap_or(Path::new(".")).to_owned(),
            stem: stem.to_owned(),
            ending: ending.to_owned(),
            compressed,
            numbers_all: false,
            created: Arc::default(),
        })
    }

    /// Gives every file a number.
    pub(crate) fn numbering_all(self) -> Self {
        Self {
            numbers_all: true,
            ..self
        }
    }

    /// Returns the folder of the files.
    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Records a file that this process creates, as the newest.
    pub(crate) fn record_created(&self, path: &Path) {
        let mut created = self.created();
        created.push_back(path.to_owned());
        if created.len() > REMEMBERED {
            created.pop_front();
        }
    }

    fn created(&self) -> MutexGuard<'_, VecDeque<PathBuf>> {
        self.created.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the path of a new file. If the second already has a file, the name gets a number. The number
    /// of a removed file is not used again while a later one exists.
    pub(crate) fn next(&self, unix_now: Duration) -> PathBuf {
        let first = format!("{}-{}", self.stem, time(unix_now));
        let numbers = (self.existing().unwrap_or_default().into_iter()).filter_map(|path| {
            let after = self.base_name(&path)?.strip_prefix(first.as_str())?.to_owned();
            Some(
                after
                    .strip_prefix('-')
                    .map_or(0, |number| number.parse::<u32>().unwrap_or(0)),
            )
        });
        let ending = &self.ending;
        let name = match numbers.max() {
            None if self.numbers_all => format!("{first}-0000{ending}"),
            None => format!("{first}{ending}"),
            Some(last) => format!("{first}-{:04}{ending}", last + 1),
        };
        self.folder.join(name)
    }

    /// Returns the files of the series, sorted by name.
    pub(crate) fn existing(&self) -> io::Result<Vec<PathBuf>> {
        let mut found = Vec::new();
        for entry in fs::read_dir(&self.folder)? {
            let path = entry?.path();
            if self.base_name(&path).is_some_and(|name| self.is_ours(name)) {
                found.push(path);
            }
        }
        // Without the extension, a name sorts before the same name with a number.
        found.sort_by_cached_key(|path| self.base_name(path).map(str::to_owned));
        Ok(found)
    }

    /// Returns the files of the series, the oldest first. Files of this process are newer than all others,
    /// whatever their names. The others are sorted by modification time.
    pub(crate) fn oldest_first(&self) -> io::Result<Vec<PathBuf>> {
        let mut files = self.existing()?;
        // The lock is acquired after the listing, so every listed file of this process is recorded.
        let created = self.created();
        files.sort_by_cached_key(|path| {
            let written = fs::metadata(path).and_then(|metadata| metadata.modified());
            let created = created
                .iter()
                .position(|created| self.base_name(created) == self.base_name(path));
            (created, written.unwrap_or(SystemTime::UNIX_EPOCH))
        });
        Ok(files)
    }

    /// Returns the name of a file without its extensions.
    fn base_name<'a>(&self, path: &'a Path) -> Option<&'a str> {
        let name = path.file_name()?.to_str()?;
        let plain = (self.compressed.iter()).find_map(|ending| name.strip_suffix(ending));
        plain.unwrap_or(name).strip_suffix(self.ending.as_str())
    }

    /// Returns whether a name without its extensions belongs to the series. Files of other programs are never
    /// deleted.
    fn is_ours(&self, base_name: &str) -> bool {
        let time = (base_name.strip_prefix(self.stem.as_str())).and_then(|rest| rest.strip_prefix('-'));
        time.is_some_and(|time| {
            let (time, again) = time.split_once('-').unwrap_or((time, "0"));
            let bytes = time.as_bytes();
            bytes.len() == 16
                && bytes.iter().enumerate().all(|(place, byte)| match place {
                    8 => *byte == b'T',
                    15 => *byte == b'Z',
                    _ => byte.is_ascii_digit(),
                })
                && !again.is_empty()
                && again.bytes().all(|byte| byte.is_ascii_digit())
        })
    }
}

/// Formats a time in UTC for a file name: `20261121T074000Z`.
fn time(unix: Duration) -> String {
    let written = httpdate::fmt_http_date(std::time::UNIX_EPOCH + unix);
    // `Sat, 21 Nov 2026 07:40:00 GMT`: every field has a fixed position.
    const MONTHS: &str = "JanFebMarAprMayJunJulAugSepOctNovDec";
    let part = |from: usize, to: usize| written.get(from..to).unwrap_or_default();
    let month = MONTHS.find(part(8, 11)).unwrap_or_default() / 3 + 1;
    format!(
        "{}{month:02}{}T{}{}{}Z",
        part(12, 16),
        part(5, 7),
        part(17, 19),
        part(20, 22),
        part(23, 25)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn series(path: &Path) -> Option<FileSeries> {
        FileSeries::from_path(path, ".pftrace", &[".gz", ".zst"])
    }

    /// Covers a clock that steps back, and files with a future modification time from a host with a wrong
    /// clock.
    #[test]
    fn created_files_sort_after_existing_files_with_later_dates() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        let series = series(&path("run.pftrace")).unwrap();
        let found = ["run-20371121T074001Z.pftrace", "run-20361121T074001Z.pftrace.gz"];
        for (name, seconds) in found.iter().zip([3_000_000_000, 3_000_000_001]) {
            let file = fs::File::create(path(name)).unwrap();
            file.set_modified(SystemTime::UNIX_EPOCH + Duration::from_secs(seconds))
                .unwrap();
        }
        let created = [1_795_246_801, 1_795_246_700].map(|now| {
            let next = series.next(Duration::from_secs(now));
            fs::write(&next, "").unwrap();
            series.record_created(&next);
            next
        });
        let expected: Vec<PathBuf> = found.iter().map(|name| path(name)).chain(created).collect();
        assert_eq!(series.oldest_first().unwrap(), expected);
    }

    #[test]
    fn compressed_file_stays_in_the_series_and_its_number_is_not_reused() {
        let folder = tempfile::tempdir().unwrap();
        let names = series(&folder.path().join("run.pftrace")).unwrap();
        let now = Duration::from_secs(1_795_246_801);
        let first = names.next(now);
        fs::write(first.with_extension("pftrace.gz"), "").unwrap();
        assert_eq!(names.existing().unwrap(), [first.with_extension("pftrace.gz")]);
        assert!(names.next(now).ends_with("run-20261121T074001Z-0001.pftrace"));
    }

    #[test]
    fn name_has_the_creation_time_of_its_file() {
        assert_eq!(time(Duration::from_secs(1_795_246_801)), "20261121T074001Z");
        assert_eq!(time(Duration::from_secs(951_782_400)), "20000229T000000Z");
    }

    #[test]
    fn series_lists_its_files_in_order_and_ignores_unrelated_files() {
        let folder = tempfile::tempdir().unwrap();
        let names = series(&folder.path().join("run.pftrace")).unwrap();
        let now = Duration::from_secs(1_795_246_801);
        for (index, later) in [0, 0, 1].into_iter().enumerate() {
            let next = names.next(now + Duration::from_secs(later));
            fs::write(&next, index.to_string()).unwrap();
        }
        // A freed number is not used again.
        let oldest = names.existing().unwrap().swap_remove(0);
        fs::remove_file(&oldest).unwrap();
        assert_ne!(names.next(now), oldest);
        fs::write(&oldest, "0").unwrap();
        for other in [
            "run.pftrace",
            "run-notes.pftrace",
            "running-20261121T074001Z.pftrace",
            "run-20261121T074001Z.txt",
        ] {
            fs::write(folder.path().join(other), "").unwrap();
        }
        let contents: Vec<String> = names
            .existing()
            .unwrap()
            .iter()
            .map(|path| fs::read_to_string(path).unwrap())
            .collect();
        assert_eq!(contents, ["0", "1", "2"]);
        for bad in ["run.txt", ".pftrace", ""] {
            assert!(series(Path::new(bad)).is_none(), "{bad}");
        }
    }
}
