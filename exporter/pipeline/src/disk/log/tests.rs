//! Tests of each kind of damage separately: the message, and that no readable record is lost. Random combinations are in
//! `tests/pipeline/disk_log.rs`.

use pulsetrain_otlp::Signal;
use tempfile::TempDir;

use super::{super::DiskQueueError, *};

impl SegmentLog {
    /// Simulates a defect. Bypasses the panic hook, which would print every attempt.
    pub(super) fn panic_on_demand(&self) {
        if self.panics.load(std::sync::atomic::Ordering::Relaxed) {
            std::panic::resume_unwind(Box::new("as the test demands"));
        }
    }
}

fn folder() -> TempDir {
    tempfile::tempdir().expect("a temporary folder can be made")
}

fn open(folder: &TempDir) -> (SegmentLog, Vec<Notice>) {
    SegmentLog::open(folder.path(), 1000).expect("the folder can be opened")
}

fn record(number: u8) -> Record {
    Record {
        signal: Signal::Metrics,
        items: 5,
        accepted: Duration::from_secs(u64::from(number)),
        bytes: vec![number; 300].into(),
    }
}

/// Returns a folder with these records, which no process has open.
fn filled(numbers: std::ops::Range<u8>) -> TempDir {
    let folder = folder();
    let (mut log, _) = open(&folder);
    for number in numbers {
        log.append(&record(number)).unwrap();
    }
    folder
}

fn rest(log: &mut SegmentLog) -> Vec<u8> {
    let mut numbers = Vec::new();
    while let Some(stored) = log.next().unwrap() {
        assert_eq!(stored.record, record(stored.record.bytes[0]));
        numbers.push(stored.record.bytes[0]);
    }
    numbers
}

fn path(folder: &TempDir, number: u64) -> PathBuf {
    segment::path(folder.path(), number)
}

#[test]
fn unfinished_records_survive_a_restart_in_order_and_finished_ones_do_not() {
    let folder = filled(0..5);
    let (mut log, notices) = open(&folder);
    assert_eq!(notices, []);
    assert_eq!((log.contents().records, log.contents().items), (5, 25));
    assert_eq!(log.oldest(), Some(Duration::ZERO));
    let first = log.next().unwrap().unwrap();
    let second = log.next().unwrap().unwrap();
    log.finish(second.position);
    assert_eq!(log.contents().records, 4);
    log.finish(first.position);
    assert_eq!(log.oldest(), Some(Duration::from_secs(2)));
    log.save_cursor().unwrap();
    drop(log);
    assert_eq!(rest(&mut open(&folder).0), [2, 3, 4]);
}

#[test]
fn torn_tail_is_cut_and_reported_once() {
    let folder = filled(0..2);
    let file = fs::read(path(&folder, 1)).unwrap();
    fs::write(path(&folder, 1), &file[..file.len() - 1]).unwrap();
    let (mut log, notices) = open(&folder);
    assert_eq!(notices.len(), 1);
    assert_eq!(
        notices[0].to_string(),
        format!(
            "{}: truncated the last 324 bytes, an incomplete record that was never acknowledged",
            path(&folder, 1).display()
        )
    );
    assert_eq!(rest(&mut log), [0]);
    drop(log);
    assert_eq!(open(&folder).1, []);
}

/// Appends the start of a record to a segment, like a failed append that could not be truncated.
fn tear(folder: &TempDir, number: u64, torn: &Record, length: usize) {
    let mut file = fs::read(path(folder, number)).unwrap();
    let position = Position {
        segment: number,
        offset: file.len() as u64,
    };
    let mut bytes = torn.header(position).unwrap().to_vec();
    bytes.extend_from_slice(&torn.bytes);
    file.extend_from_slice(&bytes[..length]);
    fs::write(path(folder, number), file).unwrap();
}

#[test]
fn torn_record_that_was_appended_again_is_not_a_loss() {
    // The records 0 to 2 are in segment 1, and 3 to 5 in segment 2.
    for length in [12, 25, 324] {
        let folder = filled(0..6);
        let sound = fs::read(path(&folder, 1)).unwrap();
        tear(&folder, 1, &record(3), length);
        let (mut log, notices) = open(&folder);
        let expected = Notice::TornTail {
            path: path(&folder, 1),
            bytes: length as u64,
        };
        assert_eq!(notices, [expected]);
        assert_eq!(rest(&mut log), [0, 1, 2, 3, 4, 5]);
        assert_eq!(fs::read(path(&folder, 1)).unwrap(), sound);
    }
}

