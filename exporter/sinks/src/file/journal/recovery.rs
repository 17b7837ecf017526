//! Recovery of a file after a restart: what comes again is cut off it, and everything else stays.
//!
//! What stays after the first record that comes again is put aside (`.kept`), then the file is cut, then it comes back.
//! Every step can be killed and done again. Rotated files that have records that are not settled are recovered first. Only bytes that the journal proves to be this program's are cut off: bytes
//! after the last noted record move to a file of their own, and a file that the journal does not describe is kept as it is.

use std::{
    fs::{self, File},
    io::{self, BufRead, BufReader, Read, Seek, SeekFrom, Write},
    ops::Range,
    path::{Path, PathBuf},
};

use super::{
    super::{
        foreign::{self, MovedBytes},
        format::FileFormat,
        identity::{self, FileIdentity},
    },
    FileJournal, Notes, PreviousJournal, Span,
};

/// A recovered file.
#[derive(Debug)]
pub(in super::super) struct Recovered {
    /// Where the file ends, which is where the next record starts.
    pub(in super::super) end: u64,
    /// The bytes that another program, or this one with another state folder, wrote; they are still there.
    pub(in super::super) foreign: u64,
    /// The bytes that were moved to another file.
    pub(in super::super) aside: Option<MovedBytes>,
    /// The bytes of records that are delivered again, although a rotated file that is gone from the folder holds them.
    pub(in super::super) repeated: u64,
}

/// What becomes of a file that the journal describes.
pub(super) struct Plan {
    /// The records that stay.
    notes: Notes,
    /// The bytes after the last noted record.
    unknown: Range<u64>,
}

impl FileJournal {
    /// Cuts off `file`, which is at `path`, and its predecessors in the same folder the records that their sources deliver
    /// again.
    pub(in super::super) fn recover(
        &self,
        file: &mut File,
        path: &Path,
        format: FileFormat,
    ) -> io::Result<Recovered> {
        let identity = FileIdentity::of(file)?;
        let resolved = identity::resolved(path)?;
        let folder = identity::folder(&resolved);
        let gone = self.keep_journal_of_moved(identity, folder)?;
        let mut repeated = self.recover_earlier(folder, format)?;
        let was_empty = file.metadata()?.len() == 0;
        let recovered = match self.cut_off(file, path, format)? {
            Some(recovered) if was_empty => {
                repeated += gone;
                recovered
            }
            Some(recovered) => recovered,
            None => {
                repeated += gone;
                self.adopt(file, path, format)?
            }
        };
        Ok(Recovered {
            repeated,
            ..recovered
        })
    }

    /// Sets the journal aside if the file that it describes has another name now, and `file` took its place. Returns the
    /// bytes of records that are delivered again if that file is no longer in the folder.
    fn keep_journal_of_moved(&self, file: FileIdentity, folder: &Path) -> io::Result<u64> {
        let described = self.read()?.and_then(|notes| notes.file);
        let Some(moved) = described.filter(|described| *described != file) else {
            return Ok(0);
        };
        if moved.find_in(folder)?.is_none() {
            return self.repeated_bytes();
        }
        let aside = PreviousJournal::free_path(&self.path);
        if self.kept_path().exists() {
            fs::rename(self.kept_path(), self.at(&aside).kept_path())?;
        }
        fs::rename(&self.path, aside).map(|()| 0)
    }

    /// Recovers the files whose journals are set aside. Returns the bytes of records that could not be cut off because their
    /// file is no longer in the folder.
    fn recover_earlier(&self, folder: &Path, format: FileFormat) -> io::Result<u64> {
        let mut repeated = 0;
        for aside in PreviousJournal::all(&self.path)? {
            let journal = self.at(aside.path());
            let found = aside.file().map(|file| file.find_in(folder)).transpose()?;
            match found.flatten() {
                Some(path) => {
                    let mut file = File::options().read(true).append(true).open(&path)?;
                    journal.cut_off(&mut file, &path, format)?;
                    file.sync_data()?;
                }
                None => repeated += journal.repeated_bytes()?,
            }
            aside.remove()?;
        }
        Ok(repeated)
    }

    /// The journal at another path.
    fn at(&self, path: &Path) -> Self {
        Self {
            path: path.to_owned(),
            ..self.clone()
        }
    }

    fn repeated_bytes(&self) -> io::Result<u64> {
        let first_unacked = (self.first_unacked)();
        let notes = self.read()?.unwrap_or_default();
        let repeated = notes
            .spans
            .iter()
            .filter(|span| span.is_replayable(first_unacked));
        Ok(repeated.map(|span| span.len()).sum())
    }

