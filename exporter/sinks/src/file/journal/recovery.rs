//! Recovery of a file after a restart: what comes again is cut off it, and everything else stays.
//!
//! What stays behind the first record that comes again is put aside (`.kept`), then the file is cut, then it comes back.
//! Every step can be killed and done again.

use std::{
    fs::{self, File},
    io::{self, BufRead, BufReader, Read, Seek, SeekFrom, Write},
    path::PathBuf,
};

use super::{super::format::FileFormat, FileJournal, Notes, Span};

impl FileJournal {
    /// Cuts off `file` what comes again, and gives where it ends now.
    pub(in super::super) fn recover(&self, file: &mut File, format: FileFormat) -> io::Result<u64> {
        if !self.kept_path().exists() {
            self.put_aside(file, format)?;
        }
        let (base, mut kept) = self.open_kept()?;
        file.set_len(base)?;
        file.seek(SeekFrom::Start(base))?;
        let floor = base + io::copy(&mut kept, file)?;
        let spans = Vec::new();
        self.write(&Notes { floor, spans })?;
        fs::remove_file(self.kept_path())?;
        Ok(floor)
    }

    /// Copies what is to be kept into a file of its own: first where it goes, then the records.
    pub(super) fn put_aside(&self, file: &mut File, format: FileFormat) -> io::Result<()> {
        let settled = (self.settled)();
        let mut notes = self.read()?;
        notes
            .spans
            .retain(|span| span.is_of(file, format).unwrap_or(false));
        notes.raise_floor(settled);
        notes.spans.retain(|span| !span.comes_again(settled));
        let new = self.path.with_extension("new");
        let mut kept = File::create(&new)?;
        writeln!(kept, "{}", notes.floor.min(file.metadata()?.len()))?;
        for span in &notes.spans {
            file.seek(SeekFrom::Start(span.start))?;
            io::copy(&mut file.take(span.len()), &mut kept)?;
        }
        fs::rename(new, self.kept_path())
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

impl Span {
    /// Whether a whole record stands there: the file may be another one by now.
    fn is_of(self, file: &mut File, format: FileFormat) -> io::Result<bool> {
        let mut byte_at = |place: u64| {
            let mut byte = [0];
            file.seek(SeekFrom::Start(place))?;
            file.read_exact(&mut byte)?;
            io::Result::Ok(byte[0])
        };
        match format {
            FileFormat::JsonLines => {
                let begins = self.start == 0 || byte_at(self.start - 1)? == b'\n';
                Ok(begins && byte_at(self.end - 1)? == b'\n')
            }
            FileFormat::LengthPrefixed => {
                let mut prefix = [0; 4];
                byte_at(self.end - 1)?;
                file.seek(SeekFrom::Start(self.start))?;
                file.read_exact(&mut prefix)?;
                Ok(u64::from(u32::from_be_bytes(prefix)) + 4 == self.len())
            }
        }
    }
}