#[test]
fn record_with_two_failed_appends_is_not_a_loss() {
    let folder = filled(0..3);
    for number in [2, 3] {
        fs::write(path(&folder, number), segment::file_header()).unwrap();
    }
    for (number, length) in [(1, 100), (2, 200), (3, 325)] {
        tear(&folder, number, &record(3), length);
    }
    let (mut log, notices) = open(&folder);
    let lost: u64 = notices.iter().map(Notice::lost_items).sum();
    assert_eq!((notices.len(), lost), (2, 0), "{notices:?}");
    assert_eq!(rest(&mut log), [0, 1, 2, 3]);
}

#[test]
fn torn_record_before_a_different_record_is_a_loss() {
    for (torn, length) in [(record(9), 324), (record(3), 11)] {
        let folder = filled(0..6);
        tear(&folder, 1, &torn, length);
        let (mut log, notices) = open(&folder);
        assert!(
            matches!(notices.as_slice(), [Notice::Unreadable { items: 1, .. }]),
            "{notices:?}"
        );
        assert_eq!(rest(&mut log), [0, 1, 2, 3, 4, 5]);
    }
}

#[test]
fn torn_record_before_empty_segments_is_not_a_loss() {
    let folder = filled(0..3);
    tear(&folder, 1, &record(9), 100);
    fs::write(path(&folder, 2), &segment::file_header()[..7]).unwrap();
    fs::write(path(&folder, 3), segment::file_header()).unwrap();
    let (mut log, notices) = open(&folder);
    assert!(
        matches!(notices.as_slice(), [Notice::TornTail { bytes: 100, .. }, ..]),
        "{notices:?}"
    );
    let lost: u64 = notices.iter().map(Notice::lost_items).sum();
    assert_eq!((lost, rest(&mut log)), (0, vec![0, 1, 2]));
}

#[test]
fn corrupt_record_is_copied_aside_and_the_rest_is_read() {
    let folder = filled(0..6);
    let mut file = fs::read(path(&folder, 1)).unwrap();
    file[16 + 100] ^= 1;
    fs::write(path(&folder, 1), &file).unwrap();
    let (mut log, notices) = open(&folder);
    let aside = folder.path().join("00000000000000000001.at-16.corrupt");
    let expected = Notice::Unreadable {
        path: path(&folder, 1),
        bytes: 325,
        items: 5,
        aside: Some(aside.clone()),
    };
    assert_eq!(notices, [expected]);
    assert_eq!(fs::read(aside).unwrap(), file[16..341]);
    assert_eq!(rest(&mut log), [1, 2, 3, 4, 5]);
    drop(log);
    let (mut log, notices) = open(&folder);
    assert_eq!(notices, [], "reported once");
    assert_eq!(rest(&mut log), [1, 2, 3, 4, 5]);
}

#[test]
fn record_that_becomes_corrupt_while_the_log_is_open_is_counted() {
    let folder = filled(0..6);
    let (mut log, _) = open(&folder);
    let mut file = fs::read(path(&folder, 2)).unwrap();
    file[16 + 30] ^= 1;
    fs::write(path(&folder, 2), &file).unwrap();
    assert_eq!(rest(&mut log), [0, 1, 2, 4, 5]);
    let lost: u64 = log.take_notices().iter().map(Notice::lost_items).sum();
    assert_eq!((lost, log.contents().items), (5, 25));
}

#[test]
fn deleted_segment_is_counted_and_the_rest_is_read() {
    let folder = filled(0..9);
    let (mut log, _) = open(&folder);
    fs::remove_file(path(&folder, 2)).unwrap();
    assert_eq!(rest(&mut log), [0, 1, 2, 6, 7, 8]);
    let expected = Notice::Missing {
        path: path(&folder, 2),
        items: 15,
    };
    assert_eq!(log.take_notices(), [expected]);
    assert_eq!(log.contents().records, 6);
}

#[test]
fn deleted_folder_is_detected_and_recreated() {
    let folder = folder();
    let inner = folder.path().join("queue");
    let (mut log, _) = SegmentLog::open(&inner, 1000).unwrap();
    log.append(&record(1)).unwrap();
    log.append(&record(0)).unwrap();
    let old = log.next().unwrap().unwrap();
    assert!(!log.is_gone());
    fs::remove_dir_all(&inner).unwrap();
    assert!(log.is_gone());
    log.reopen().unwrap();
    let expected = Notice::FolderGone {
        path: inner,
        items: 5,
    };
    assert_eq!(log.take_notices(), [expected]);
    log.append(&record(2)).unwrap();
    let new = log.next().unwrap().unwrap();
    assert!(!log.give_back(old.position));
    log.finish(old.position);
    assert_eq!(log.contents().records, 1, "the old record is another one");
    log.finish(new.position);
    assert_eq!(log.contents().records, 0);
}

