//! Recovery of a file after a restart: records that are replayed are cut off, and all others stay.
//!
//! The records that stay after the first replayed one are copied to `.kept`, then the file is truncated, then
//! they are appended. Every step can be killed and repeated. Rotated files with unacknowledged records are
//! recovered first. Only bytes that the journal proves to be this program's are cut off. Bytes after the last
//! journaled record move to another file, and a file that the journal does not describe is kept.

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
    FileJournal, JournalContent, PreviousJournal, Span,
};

/// A recovered file.
#[derive(Debug)]
pub(in super::super) struct Recovered {
    /// The end of the file, where the next record starts.
    pub(in super::super) end: u64,
    /// The number of kept bytes of another program, or of this program with another state folder.
    pub(in super::super) foreign: u64,
    /// The bytes that were moved to another file.
    pub(in super::super) aside: Option<MovedBytes>,
    /// The bytes of records that are delivered again, although a rotated file outside the folder holds them.
    pub(in super::super) repeated: u64,
}

/// The recovery plan of a file that the journal describes.
pub(super) struct Plan {
    /// The records that stay.
    notes: JournalContent,
    /// The bytes after the last journaled record.
    unknown: Range<u64>,
}

impl FileJournal {
    /// Truncates `file`, at `path`, and its earlier files in the same folder, so that records that sources
    /// replay are removed.
    pub(in super::super) fn recover(
        &self,
        file: &mut File,
        path: &Path,
        format: FileFormat,
    ) -> io::Result<Recovered> {
        let identity = FileIdentity::from_file(file)?;
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

    /// Keeps the journal under a new name if its file was moved and `file` replaced it. Returns the bytes of
    /// records that are delivered again if that file is no longer in the folder.
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

    /// Recovers the files of earlier journals. Returns the bytes of replayed records in files that are no
    /// longer in the folder.
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

    /// Returns the journal at another path.
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

    /// Removes the replayed records of `file`. Returns `None` if the journal does not describe it.
    fn cut_off(&self, file: &mut File, path: &Path, format: FileFormat) -> io::Result<Option<Recovered>> {
        let mut aside = None;
        if !self.kept_path().exists() {
            let Some(plan) = self.plan(file, format)? else {
                return Ok(None);
            };
            aside = self.put_aside(file, path, &plan)?;
        }
        let (base, mut kept) = self.open_kept()?;
        // Another program may have truncated the file since the copy.
        let base = base.min(file.metadata()?.len());
        file.set_len(base)?;
        file.seek(SeekFrom::Start(base))?;
        let end = base + io::copy(&mut kept, file)?;
        self.begin(FileIdentity::from_file(file)?, end)?;
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
        self.begin(FileIdentity::from_file(file)?, end)?;
        Ok(Recovered {
            end,
            foreign: end,
            aside,
            repeated: 0,
        })
    }

    /// Plans which records of the file stay. Returns `None` if the journal does not describe it.
    pub(super) fn plan(&self, file: &mut File, format: FileFormat) -> io::Result<Option<Plan>> {
        let first_unacked = (self.first_unacked)();
        let length = file.metadata()?.len();
        let Some(mut notes) = self.read()? else {
            return Ok(None);
        };
        let Some(end) = notes.recorded_end(file, format, length)? else {
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

    /// Copies the records that stay into `.kept`, after their offset. Copies unknown bytes into another file,
    /// which stays.
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

    /// Opens `.kept`. Returns the offset and the records.
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

impl JournalContent {
    /// Returns the end of the journaled bytes in the file, an incomplete last record included. Returns `None`
    /// if the file is not the journaled one. In a shorter file, as after a power failure, the remaining
    /// records count.
    fn recorded_end(&self, file: &mut File, format: FileFormat, length: u64) -> io::Result<Option<u64>> {
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
    /// Returns whether the file holds a record of this length here, or the beginning of one at its end.
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
                let recorded = u32::try_from(self.len().saturating_sub(4)).unwrap_or(u32::MAX);
                Ok(recorded.to_be_bytes().starts_with(&prefix))
            }
        }
    }
}
