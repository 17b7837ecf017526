//! Opens the folder of a queue, and recovers it after a shutdown or a crash of its last process.

use std::{
    collections::{BTreeSet, VecDeque},
    fs::{self, File, OpenOptions, TryLockError},
    io::{self, Read},
    path::{Path, PathBuf},
};

use super::{
    super::{
        DiskQueueError, Notice, Position, RecordCounts,
        counts::StoredCounts,
        cursor::{self, CursorTotals},
        file,
        record::Header,
        segment::{self, FileHeader, Gap, Part, Scan, Segment},
    },
    SegmentLog,
    damage::set_aside,
    first_of,
};
use crate::private_files;

const LOCK: &str = "lock";

/// The state of a recovery: the segments that were scanned so far.
struct Recovery<'a> {
    folder: &'a Path,
    segments: VecDeque<Segment>,
    unread: StoredCounts,
    /// The totals before the next record; `None` until a cursor or a record of version 2 shows them.
    next: Option<RecordCounts>,
    /// The lost records that an earlier process counted and that were not found missing yet.
    counted: RecordCounts,
    /// The records that were found missing, counted ones included.
    lost: RecordCounts,
    /// The number of the last segment that was scanned.
    last_scanned: u64,
    /// The corrupt parts since the last record that shows the totals.
    corrupt: Vec<Corrupt>,
    notices: Vec<Notice>,
}

/// A part that cannot be read, until it is known whether it held records.
struct Corrupt {
    path: PathBuf,
    gap: Gap,
    aside: Option<PathBuf>,
    /// Whether an earlier process copied it aside and reported it.
    is_known: bool,
}

impl SegmentLog {
    /// Opens the log in `folder`, which is created if it is missing, and starts a new segment after about
    /// `segment_bytes`. The notices report the parts that could not be read.
    ///
    /// # Errors
    /// Returns an error if the folder cannot be used, another process uses it, or another version of this program wrote
    /// it.
    pub fn open(folder: &Path, segment_bytes: u64) -> Result<(Self, Vec<Notice>), DiskQueueError> {
        private_files::create_own_folder(folder).map_err(cannot("create", folder))?;
        let lock = lock(folder)?;
        let folder_file = File::open(folder).map_err(cannot("open", folder))?;
        let numbers = segment::list(folder).map_err(cannot("list", folder))?;
        for &number in &numbers {
            check_version(&segment::path(folder, number))?;
        }
        let mut recovery = Recovery::new(folder);
        let (cursor, totals) = recovery.cursor(&numbers)?;
        recovery.last_scanned = cursor.segment.saturating_sub(1);
        for number in numbers {
            recovery.segment(number, cursor)?;
        }
        let end = recovery.settle_end(totals.map(|totals| totals.end));
        let last = recovery.segments.back().map_or(0, |last| last.number);
        let next_number = last.max(cursor.segment).saturating_add(1);
        let head = recovery.segments.front().map_or(first_of(next_number), |first| {
            let from = if first.number == cursor.segment {
                cursor.offset
            } else {
                0
            };
            Position {
                offset: from.max(segment::HEADER_BYTES),
                segment: first.number,
            }
        });
        let mut log = Self {
            folder: folder.to_owned(),
            folder_file,
            segment_bytes,
            lock,
            segments: recovery.segments,
            next_number,
            writer: None,
            unsynced: Vec::new(),
            is_dirty: false,
            reader: None,
            head,
            head_totals: end - recovery.unread.records - recovery.lost,
            end_totals: end,
            head_accepted: None,
            window: VecDeque::new(),
            window_counts: RecordCounts::default(),
            returned: BTreeSet::new(),
            unread: recovery.unread,
            in_flight: StoredCounts::default(),
            notices: Vec::new(),
            saved_cursor: None,
            #[cfg(test)]
            panics: std::sync::Arc::default(),
        };
        // The next process must not count the same losses. On a full disk, the cursor is saved when it has room.
        let _ = log.save_cursor();
        Ok((log, recovery.notices))
    }
}

impl<'a> Recovery<'a> {
    fn new(folder: &'a Path) -> Self {
        Self {
            folder,
            segments: VecDeque::new(),
            unread: StoredCounts::default(),
            next: None,
            counted: RecordCounts::default(),
            lost: RecordCounts::default(),
            last_scanned: 0,
            corrupt: Vec::new(),
            notices: Vec::new(),
        }
    }

