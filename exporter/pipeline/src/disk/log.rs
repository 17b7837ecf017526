//! The segment log of one queue: append, read in order, finish in any order, recover after a kill.
//!
//! `log/recovery.rs` opens a folder, `log/append.rs` writes segments, `log/reader.rs` reads one, `log/damage.rs` skips
//! records that cannot be read. All calls do I/O on the calling thread.

mod append;
mod damage;
mod reader;
mod recovery;
#[cfg(test)]
mod tests;

use std::{
    collections::{BTreeSet, VecDeque},
    fs::{self, File},
    io::{self, ErrorKind},
    path::{Path, PathBuf},
    time::Duration,
};

use self::reader::SegmentReader;
use super::{
    Notice, Position, Record,
    counts::{RecordCounts, StoredCounts},
    cursor::{self, Cursor, CursorTotals},
    record::{HEADER_BYTES, Header},
    segment::{self, Segment},
};

/// The segments of one folder, which store batches.
///
/// ```
/// # use std::time::Duration;
/// # use pulsetrain_otlp::Signal;
/// # use pulsetrain_pipeline::disk::{Record, SegmentLog};
/// # let folder = tempfile::tempdir()?;
/// let (mut log, _) = SegmentLog::open(folder.path(), 16 << 20)?;
/// log.append(&Record {
///     signal: Signal::Metrics,
///     items: 3,
///     accepted: Duration::from_secs(1_700_000_000),
///     bytes: vec![0x0a, 0x00].into(),
/// })?;
/// let stored = log.next()?.expect("the record that was appended");
/// assert_eq!(stored.record.items, 3);
/// log.finish(stored.position);
/// assert_eq!(log.contents().records, 0);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct SegmentLog {
    folder: PathBuf,
    /// The open folder, for its sync.
    folder_file: File,
    segment_bytes: u64,
    lock: File,
    /// The segments, in order of their numbers.
    segments: VecDeque<Segment>,
    next_number: u64,
    /// The file of the last segment; `None` if that segment is sealed.
    writer: Option<File>,
    /// The sealed segments with bytes that may not be on the disk yet, by number.
    unsynced: Vec<(u64, File)>,
    is_dirty: bool,
    reader: Option<SegmentReader>,
    /// The position of the next record to read for the first time.
    head: Position,
    /// The totals after the last record that was read.
    head_totals: RecordCounts,
    /// The totals after the newest record: they number the next record.
    end_totals: RecordCounts,
    /// The accepted time of the record at the head, or `None` if it is not known yet.
    head_accepted: Option<Duration>,
    /// The records that were read, starting with the oldest unfinished one.
    window: VecDeque<Entry>,
    /// The counts of the records of the window, finished ones included.
    window_counts: RecordCounts,
    /// The records of the window that must be read again.
    returned: BTreeSet<Position>,
    /// The counts of the records from the head on.
    unread: StoredCounts,
    /// The counts of the unfinished records of the window.
    in_flight: StoredCounts,
    notices: Vec<Notice>,
    saved_cursor: Option<Cursor>,
    /// Makes appends and reads panic while it is set.
    #[cfg(test)]
    pub(super) panics: std::sync::Arc<std::sync::atomic::AtomicBool>,
}

/// A record that was read, with its position for [`SegmentLog::finish`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stored {
    /// The position of the record.
    pub position: Position,
    /// The record.
    pub record: Record,
}

/// The amount of unfinished records.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Contents {
    /// The number of records.
    pub records: u64,
    /// The number of spans, points or log records in them.
    pub items: u64,
    /// The size of the records in bytes, headers included.
    pub bytes: u64,
    /// The size of all files of the log in bytes, finished records included.
    pub file_bytes: u64,
}

/// A record that was read and may be unfinished.
#[derive(Debug)]
struct Entry {
    position: Position,
    /// The totals before the record.
    before: RecordCounts,
    counts: StoredCounts,
    accepted: Duration,
    is_finished: bool,
}

