//! Opens the folder of a queue, and recovers it after a shutdown or a crash of its last process.

use std::{
    collections::{BTreeSet, VecDeque},
    fs::{self, File, OpenOptions, TryLockError},
    io::{self, Read},
    path::{Path, PathBuf},
};

use super::{
    super::{
        DiskQueueError, Notice, Position, cursor,
        segment::{self, FileHeader, Gap, RecordCounts, Scan, Segment},
    },
    SegmentLog,
    damage::set_aside,
    first_of,
};
use crate::private;

const LOCK: &str = "lock";

/// The state of a recovery: the segments that were scanned so far.
struct Recovery<'a> {
    folder: &'a Path,
    segments: VecDeque<Segment>,
    unread: RecordCounts,
    notices: Vec<Notice>,
}

impl SegmentLog {
    /// Opens the log in `folder`, which is created if it is missing, and starts a new segment after about
    /// `segment_bytes`. The notices report the parts that could not be read.
    ///
    /// # Errors
    /// Returns an error if the folder cannot be used, another process uses it, or another version of this program wrote
    /// it.
    pub fn open(folder: &Path, segment_bytes: u64) -> Result<(Self, Vec<Notice>), DiskQueueError> {
        private::create_own_folder(folder).map_err(cannot("create", folder))?;
        let lock = lock(folder)?;
        let numbers = segment::list(folder).map_err(cannot("list", folder))?;
        for &number in &numbers {
            check_version(&segment::path(folder, number))?;
        }
        let mut recovery = Recovery {
            folder,
            segments: VecDeque::new(),
            unread: RecordCounts::default(),
            notices: Vec::new(),
        };
        let cursor = recovery.cursor(&numbers)?;
        let newest = numbers.last().copied().unwrap_or_default();
        for (at, &number) in numbers.iter().enumerate() {
            recovery.segment(number, cursor, &numbers[at + 1..])?;
        }
        let next_number = newest.max(cursor.segment).saturating_add(1);
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
        let log = Self {
            folder: folder.to_owned(),
            segment_bytes,
            lock,
            segments: recovery.segments,
            next_number,
            writer: None,
            unsynced: Vec::new(),
            is_dirty: false,
            reader: None,
            head,
            head_accepted: None,
            window: VecDeque::new(),
            returned: BTreeSet::new(),
            unread: recovery.unread,
            in_flight: RecordCounts::default(),
            notices: Vec::new(),
            saved_cursor: None,
            #[cfg(test)]
            panics: std::sync::Arc::default(),
        };
        Ok((log, recovery.notices))
    }
}

impl Recovery<'_> {
    /// Returns the cursor, or the start of the log if the cursor file is invalid.
    fn cursor(&mut self, numbers: &[u64]) -> Result<Position, DiskQueueError> {
        let path = cursor::path(self.folder);
        let start = first_of(0);
        let reason = match cursor::read(self.folder).map_err(cannot("read", &path))? {
            Ok(None) => return Ok(start),
            Ok(Some(cursor)) => match self.beyond_end(cursor, numbers)? {
                None => return Ok(cursor),
                Some(reason) => reason,
            },
            Err(reason) => reason,
        };
        cursor::remove(self.folder).map_err(cannot("remove", &path))?;
        self.notices.push(Notice::BadCursor { path, reason });
        Ok(start)
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

    /// Scans one segment, and deletes it if it has no record left to read. `later` are the numbers of the segments after
    /// it.
    fn segment(&mut self, number: u64, cursor: Position, later: &[u64]) -> Result<(), DiskQueueError> {
        let path = segment::path(self.folder, number);
        if number < cursor.segment {
            return fs::remove_file(&path).map_err(cannot("delete", &path));
        }
        let file = fs::read(&path).map_err(cannot("read", &path))?;
        let from = if number == cursor.segment {
            cursor.offset
        } else {
            0
        };
        let mut scan = Scan::new(&file, number, from);
        let mut end = file.len() as u64;
        let torn = torn_tail(&file, &scan).map(|gap| gap.bytes.clone());
        if let Some(torn) = torn
            && self.is_unacknowledged(
                Position {
                    segment: number,
                    offset: torn.start,
                },
                &file[torn.start as usize..],
                later,
            )?
        {
            scan.gaps.pop();
            end = torn.start;
            truncate(&path, end).map_err(cannot("truncate the incomplete end of", &path))?;
            self.notices.push(Notice::TornTail {
                path: path.clone(),
                bytes: torn.end - torn.start,
            });
        }
        for gap in &scan.gaps {
            self.report(&path, number, gap, &file);
        }
        if scan.readable.records == 0 {
            return fs::remove_file(&path).map_err(cannot("delete", &path));
        }
        self.unread += scan.readable;
        self.segments.push_back(Segment {
            number,
            end,
            gaps: scan.gaps.into_iter().map(|gap| gap.bytes).collect(),
            unread: scan.readable,
        });
        Ok(())
    }

    /// Returns whether `torn`, the incomplete record at the end of a segment, was never acknowledged.
    ///
    /// The last record of the log was being written when the process ended. In front of other records, `torn` is the
    /// remainder of a failed append that could not be truncated: the record was appended again, and is the first one of
    /// the next non-empty segment. If it is not, the machine failed before an acknowledged record was on the disk.
    fn is_unacknowledged(
        &self,
        position: Position,
        torn: &[u8],
        later: &[u64],
    ) -> Result<bool, DiskQueueError> {
        for &number in later {
            let path = segment::path(self.folder, number);
            let file = fs::read(&path).map_err(cannot("read", &path))?;
            if Scan::new(&file, number, 0).readable.records > 0 {
                return Ok(segment::first_record(&file, number)
                    .is_some_and(|record| record.begins_with(position, torn)));
            }
        }
        Ok(true)
    }

    /// Copies a part that cannot be read aside, and reports it once, even if the segment is opened again.
    fn report(&mut self, path: &Path, number: u64, gap: &Gap, file: &[u8]) {
        let position = Position {
            segment: number,
            offset: gap.bytes.start,
        };
        if segment::path_aside(self.folder, position).exists() {
            return;
        }
        let bytes = &file[gap.bytes.start as usize..gap.bytes.end as usize];
        self.notices.push(Notice::Unreadable {
            path: path.to_owned(),
            bytes: bytes.len() as u64,
            items: gap.items,
            aside: set_aside(self.folder, position, bytes),
        });
    }
}

/// Returns the incomplete record at the end of a segment.
fn torn_tail<'a>(file: &[u8], scan: &'a Scan) -> Option<&'a Gap> {
    scan.gaps
        .last()
        .filter(|last| last.bytes.end == file.len() as u64 && !segment::is_complete(file, last.bytes.start))
}

fn truncate(path: &Path, length: u64) -> io::Result<()> {
    OpenOptions::new().write(true).open(path)?.set_len(length)
}

fn lock(folder: &Path) -> Result<File, DiskQueueError> {
    let path = folder.join(LOCK);
    let file = private::create_file(&path).map_err(cannot("create", &path))?;
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
    File::open(path)
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