    /// Returns the position of the cursor, or the start of the log if the position is invalid, and the totals of the
    /// cursor.
    fn cursor(&mut self, numbers: &[u64]) -> Result<(Position, Option<CursorTotals>), DiskQueueError> {
        let path = cursor::path(self.folder);
        let start = first_of(0);
        let (position, totals, reason) = match cursor::read(self.folder).map_err(cannot("read", &path))? {
            Ok(None) => (start, None, None),
            Ok(Some(cursor)) => match self.beyond_end(cursor.position, numbers)? {
                None => (cursor.position, cursor.totals, None),
                reason => (start, cursor.totals, reason),
            },
            Err(reason) => (start, None, Some(reason)),
        };
        self.next = totals.map(|totals| totals.start);
        self.counted = totals.map(|totals| totals.lost).unwrap_or_default();
        self.notices
            .extend(reason.map(|reason| Notice::BadCursor { path, reason }));
        Ok((position, totals))
    }

    /// Returns the reason why a cursor is not in the log, or `None` if it is. Without segments every cursor is at the
    /// end.
    fn beyond_end(&self, cursor: Position, numbers: &[u64]) -> Result<Option<String>, DiskQueueError> {
        let Some(&newest) = numbers.last() else {
            return Ok(None);
        };
        if cursor.segment > newest {
            return Ok(Some(format!(
                "the cursor is in segment {}, and the last segment is {newest}",
                cursor.segment
            )));
        }
        if !numbers.contains(&cursor.segment) {
            return Ok(None);
        }
        let path = segment::path(self.folder, cursor.segment);
        let length = fs::metadata(&path).map_err(cannot("read", &path))?.len();
        Ok((cursor.offset > length).then(|| {
            format!(
                "the cursor is at byte {} of segment {}, which has {length} bytes",
                cursor.offset, cursor.segment
            )
        }))
    }

    /// Scans one segment, and deletes it if it has no record left to read.
    fn segment(&mut self, number: u64, cursor: Position) -> Result<(), DiskQueueError> {
        let path = segment::path(self.folder, number);
        if number < cursor.segment {
            return fs::remove_file(&path).map_err(cannot("delete", &path));
        }
        let file = segment::read(self.folder, number).map_err(cannot("read", &path))?;
        let from = if number == cursor.segment {
            cursor.offset
        } else {
            0
        };
        let mut segment = Segment::new(number);
        segment.end = file.len() as u64;
        for part in Scan::new(&file, number, from) {
            match part {
                Part::Record(header) => {
                    self.record(number, header);
                    segment.unread += header.counts();
                }
                Part::Gap(gap) if gap.is_torn => {
                    segment.end = gap.bytes.start;
                    truncate(&path, segment.end).map_err(cannot("truncate the incomplete end of", &path))?;
                    self.corrupt.push(Corrupt::torn(&path, gap));
                }
                Part::Gap(gap) => {
                    segment.gaps.push(gap.bytes.clone());
                    self.corrupt
                        .push(Corrupt::copied(self.folder, number, gap, &file));
                }
            }
        }
        self.last_scanned = number;
        if segment.unread.bytes == 0 {
            return fs::remove_file(&path).map_err(cannot("delete", &path));
        }
        self.unread += segment.unread;
        self.segments.push_back(segment);
        Ok(())
    }

    /// Compares the number of a record with that of the next one.
    fn record(&mut self, segment: u64, header: Header) {
        let counts = header.counts().records;
        if let Some(before) = header.before() {
            let next = self.next.unwrap_or(before);
            self.settle(before - next, Some(segment));
            self.next = Some(next.max(before + counts));
        } else if let Some(next) = &mut self.next {
            *next += counts;
        }
    }

    /// Reports the records that are missing in front of a segment, or at the end of the log, and the corrupt parts there.
    fn settle(&mut self, missing: RecordCounts, in_front_of: Option<u64>) {
        let counted = missing.min(self.counted);
        self.counted -= counted;
        self.lost += missing;
        let lost = missing - counted;
        let corrupt = std::mem::take(&mut self.corrupt);
        if lost.total_items() == 0 {
            let notice = |part| Corrupt::notice(vec![part], lost, true);
            self.notices.extend(corrupt.into_iter().filter_map(notice));
        } else if !corrupt.is_empty() {
            self.notices.extend(Corrupt::notice(corrupt, lost, true));
        } else {
            let last = self.last_scanned;
            self.notices
                .push(if in_front_of.is_some_and(|number| number > last + 1) {
                    Notice::Missing {
                        path: segment::path(self.folder, last + 1),
                        lost,
                    }
                } else {
                    Notice::Shortened {
                        path: segment::path(self.folder, last),
                        lost,
                    }
                });
        }
    }

