//! What no source brings again: the records that a file keeps when it is cut back.
//!
//! A source with positions reads again what came after the last written position, so a restart cuts that off the file.
//! Telemetry of other sources stands in between and comes only once. The journal notes where: a line `START END` for each
//! of those records, written before their delivery counts. Every step of a recovery can be killed and done again.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, BufRead, BufReader, Read, Seek, SeekFrom, Write},
    path::{Path, PathBuf},
    sync::Arc,
};

use super::format::FileFormat;

/// A journal that has grown over this is written anew, without what is behind the committed end.
const TRIMMED_BYTES: u64 = 64 << 10;

/// The journal of one file.
#[derive(Clone)]
pub struct FileJournal {
    path: PathBuf,
    committed: Arc<dyn Fn() -> u64 + Send + Sync>,
}

/// A journal that is being written.
pub(super) struct OpenJournal {
    journal: FileJournal,
    file: File,
    bytes: u64,
}

/// Where a record stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Span {
    start: u64,
    end: u64,
}

impl FileJournal {
    /// A journal at `path`; `committed` says where the file ended at the last written position.
    pub fn new(path: impl Into<PathBuf>, committed: impl Fn() -> u64 + Send + Sync + 'static) -> Self {
        Self {
            path: path.into(),
            committed: Arc::new(committed),
        }
    }

    /// Cuts `file` back to the committed end but for what comes only once, and gives where it ends now.
    pub(super) fn recover(&self, file: &mut File, format: FileFormat) -> io::Result<u64> {
        if !self.kept_path().exists() {
            self.put_aside(file, format)?;
        }
        let (base, spans, mut kept) = self.open_kept()?;
        file.set_len(base)?;
        file.seek(SeekFrom::Start(base))?;
        let end = base + io::copy(&mut kept, file)?;
        self.write(&spans)?;
        fs::remove_file(self.kept_path())?;
        Ok(end)
    }

    /// Goes on with what the journal holds.
    pub(super) fn open(&self) -> io::Result<OpenJournal> {
        let mut options = OpenOptions::new();
        let file = options.append(true).create(true).open(&self.path)?;
        Ok(OpenJournal {
            bytes: file.metadata()?.len(),
            journal: self.clone(),
            file,
        })
    }

    /// Copies what is to be kept into a file of its own: first where it goes, then how long each record is, then the records.
    fn put_aside(&self, file: &mut File, format: FileFormat) -> io::Result<()> {
        let base = (self.committed)().min(file.metadata()?.len());
        let mut spans = self.read()?;
        spans.retain(|span| span.start >= base && span.is_of(file, format).unwrap_or(false));
        let new = self.path.with_extension("new");
        let mut kept = File::create(&new)?;
        let lengths: Vec<String> = spans.iter().map(|span| span.len().to_string()).collect();
        writeln!(kept, "{base} {}", lengths.join(" "))?;
        for span in &spans {
            file.seek(SeekFrom::Start(span.start))?;
            io::copy(&mut file.take(span.len()), &mut kept)?;
        }
        fs::rename(new, self.kept_path())
    }

    /// What was put aside: where it goes, where each record will stand, and the records.
    fn open_kept(&self) -> io::Result<(u64, Vec<Span>, impl Read)> {
        let mut kept = BufReader::new(File::open(self.kept_path())?);
        let mut head = String::new();
        kept.read_line(&mut head)?;
        let mut numbers = head.split_whitespace().map(str::parse::<u64>);
        let base = numbers.next().and_then(Result::ok);
        let base = base.ok_or_else(|| io::Error::from(io::ErrorKind::InvalidData))?;
        let mut start = base;
        let spans = numbers.flatten().map(|len| {
            let span = Span {
                start,
                end: start + len,
            };
            start = span.end;
            span
        });
        Ok((base, spans.collect(), kept))
    }

    /// What is noted; a line that was torn by a kill is of a record whose delivery did not count.
    fn read(&self) -> io::Result<Vec<Span>> {
        let text = match fs::read_to_string(&self.path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
            read => read?,
        };
        let whole = text.rfind('\n').unwrap_or_default();
        Ok(text[..whole].lines().filter_map(Span::parse).collect())
    }

    fn write(&self, spans: &[Span]) -> io::Result<()> {
        let new = self.path.with_extension("new");
        let text: String = spans.iter().map(Span::line).collect();
        fs::write(&new, text)?;
        fs::rename(new, &self.path)
    }

    fn kept_path(&self) -> PathBuf {
        self.path.with_extension("kept")
    }

    /// Where it is, for messages.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }
}

impl OpenJournal {
    /// Notes a record that no source brings again.
    pub(super) fn note(&mut self, start: u64, end: u64) -> io::Result<()> {
        if self.bytes > TRIMMED_BYTES {
            self.trim()?;
        }
        let line = Span { start, end }.line();
        self.file.write_all(line.as_bytes())?;
        self.bytes += line.len() as u64;
        Ok(())
    }

    fn trim(&mut self) -> io::Result<()> {
        let committed = (self.journal.committed)();
        let mut spans = self.journal.read()?;
        spans.retain(|span| span.start >= committed);
        self.journal.write(&spans)?;
        *self = self.journal.open()?;
        Ok(())
    }
}

impl Span {
    fn parse(line: &str) -> Option<Self> {
        let (start, end) = line.split_once(' ')?;
        let (start, end) = (start.parse().ok()?, end.parse().ok()?);
        (start < end).then_some(Self { start, end })
    }

    fn line(&self) -> String {
        format!("{} {}\n", self.start, self.end)
    }

    fn len(self) -> u64 {
        self.end - self.start
    }

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

#[cfg(test)]
mod tests;
