//! The names of files that follow each other: `run.pftrace` becomes `run-20261121T074000Z.pftrace`, and so on.

use std::{
    fs, io,
    path::{Path, PathBuf},
    time::Duration,
};

use crate::SinkError;

/// The ending of a trace.
const ENDING: &str = ".pftrace";

/// The family of files that one path stands for.
#[derive(Clone, Debug)]
pub(super) struct Names {
    folder: PathBuf,
    stem: String,
}

impl Names {
    /// The family of a path.
    ///
    /// # Errors
    ///
    /// A path that does not end as a trace does.
    pub(super) fn of(path: &Path) -> Result<Self, SinkError> {
        let name = path.file_name().and_then(|name| name.to_str());
        let stem = name
            .and_then(|name| name.strip_suffix(ENDING))
            .unwrap_or_default();
        if stem.is_empty() {
            return Err(SinkError::TraceName {
                path: path.to_owned(),
            });
        }
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
        Ok(Self {
            folder: folder.unwrap_or(Path::new(".")).to_owned(),
            stem: stem.to_owned(),
        })
    }

    /// The folder of all of them.
    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    /// A path for a file that begins now, behind all that there are: a second that has a file already gets a number, which
    /// is never that of a file that has been removed while a later one stands.
    pub(super) fn next(&self, unix_now: Duration) -> PathBuf {
        let first = format!("{}-{}", self.stem, time(unix_now));
        let numbers = self
            .existing()
            .unwrap_or_default()
            .into_iter()
            .filter_map(|path| {
                let name = path.file_name()?.to_str()?.strip_suffix(ENDING)?.to_owned();
                let behind = name.strip_prefix(first.as_str())?;
                Some(
                    behind
                        .strip_prefix('-')
                        .map_or(0, |number| number.parse::<u32>().unwrap_or(0)),
                )
            });
        let name = match numbers.max() {
            None => format!("{first}{ENDING}"),
            Some(last) => format!("{first}-{:04}{ENDING}", last + 1),
        };
        self.folder.join(name)
    }

    /// The files of the family, the oldest first.
    pub(super) fn existing(&self) -> io::Result<Vec<PathBuf>> {
        let mut found = Vec::new();
        for entry in fs::read_dir(&self.folder)? {
            let entry = entry?;
            if entry.file_name().to_str().is_some_and(|name| self.is_ours(name)) {
                found.push(entry.path());
            }
        }
        // Without the ending, a name comes before the same name with a number behind it.
        found.sort_by_key(|path| path.with_extension(""));
        Ok(found)
    }

    /// Whether a file is one of the family: nobody else's file is ever deleted.
    fn is_ours(&self, name: &str) -> bool {
        let time = name
            .strip_prefix(self.stem.as_str())
            .and_then(|rest| rest.strip_prefix('-'))
            .and_then(|rest| rest.strip_suffix(ENDING));
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

/// A time as a name can hold it, in UTC: `20261121T074000Z`.
fn time(unix: Duration) -> String {
    let written = httpdate::fmt_http_date(std::time::UNIX_EPOCH + unix);
    // `Sat, 21 Nov 2026 07:40:00 GMT`, whose every part stands in the same place.
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

    #[test]
    fn a_name_says_when_its_file_began() {
        assert_eq!(time(Duration::from_secs(1_795_246_801)), "20261121T074001Z");
        assert_eq!(time(Duration::from_secs(951_782_400)), "20000229T000000Z");
    }

    #[test]
    fn files_follow_each_other_and_those_of_others_are_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let names = Names::of(&folder.path().join("run.pftrace")).unwrap();
        let now = Duration::from_secs(1_795_246_801);
        for (index, later) in [0, 0, 1].into_iter().enumerate() {
            let next = names.next(now + Duration::from_secs(later));
            fs::write(&next, index.to_string()).unwrap();
        }
        // A place that became free is not taken again.
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
            assert!(Names::of(Path::new(bad)).is_err(), "{bad}");
        }
    }
}