    /// Reports the end of the log, which a cursor knows. Without it, the corrupt bytes show what they held. Returns the
    /// totals of the queue.
    fn settle_end(&mut self, end: Option<RecordCounts>) -> RecordCounts {
        if let Some((next, end)) = self.next.zip(end) {
            self.settle(end - next, None);
            return next.max(end);
        }
        for corrupt in std::mem::take(&mut self.corrupt) {
            let estimate = corrupt.estimate();
            self.notices
                .extend(Corrupt::notice(vec![corrupt], estimate, false));
        }
        self.next.unwrap_or(self.unread.records)
    }
}

impl Corrupt {
    /// Returns a part that was truncated.
    fn torn(path: &Path, gap: Gap) -> Self {
        Self {
            path: path.to_owned(),
            gap,
            aside: None,
            is_known: false,
        }
    }

    /// Copies a part of a segment aside, if that was not done before.
    fn copied(folder: &Path, segment: u64, gap: Gap, file: &[u8]) -> Self {
        let position = Position {
            segment,
            offset: gap.bytes.start,
        };
        let is_known = segment::path_aside(folder, position).exists();
        let bytes = &file[gap.bytes.start as usize..gap.bytes.end as usize];
        Self {
            path: segment::path(folder, segment),
            gap,
            aside: (!is_known).then(|| set_aside(folder, position, bytes)).flatten(),
            is_known,
        }
    }

    /// Returns the contents of a part with unknown numbers: an incomplete record at the end was not acknowledged, and a
    /// known part was counted.
    fn estimate(&self) -> RecordCounts {
        if self.gap.is_torn || self.is_known {
            RecordCounts::default()
        } else {
            self.gap.estimate
        }
    }

    /// Returns the notice of adjacent parts and the records that were in them.
    fn notice(parts: Vec<Self>, lost: RecordCounts, is_exact: bool) -> Option<Notice> {
        let bytes = parts
            .iter()
            .map(|part| part.gap.bytes.end - part.gap.bytes.start)
            .sum();
        let is_torn = parts.iter().all(|part| part.gap.is_torn);
        let is_known = parts.iter().all(|part| part.is_known);
        let aside = parts.iter().find_map(|part| part.aside.clone());
        let path = parts.into_iter().next()?.path;
        if lost.total_items() == 0 && is_torn {
            return Some(Notice::TornTail { path, bytes });
        }
        (lost.total_items() > 0 || !is_known).then_some(Notice::Unreadable {
            path,
            bytes,
            lost,
            is_exact,
            aside,
        })
    }
}

fn truncate(path: &Path, length: u64) -> io::Result<()> {
    OpenOptions::new().write(true).open(path)?.set_len(length)
}

fn lock(folder: &Path) -> Result<File, DiskQueueError> {
    let path = folder.join(LOCK);
    let file = file::create(&path).map_err(cannot("create", &path))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(DiskQueueError::InUse {
            path: folder.to_owned(),
        }),
        Err(TryLockError::Error(source)) => Err(cannot("lock", &path)(source)),
    }
}

fn check_version(path: &Path) -> Result<(), DiskQueueError> {
    let mut header = Vec::new();
    file::open(path, segment::MAX_BYTES)
        .and_then(|file| file.take(segment::HEADER_BYTES).read_to_end(&mut header))
        .map_err(cannot("read", path))?;
    match FileHeader::parse(&header) {
        FileHeader::Version(version) => Err(DiskQueueError::Version {
            path: path.to_owned(),
            version,
            supported: segment::VERSION,
        }),
        // The records of a segment with a corrupt header have their own checksums.
        FileHeader::Sound | FileHeader::Corrupt => Ok(()),
    }
}

fn cannot(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> DiskQueueError {
    let path: PathBuf = path.to_owned();
    move |source| DiskQueueError::Io { action, path, source }
}
