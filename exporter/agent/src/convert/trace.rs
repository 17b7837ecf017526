//! The files of a Perfetto trace: one, or a numbered sequence, plain or gzip.

use std::{
    fs,
    io::{self, Write},
    path::{Path, PathBuf},
};

use flate2::{Compression, write::GzEncoder};
use pulsetrain_sinks::UnfinishedFile;
use pulsetrain_to_perfetto::PerfettoParts;

use crate::input_guard;

/// The suffixes of a trace's name.
const ENDINGS: [&str; 2] = [".pftrace", ".perfetto-trace"];
/// The additional suffix of a compressed trace.
const GZIP: &str = ".gz";

/// Returns whether a name is that of a Perfetto trace.
pub(crate) fn is_name(path: &Path) -> bool {
    let name = path.to_string_lossy().to_lowercase();
    let name = name.strip_suffix(GZIP).unwrap_or(&name);
    ENDINGS.iter().any(|ending| name.ends_with(ending))
}

/// The files that a trace is written to.
pub(super) struct TraceFiles<'a> {
    path: &'a Path,
    numbered: bool,
    inputs: &'a [PathBuf],
    paths: Vec<PathBuf>,
    /// The complete files, which get their names together.
    complete: Vec<UnfinishedFile>,
}

/// One file, which appears under its name when it is complete.
pub(crate) enum TraceFile {
    Plain(UnfinishedFile),
    Gzip(Box<GzEncoder<UnfinishedFile>>),
}

impl TraceFile {
    /// Opens a file that is compressed if its name ends in `.gz`.
    pub(crate) fn create(path: &Path) -> io::Result<Self> {
        let file = UnfinishedFile::create(path)?;
        let gzip = path.to_string_lossy().to_lowercase().ends_with(GZIP);
        Ok(if gzip {
            Self::Gzip(Box::new(GzEncoder::new(file, Compression::fast())))
        } else {
            Self::Plain(file)
        })
    }

    /// Writes the end of the file and renames it to its final name.
    pub(crate) fn finish(self) -> io::Result<()> {
        self.complete()?.finish()
    }

    /// Writes the end of the file and closes it.
    fn complete(self) -> io::Result<UnfinishedFile> {
        let mut file = match self {
            Self::Plain(file) => file,
            Self::Gzip(encoder) => encoder.finish()?,
        };
        file.complete()?;
        Ok(file)
    }
}

impl<'a> TraceFiles<'a> {
    /// Creates the writer of one file with this name, or of numbered files; never overwrites an input.
    pub(super) fn new(path: &'a Path, numbered: bool, inputs: &'a [PathBuf]) -> Self {
        Self {
            path,
            numbered,
            inputs,
            paths: Vec::new(),
            complete: Vec::new(),
        }
    }

    /// Renames the files to their final names, and returns the paths. The parts of an earlier run are removed first, from the last
    /// one on, so that an interruption leaves no gap and never parts of two runs.
    ///
    /// # Errors
    /// A file cannot be renamed or removed.
    pub(super) fn publish(mut self) -> io::Result<Vec<PathBuf>> {
        let complete = std::mem::take(&mut self.complete);
        if self.numbered && !complete.is_empty() {
            self.remove_later_parts()?;
            let mut replaced = complete.iter().zip(&self.paths).rev();
            replaced
                .try_for_each(|(file, path)| file.remove_replaced().map_err(|error| named(path, &error)))?;
        }
        complete.into_iter().try_for_each(UnfinishedFile::finish)?;
        Ok(self.paths)
    }

    /// Removes the parts of an earlier run that had more of them, which would be taken for parts of this trace: the files with the
    /// next numbers, from the last one on.
    fn remove_later_parts(&self) -> io::Result<()> {
        let is_removable = |path: &PathBuf| {
            let inputs = self.inputs.iter().map(PathBuf::as_path);
            fs::symlink_metadata(path).is_ok_and(|found| found.is_file())
                && input_guard::refuse_input(path, inputs).is_ok()
        };
        let later = (self.paths.len() as u32..).map(|number| self.name(number));
        let later: Vec<PathBuf> = later.take_while(is_removable).collect();
        let mut later = later.iter().rev();
        later.try_for_each(|path| fs::remove_file(path).map_err(|error| named(path, &error)))
    }