impl SegmentLog {
    /// Reads the next record: a returned one, or else the oldest that was not read yet. Returns `None` at the end.
    ///
    /// # Errors
    /// Returns an error if a file cannot be read now. A corrupt or missing record is not an error: it is skipped and
    /// reported in the [notices](Self::take_notices).
    #[expect(
        clippy::should_implement_trait,
        reason = "it fails, and may have more after its end"
    )]
    pub fn next(&mut self) -> io::Result<Option<Stored>> {
        #[cfg(test)]
        self.panic_on_demand();
        while let Some(position) = self.returned.first().copied() {
            match self.read(position) {
                Ok(Some((_, record))) => {
                    self.returned.remove(&position);
                    return Ok(Some(Stored { position, record }));
                }
                Ok(None) => self.lose_returned(position),
                Err(error) if error.kind() == ErrorKind::NotFound => self.lose_returned(position),
                Err(error) => return Err(error),
            }
        }
        while self.find_readable() {
            let position = self.head;
            match self.read(position) {
                Ok(Some((header, record))) => {
                    self.pass_head(header, &record);
                    return Ok(Some(Stored { position, record }));
                }
                Ok(None) => self.skip_corrupt()?,
                Err(error) if error.kind() == ErrorKind::NotFound => self.skip_missing(),
                Err(error) => return Err(error),
            }
        }
        Ok(None)
    }

    /// Returns whether there is a record to read, as far as this is known without reading the files.
    pub(super) fn has_unread(&self) -> bool {
        self.unread.bytes > 0 || !self.returned.is_empty()
    }

    /// Marks a record as finished. Segments that are no longer needed are deleted, after the cursor is saved: it must not
    /// refer to records that were sent and deleted.
    pub fn finish(&mut self, position: Position) {
        self.returned.remove(&position);
        let Some(entry) = self.entry(position).filter(|entry| !entry.is_finished) else {
            return;
        };
        entry.is_finished = true;
        let counts = entry.counts;
        self.in_flight -= counts;
        while let Some(entry) = self.window.pop_front_if(|entry| entry.is_finished) {
            self.window_counts -= entry.counts.records;
        }
        let oldest = self.segments.front().map(|segment| segment.number);
        if oldest.is_some_and(|oldest| oldest < self.position().segment) {
            // If this fails, it is retried when the cursor is due.
            let _ = self.save_cursor();
        }
    }

    /// Returns a record to the log: [`next`](Self::next) reads it again. Returns `false` if the record is no longer in
    /// the log.
    pub fn give_back(&mut self, position: Position) -> bool {
        let is_known = self.entry(position).is_some_and(|entry| !entry.is_finished);
        if is_known {
            self.returned.insert(position);
        }
        is_known
    }

    /// Saves the cursor, so that a restart does not repeat the finished records and knows how many others it must find.
    /// Deletes the finished segments.
    ///
    /// # Errors
    /// Returns an error if the cursor cannot be written; a restart then repeats more records.
    pub fn save_cursor(&mut self) -> io::Result<()> {
        if self.is_empty() {
            self.seal();
        }
        let saved = self.write_cursor();
        let is_full =
            |error: &io::Error| matches!(error.kind(), ErrorKind::StorageFull | ErrorKind::QuotaExceeded);
        // On a full disk, the deleted segments make room for the cursor.
        if saved.as_ref().err().is_none_or(is_full) && self.remove_finished() && saved.is_err() {
            return self.write_cursor();
        }
        saved
    }

    fn write_cursor(&mut self) -> io::Result<()> {
        let cursor = self.cursor();
        if self.saved_cursor != Some(cursor) {
            cursor::write(&self.folder, cursor)?;
            self.saved_cursor = Some(cursor);
        }
        Ok(())
    }

    fn is_empty(&self) -> bool {
        self.unread.bytes == 0 && self.window.is_empty()
    }

    /// Returns the amount of unfinished records.
    pub fn contents(&self) -> Contents {
        let mut all = self.unread;
        all += self.in_flight;
        Contents {
            records: all.records.records,
            items: all.records.total_items(),
            bytes: all.bytes,
            file_bytes: self.segments.iter().map(|segment| segment.end).sum(),
        }
    }

    /// Returns the accepted time of the oldest unfinished record, or `None` if all are finished.
    pub fn oldest(&mut self) -> Option<Duration> {
        if let Some(entry) = self.window.front() {
            return Some(entry.accepted);
        }
        if self.head_accepted.is_none() && self.find_readable() {
            let read = self.read(self.head).ok().flatten();
            self.head_accepted = read.map(|(_, record)| record.accepted);
        }
        self.head_accepted.filter(|_| self.unread.bytes > 0)
    }

    /// Returns the notices about skipped parts since the last call.
    pub fn take_notices(&mut self) -> Vec<Notice> {
        std::mem::take(&mut self.notices)
    }

    /// Returns the folder of the log.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Returns whether the folder was deleted since it was opened.
    pub fn is_gone(&self) -> bool {
        #[cfg(unix)]
        {
            use std::os::unix::fs::MetadataExt;
            self.lock.metadata().is_ok_and(|lock| lock.nlink() == 0)
        }
        #[cfg(not(unix))]
        {
            !self.folder.exists()
        }
    }

    /// Creates the folder of this log again after it was deleted. The lost records are reported, except for the records
    /// that were read and not returned.
    ///
    /// # Errors
    /// Returns an error if the folder cannot be created.
    pub fn reopen(&mut self) -> Result<(), super::DiskQueueError> {
        let (mut new, notices) = Self::open(&self.folder, self.segment_bytes)?;
        let is_returned = |entry: &&Entry| self.returned.contains(&entry.position);
        let returned = self.window.iter().filter(is_returned);
        let lost = returned.fold(self.unread.records, |lost, entry| lost + entry.counts.records);
        // The positions of the new log must not repeat those of the old log.
        new.next_number = new.next_number.max(self.next_number);
        new.notices = std::mem::take(&mut self.notices);
        new.notices.extend(notices);
        new.notices.push(Notice::FolderGone {
            path: self.folder.clone(),
            lost,
        });
        *self = new;
        Ok(())
    }

    /// Moves the head to the next record, past gaps and the ends of segments. Returns `false` at the end of the log.
    fn find_readable(&mut self) -> bool {
        loop {
            let at = self
                .segments
                .partition_point(|segment| segment.number < self.head.segment);
            let Some(segment) = self.segments.get(at) else {
                return false;
            };
            if segment.number > self.head.segment {
                self.head = first_of(segment.number);
            }
            self.head.offset = segment.skip_gaps(self.head.offset);
            if self.head.offset < segment.end {
                return true;
            }
            match self.segments.get(at + 1) {
                Some(next) => self.head = first_of(next.number),
                None => return false,
            }
        }
    }

    /// Reads the record at `position`, or returns `None` if it is corrupt or missing.
    fn read(&mut self, position: Position) -> io::Result<Option<(Header, Record)>> {
        let Some(end) = self.segment(position.segment).map(|segment| segment.end) else {
            return Ok(None);
        };
        let reader = match self
            .reader
            .take()
            .filter(|reader| reader.number() == position.segment)
        {
            Some(reader) => self.reader.insert(reader),
            None => self
                .reader
                .insert(SegmentReader::open(&self.folder, position.segment)?),
        };
        let header_end = position.offset.saturating_add(HEADER_BYTES as u64).min(end);
        let Some(header) = Header::parse(&reader.read(position.offset..header_end, end)?) else {
            return Ok(None);
        };
        let record_end = position.offset.saturating_add(header.record_bytes());
        if record_end > end {
            return Ok(None);
        }
        let record = reader.read(position.offset..record_end, end)?;
        let is_sound = header.is_sound(position, &record);
        Ok(is_sound.then(|| (header, header.record(&record))))
    }

    /// Moves the head past the record that was read at it.
    fn pass_head(&mut self, header: Header, record: &Record) {
        let counts = header.counts();
        let position = self.head;
        let before = header.before().unwrap_or(self.head_totals);
        self.unread -= counts;
        self.in_flight += counts;
        self.window_counts += counts.records;
        if let Some(segment) = self.segment_mut(position.segment) {
            segment.unread -= counts;
        }
        self.head.offset += counts.bytes;
        self.head_totals = before + counts.records;
        self.head_accepted = None;
        self.window.push_back(Entry {
            position,
            before,
            counts,
            accepted: record.accepted,
            is_finished: false,
        });
    }

    /// Deletes and closes the segments in front of the cursor. A failed deletion is retried with the next one. Returns
    /// whether a segment was deleted.
    fn remove_finished(&mut self) -> bool {
        let position = self.position();
        let mut has_removed = false;
        while let Some(segment) = self.segments.front()
            && segment.number < position.segment
        {
            let number = segment.number;
            match fs::remove_file(segment::path(&self.folder, number)) {
                Err(error) if error.kind() != ErrorKind::NotFound => break,
                _ => self.segments.pop_front(),
            };
            self.close(number);
            has_removed = true;
        }
        has_removed
    }

    /// Closes the files of a segment that was deleted: the file system keeps the blocks of an open file.
    fn close(&mut self, number: u64) {
        self.reader.take_if(|reader| reader.number() == number);
        self.unsynced.retain(|(unsynced, _)| *unsynced != number);
    }

    /// Returns the position of the oldest unfinished record, and the records that a restart must find from it on.
    fn cursor(&self) -> Cursor {
        let end = self.end_totals;
        let start = match self.window.front() {
            Some(entry) => entry.before,
            None if self.is_empty() => end,
            None => self.head_totals,
        };
        let held = self.window_counts + self.unread.records;
        Cursor {
            position: self.position(),
            totals: Some(CursorTotals {
                start,
                end,
                lost: end - start - held,
            }),
        }
    }

    /// Returns the position from which a restart has to read.
    fn position(&self) -> Position {
        if let Some(entry) = self.window.front() {
            return entry.position;
        }
        let is_open =
            |number| self.writer.is_some() && self.segments.back().is_some_and(|last| last.number == number);
        let mut cursor = self.head;
        let at = self
            .segments
            .partition_point(|segment| segment.number < cursor.segment);
        for segment in self.segments.range(at..) {
            if segment.number > cursor.segment {
                cursor = first_of(segment.number);
            }
            cursor.offset = segment.skip_gaps(cursor.offset);
            if cursor.offset < segment.end || is_open(segment.number) {
                return cursor;
            }
        }
        first_of(self.next_number)
    }

    fn entry(&mut self, position: Position) -> Option<&mut Entry> {
        let at = self
            .window
            .binary_search_by_key(&position, |entry| entry.position)
            .ok()?;
        self.window.get_mut(at)
    }

    fn segment(&self, number: u64) -> Option<&Segment> {
        let at = self.segments.partition_point(|segment| segment.number < number);
        self.segments.get(at).filter(|segment| segment.number == number)
    }

    fn segment_mut(&mut self, number: u64) -> Option<&mut Segment> {
        let at = self.segments.partition_point(|segment| segment.number < number);
        self.segments
            .get_mut(at)
            .filter(|segment| segment.number == number)
    }
}

/// Returns the position of the first record of a segment.
fn first_of(segment: u64) -> Position {
    Position {
        segment,
        offset: segment::HEADER_BYTES,
    }
}
