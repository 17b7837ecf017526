//! Handles damage of an open log: skips the parts that cannot be read, reports them in a notice, and copies the corrupt
//! ones aside.

use std::{
    fs,
    io::{self, Write},
    path::{Path, PathBuf},
};

use super::SegmentLog;
use crate::disk::{
    Notice, Position,
    counts::StoredCounts,
    file,
    segment::{self, Part, Scan},
};

/// The limit in bytes on the `*.corrupt` files of a folder; corrupt parts over the limit are not copied.
const MAX_ASIDE: u64 = 64 << 20;

impl SegmentLog {
    /// Skips the parts at the head that became corrupt since the log was opened.
    pub(super) fn skip_corrupt(&mut self) -> io::Result<()> {
        let Position { segment, offset } = self.head;
        self.reader = None;
        let Some(end) = self.segment(segment).map(|segment| segment.end) else {
            return Ok(());
        };
        let mut file = segment::read(&self.folder, segment)?;
        file.resize(usize::try_from(end).unwrap_or(usize::MAX), 0);
        let (mut readable, mut gaps) = (StoredCounts::default(), Vec::new());
        for part in Scan::new(&file, segment, offset) {
            match part {
                Part::Record(header) => readable += header.counts(),
                Part::Gap(gap) => gaps.push(gap.bytes),
            }
        }
        let Some(of_log) = self.segment_mut(segment) else {
            return Ok(());
        };
        let before = std::mem::replace(&mut of_log.unread, readable);
        let known = std::mem::replace(&mut of_log.gaps, gaps.clone());
        self.unread -= before;
        self.unread += readable;
        self.head_accepted = None;
        let mut lost = before.records - readable.records;
        for gap in gaps.into_iter().filter(|gap| !known.contains(gap)) {
            let bytes = &file[gap.start as usize..gap.end as usize];
            let position = Position {
                segment,
                offset: gap.start,
            };
            let notice = Notice::Unreadable {
                path: segment::path(&self.folder, segment),
                bytes: bytes.len() as u64,
                lost: std::mem::take(&mut lost),
                is_exact: true,
                aside: set_aside(&self.folder, position, bytes),
            };
            self.notices.push(notice);
        }
        Ok(())
    }

    /// Skips a segment that was deleted.
    pub(super) fn skip_missing(&mut self) {
        let number = self.head.segment;
        let at = self.segments.partition_point(|segment| segment.number < number);
        let Some(segment) = self.segments.remove(at) else {
            return;
        };
        if at == self.segments.len() {
            // The file of the segment has no name any more, so nothing may be appended to it.
            self.writer = None;
        }
        self.close(number);
        self.unread -= segment.unread;
        self.head_accepted = None;
        self.head.offset = u64::MAX;
        self.notices.push(Notice::Missing {
            path: segment::path(&self.folder, number),
            lost: segment.unread.records,
        });
    }

    /// Drops a record that was returned and cannot be read again.
    pub(super) fn lose_returned(&mut self, position: Position) {
        self.reader = None;
        if let Some(counts) = self.entry(position).map(|entry| entry.counts) {
            self.notices.push(Notice::Unreadable {
                path: segment::path(&self.folder, position.segment),
                bytes: counts.bytes,
                lost: counts.records,
                is_exact: true,
                aside: None,
            });
        }
        self.finish(position);
    }
}

/// Copies bytes that cannot be read to a separate file. Returns `None` if that fails or the limit is reached.
pub(super) fn set_aside(folder: &Path, position: Position, bytes: &[u8]) -> Option<PathBuf> {
    let is_aside = |path: &Path| path.extension().is_some_and(|extension| extension == "corrupt");
    let entries = fs::read_dir(folder).ok()?.filter_map(Result::ok);
    let lengths = entries
        .filter(|entry| is_aside(&entry.path()))
        .filter_map(|entry| entry.metadata().ok().map(|metadata| metadata.len()));
    if lengths.sum::<u64>() + bytes.len() as u64 > MAX_ASIDE {
        return None;
    }
    let path = segment::path_aside(folder, position);
    let written = file::create(&path).and_then(|mut file| file.write_all(bytes));
    written.ok().map(|()| path)
}