    fn name(&self, number: u32) -> PathBuf {
        if !self.numbered {
            return self.path.to_owned();
        }
        let name = self.path.file_name().unwrap_or_default().to_string_lossy();
        let lower = name.to_lowercase();
        let ending = ENDINGS
            .iter()
            .find_map(|ending| lower.rfind(ending))
            .unwrap_or(name.len());
        let (stem, ending) = name.split_at_checked(ending).unwrap_or((&name, ""));
        self.path.with_file_name(format!("{stem}.{number:03}{ending}"))
    }
}

impl PerfettoParts for TraceFiles<'_> {
    type Part = TraceFile;

    fn open(&mut self, number: u32) -> io::Result<TraceFile> {
        let path = self.name(number);
        input_guard::refuse_input(&path, self.inputs.iter().map(PathBuf::as_path))
            .map_err(|failure| io::Error::other(failure.to_string()))?;
        let file = TraceFile::create(&path).map_err(|error| named(&path, &error))?;
        self.paths.push(path);
        Ok(file)
    }

    fn close(&mut self, part: TraceFile) -> io::Result<()> {
        self.complete.push(part.complete()?);
        Ok(())
    }

    fn discard(&mut self, _: TraceFile) -> io::Result<()> {
        self.paths.pop();
        Ok(())
    }
}

/// Adds a path to an error.
fn named(path: &Path, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{}: {error}", path.display()))
}

impl Write for TraceFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Plain(file) => file.write(bytes),
            Self::Gzip(encoder) => encoder.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Plain(file) => file.flush(),
            Self::Gzip(encoder) => encoder.flush(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;

    use super::*;

    fn names(folder: &Path) -> Vec<OsString> {
        let entries = fs::read_dir(folder).unwrap();
        let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name()).collect();
        names.sort();
        names
    }

    #[test]
    fn part_number_is_inserted_before_the_file_extension() {
        let name = |path: &str, numbered| TraceFiles::new(Path::new(path), numbered, &[]).name(7);
        assert_eq!(name("a/run.pftrace.gz", true), Path::new("a/run.007.pftrace.gz"));
        assert_eq!(
            name("run.perfetto-trace", true),
            Path::new("run.007.perfetto-trace")
        );
        assert_eq!(name("run.pftrace", false), Path::new("run.pftrace"));
    }

    #[test]
    fn only_the_next_parts_of_an_earlier_run_are_removed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("run.pftrace");
        for number in ["001", "002", "004", "2024"] {
            fs::write(folder.path().join(format!("run.{number}.pftrace")), "").unwrap();
        }
        let mut files = TraceFiles::new(&path, true, &[]);
        let part = files.open(0).unwrap();
        files.close(part).unwrap();
        files.publish().unwrap();
        assert_eq!(
            names(folder.path()),
            ["run.000.pftrace", "run.004.pftrace", "run.2024.pftrace"]
        );
    }

    #[test]
    fn interruption_between_two_renames_leaves_no_part_of_the_earlier_run() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("run.pftrace");
        for number in 0..3 {
            fs::write(folder.path().join(format!("run.{number:03}.pftrace")), "earlier").unwrap();
        }
        let mut files = TraceFiles::new(&path, true, &[]);
        for number in 0..2 {
            let part = files.open(number).unwrap();
            files.close(part).unwrap();
        }
        // The second rename fails.
        fs::remove_file(folder.path().join("run.001.pftrace.partial")).unwrap();
        files.publish().unwrap_err();
        assert_eq!(names(folder.path()), ["run.000.pftrace"]);
        assert_eq!(fs::read(folder.path().join("run.000.pftrace")).unwrap(), b"");
    }
}