#[test]
fn segment_of_another_version_is_rejected_and_left_unchanged() {
    let folder = filled(0..2);
    let mut file = fs::read(path(&folder, 1)).unwrap();
    file[8] = 2;
    let crc = crc32fast::hash(&file[..12]).to_le_bytes();
    file[12..16].copy_from_slice(&crc);
    fs::write(path(&folder, 1), &file).unwrap();
    let refused = SegmentLog::open(folder.path(), 1000).unwrap_err();
    assert!(matches!(refused, DiskQueueError::Version { version: 2, .. }));
    assert!(
        refused
            .to_string()
            .contains("has version 2 of the format, and this program reads version 1"),
        "{refused}"
    );
    assert_eq!(fs::read(path(&folder, 1)).unwrap(), file);
}

#[test]
fn records_after_a_corrupt_file_header_are_read() {
    let folder = filled(0..2);
    let mut file = fs::read(path(&folder, 1)).unwrap();
    file[..12].fill(0xff);
    fs::write(path(&folder, 1), &file).unwrap();
    assert_eq!(rest(&mut open(&folder).0), [0, 1]);
}

#[test]
fn invalid_cursor_is_reported_and_every_record_is_read_again() {
    let beyond = |segment: u64, offset: u64| {
        let line = format!("1 {segment} {offset}");
        format!("{line} {:08x}\n", crc32fast::hash(line.as_bytes()))
    };
    let cases = [
        (
            beyond(7, 16),
            "the cursor is in segment 7, and the last segment is 2",
        ),
        (
            beyond(1, 5000),
            "the cursor is at byte 5000 of segment 1, which has 991 bytes",
        ),
        (String::new(), "the 0 bytes of the file are not a cursor"),
    ];
    for (cursor, words) in cases {
        let folder = filled(0..5);
        fs::write(folder.path().join("cursor"), cursor).unwrap();
        let (mut log, notices) = open(&folder);
        assert_eq!(notices.len(), 1, "{notices:?}");
        assert!(notices[0].to_string().contains(words), "{}", notices[0]);
        assert_eq!(rest(&mut log), [0, 1, 2, 3, 4]);
        drop(log);
        assert_eq!(
            rest(&mut open(&folder).0),
            [0, 1, 2, 3, 4],
            "the cursor does harm only once"
        );
    }
}

#[test]
fn second_process_on_a_folder_is_refused() {
    let folder = filled(0..1);
    let (_log, _) = open(&folder);
    let refused = SegmentLog::open(folder.path(), 1000).unwrap_err();
    assert!(
        refused.to_string().contains("in use by another process"),
        "{refused}"
    );
}

#[test]
fn file_at_the_path_of_the_folder_is_rejected_with_advice() {
    let folder = folder();
    let file = folder.path().join("queue");
    fs::write(&file, "").unwrap();
    let refused = SegmentLog::open(&file, 1000).unwrap_err().to_string();
    assert!(refused.contains("move it away"), "{refused}");
}

/// `/dev/full` in the place of a segment answers each write with `ENOSPC`.
#[cfg(target_os = "linux")]
#[test]
fn full_disk_fails_the_append_and_leaves_the_log_unchanged() {
    let folder = folder();
    let (mut log, _) = open(&folder);
    log.append(&record(1)).unwrap();
    let before = log.contents();
    log.writer = Some(fs::OpenOptions::new().append(true).open("/dev/full").unwrap());
    let error = log.append(&record(2)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::StorageFull);
    assert_eq!(log.contents(), before);
    log.append(&record(3)).unwrap();
    assert_eq!(rest(&mut log), [1, 3]);
}

#[test]
fn record_longer_than_a_segment_gets_its_own_segment() {
    let folder = folder();
    let (mut log, _) = open(&folder);
    let long = Record {
        bytes: vec![9; 5000].into(),
        ..record(9)
    };
    log.append(&record(1)).unwrap();
    log.append(&long).unwrap();
    log.append(&record(2)).unwrap();
    assert_eq!(segment::list(folder.path()).unwrap(), [1, 2, 3]);
    assert_eq!(log.next().unwrap().unwrap().record, record(1));
    assert_eq!(log.next().unwrap().unwrap().record, long);
    assert_eq!(log.next().unwrap().unwrap().record, record(2));
}