    /// Cuts off the records of `file` that are delivered again, or returns `None` if the journal does not describe it.
    fn cut_off(&self, file: &mut File, path: &Path, format: FileFormat) -> io::Result<Option<Recovered>> {
        let mut aside = None;
        if !self.kept_path().exists() {
            let Some(plan) = self.plan(file, format)? else {
                return Ok(None);
            };
            aside = self.put_aside(file, path, &plan)?;
        }
        let (base, mut kept) = self.open_kept()?;
        // Someone else may have emptied the file since it was put aside.
        let base = base.min(file.metadata()?.len());
        file.set_len(base)?;
        file.seek(SeekFrom::Start(base))?;
        let end = base + io::copy(&mut kept, file)?;
        self.begin(FileIdentity::of(file)?, end)?;
        fs::remove_file(self.kept_path())?;
        Ok(Some(Recovered {
            end,
            foreign: 0,
            aside,
            repeated: 0,
        }))
    }

    /// Keeps a file that the journal does not describe, up to the end of its last complete record.
    fn adopt(&self, file: &mut File, path: &Path, format: FileFormat) -> io::Result<Recovered> {
        let (end, aside) = foreign::keep_complete(file, path, format)?;
        self.begin(FileIdentity::of(file)?, end)?;
        Ok(Recovered {
            end,
            foreign: end,
            aside,
            repeated: 0,
        })
    }

    /// Decides what stays of the file, or gives `None` where the journal does not describe it.
    pub(super) fn plan(&self, file: &mut File, format: FileFormat) -> io::Result<Option<Plan>> {
        let first_unacked = (self.first_unacked)();
        let length = file.metadata()?.len();
        let Some(mut notes) = self.read()? else {
            return Ok(None);
        };
        let Some(end) = notes.noted_end(file, format, length)? else {
            return Ok(None);
        };
        if end < length && !foreign::is_record_end(file, format, end)? {
            return Ok(None);
        }
        notes.spans.retain(|span| span.end <= length);
        notes.raise_floor(first_unacked);
        notes.spans.retain(|span| !span.is_replayable(first_unacked));
        Ok(Some(Plan {
            notes,
            unknown: end..length,
        }))
    }

    /// Copies what is to be kept into a file of its own: first where it goes, then the records. Copies unknown bytes into
    /// another file, which stays.
    pub(super) fn put_aside(
        &self,
        file: &mut File,
        path: &Path,
        plan: &Plan,
    ) -> io::Result<Option<MovedBytes>> {
        let new = self.path.with_extension("new");
        let mut kept = File::create(&new)?;
        kept.set_permissions(file.metadata()?.permissions())?;
        writeln!(kept, "{}", plan.notes.floor)?;
        for span in &plan.notes.spans {
            file.seek(SeekFrom::Start(span.start))?;
            io::copy(&mut file.take(span.len()), &mut kept)?;
        }
        let aside = foreign::copy_aside(file, path, plan.unknown.clone())?;
        fs::rename(new, self.kept_path())?;
        Ok(aside)
    }

    /// What was put aside: where it goes, and the records.
    fn open_kept(&self) -> io::Result<(u64, impl Read)> {
        let mut kept = BufReader::new(File::open(self.kept_path())?);
        let mut head = String::new();
        kept.read_line(&mut head)?;
        let base = head.trim_end().parse();
        let base = base.map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
        Ok((base, kept))
    }

    fn kept_path(&self) -> PathBuf {
        self.path.with_extension("kept")
    }
}

impl Notes {
    /// Returns the end of the noted bytes that are in the file, a torn last record included, or `None` where the file is
    /// not the one that was noted. Of a shorter file the records that are left count, as after a power failure.
    fn noted_end(&self, file: &mut File, format: FileFormat, length: u64) -> io::Result<Option<u64>> {
        if self.floor > length {
            return Ok(None);
        }
        let mut end = self.floor;
        for span in self.spans.iter().take_while(|span| span.start < length) {
            if span.start != end || !span.is_of(file, format, length)? {
                return Ok(None);
            }
            end = span.end.min(length);
        }
        Ok(Some(end))
    }
}

impl Span {
    /// Whether a record of this length is there, or the beginning of one where the file ends within it.
    fn is_of(self, file: &mut File, format: FileFormat, length: u64) -> io::Result<bool> {
        match format {
            FileFormat::JsonLines => {
                let begins = foreign::is_record_end(file, format, self.start)?;
                let ends = match self.end <= length {
                    true => foreign::is_record_end(file, format, self.end)?,
                    false => foreign::first_newline(file, self.start..length)?.is_none(),
                };
                Ok(begins && ends)
            }
            FileFormat::LengthPrefixed => {
                let mut prefix = Vec::new();
                file.seek(SeekFrom::Start(self.start))?;
                file.take(4).read_to_end(&mut prefix)?;
                let noted = u32::try_from(self.len().saturating_sub(4)).unwrap_or(u32::MAX);
                Ok(noted.to_be_bytes().starts_with(&prefix))
            }
        }
    }
}
