//! Writes a Surogate log as Surogate does: the array is always closed, and each record overwrites its end.

use std::{
    fs::{self, File},
    io::{Seek, SeekFrom, Write},
    path::Path,
};

use jiff::Timestamp;

/// A log that is being written.
#[derive(Debug)]
pub struct SurogateWriter {
    file: File,
    is_empty: bool,
}

impl SurogateWriter {
    /// Creates a log; an existing one is truncated, as by a restarted trainer.
    pub fn create(path: &Path) -> Self {
        let mut file = File::create(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        file.write_all(b"[\n\n]\n").expect("a log can be written");
        Self { file, is_empty: true }
    }

    /// Appends a record with one write.
    pub fn append(&mut self, record: &str) {
        self.append_torn(record, &[], || {});
    }

    /// Appends a record with one write up to each cut and one for the rest, and calls `between` in between.
    pub fn append_torn(&mut self, record: &str, cuts: &[usize], mut between: impl FnMut()) {
        let comma = if self.is_empty { "" } else { ",\n" };
        self.is_empty = false;
        let text = format!("{comma}  {record}\n]\n");
        self.file.seek(SeekFrom::End(-3)).expect("a log can be sought in");
        let mut written = 0;
        for cut in cuts.iter().copied().filter(|cut| *cut < text.len()) {
            self.write(&text.as_bytes()[written..cut]);
            written = cut;
            between();
        }
        self.write(&text.as_bytes()[written..]);
    }

    fn write(&mut self, bytes: &[u8]) {
        self.file.write_all(bytes).expect("a log can be written");
    }
}

/// Returns the records of a finished log, as they were written.
pub fn surogate_records(path: &Path) -> Vec<String> {
    let text = fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let inside = text
        .strip_prefix("[\n  ")
        .and_then(|text| text.strip_suffix("\n]\n"))
        .expect("a finished log is an array with a record a line");
    inside.split(",\n  ").map(str::to_owned).collect()
}

/// Returns a record of the corpus with another time, in Unix nanoseconds.
pub fn record_at(record: &str, unix_nanos: u64) -> String {
    let time = surogate_time(unix_nanos);
    let begin = record.find("2026-11-21 ").expect("a record has a time");
    format!("{}{time}{}", &record[..begin], &record[begin + time.len()..])
}

/// Formats a time in Unix nanoseconds as Surogate does.
pub fn surogate_time(unix_nanos: u64) -> String {
    let time = Timestamp::from_nanosecond(unix_nanos.into()).expect("a time of today");
    time.strftime("%Y-%m-%d %H:%M:%S.%9f").to_string()
}
