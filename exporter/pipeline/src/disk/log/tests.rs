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

/// The size of a segment with three records.
const SEGMENT_BYTES: u64 = 1100;
/// The stored size of a record.
const RECORD_BYTES: usize = HEADER_BYTES + 300;

fn folder() -> TempDir {
    tempfile::tempdir().expect("a temporary folder can be made")
}

fn open(folder: &TempDir) -> (SegmentLog, Vec<Notice>) {
    SegmentLog::open(folder.path(), SEGMENT_BYTES).expect("the folder can be opened")
}

fn record(number: u8) -> Record {
    Record {
        signal: Signal::Metrics,
        items: 5,
        accepted: Duration::from_secs(u64::from(number)),
        bytes: vec![number; 300].into(),
    }
}

/// Returns the counts of a number of records.
fn counts(records: u64) -> RecordCounts {
    RecordCounts {
        records,
        items: [0, 5 * records, 0],
    }
}

fn lost_items(notices: &[Notice]) -> u64 {
    notices.iter().map(|notice| notice.lost().total_items()).sum()
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
            "{}: truncated the last 356 bytes, an incomplete record that was not acknowledged unless the machine failed",
            path(&folder, 1).display()
        )
    );
    assert_eq!(rest(&mut log), [0]);
    drop(log);
    assert_eq!(open(&folder).1, []);
}

/// Appends the start of a record to a segment, like a failed append that could not be truncated.
fn tear(folder: &TempDir, number: u64, torn: u8, length: usize) {
    let (torn, before) = (record(torn), counts(torn.into()));
    let mut file = fs::read(path(folder, number)).unwrap();
    let position = Position {
        segment: number,
        offset: file.len() as u64,
    };
    let mut bytes = torn.header(position, before).unwrap().to_vec();
    bytes.extend_from_slice(&torn.bytes);
    file.extend_from_slice(&bytes[..length]);
    fs::write(path(folder, number), file).unwrap();
}

#[test]
fn torn_record_that_was_appended_again_is_not_a_loss() {
    // The records 0 to 2 are in segment 1, and 3 to 5 in segment 2.
    for length in [12, 25, 356] {
        let folder = filled(0..6);
        let sound = fs::read(path(&folder, 1)).unwrap();
        tear(&folder, 1, 3, length);
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
    for (number, length) in [(1, 100), (2, 200), (3, RECORD_BYTES)] {
        tear(&folder, number, 3, length);
    }
    let (mut log, notices) = open(&folder);
    assert_eq!((notices.len(), lost_items(&notices)), (2, 0), "{notices:?}");
    assert_eq!(rest(&mut log), [0, 1, 2, 3]);
}

#[test]
fn torn_record_that_was_not_appended_again_is_a_loss() {
    for length in [11, 356] {
        let folder = filled(0..6);
        let mut file = fs::read(path(&folder, 1)).unwrap();
        file.truncate(file.len() - RECORD_BYTES + length);
        fs::write(path(&folder, 1), file).unwrap();
        let (mut log, notices) = open(&folder);
        let expected = Notice::Unreadable {
            path: path(&folder, 1),
            bytes: length as u64,
            lost: counts(1),
            is_exact: true,
            aside: None,
        };
        assert_eq!(notices, [expected]);
        assert_eq!(rest(&mut log), [0, 1, 3, 4, 5]);
        drop(log);
        assert_eq!(open(&folder).1, [], "it is counted once");
    }
}

#[test]
fn torn_record_before_empty_segments_is_not_a_loss() {
    let folder = filled(0..3);
    tear(&folder, 1, 3, 100);
    fs::write(path(&folder, 2), &segment::file_header()[..7]).unwrap();
    fs::write(path(&folder, 3), segment::file_header()).unwrap();
    let (mut log, notices) = open(&folder);
    assert!(
        matches!(notices.as_slice(), [Notice::TornTail { bytes: 100, .. }, ..]),
        "{notices:?}"
    );
    assert_eq!((lost_items(&notices), rest(&mut log)), (0, vec![0, 1, 2]));
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
        bytes: RECORD_BYTES as u64,
        lost: counts(1),
        is_exact: true,
        aside: Some(aside.clone()),
    };
    assert_eq!(notices, [expected]);
    assert_eq!(fs::read(aside).unwrap(), file[16..16 + RECORD_BYTES]);
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
    let lost = lost_items(&log.take_notices());
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
        lost: counts(3),
    };
    assert_eq!(log.take_notices(), [expected]);
    assert_eq!(log.contents().records, 6);
}

#[test]
fn deleted_folder_is_detected_and_recreated() {
    let folder = folder();
    let inner = folder.path().join("queue");
    let (mut log, _) = SegmentLog::open(&inner, SEGMENT_BYTES).unwrap();
    log.append(&record(1)).unwrap();
    log.append(&record(0)).unwrap();
    let old = log.next().unwrap().unwrap();
    assert!(!log.is_gone());
    fs::remove_dir_all(&inner).unwrap();
    assert!(log.is_gone());
    log.reopen().unwrap();
    let expected = Notice::FolderGone {
        path: inner,
        lost: counts(1),
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
    file[8] = 3;
    let crc = crc32fast::hash(&file[..12]).to_le_bytes();
    file[12..16].copy_from_slice(&crc);
    fs::write(path(&folder, 1), &file).unwrap();
    let refused = SegmentLog::open(folder.path(), SEGMENT_BYTES).unwrap_err();
    assert!(matches!(refused, DiskQueueError::Version { version: 3, .. }));
    assert!(
        refused
            .to_string()
            .contains("has version 3 of the format, and this program reads version 2"),
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
            "the cursor is at byte 5000 of segment 1, which has 1087 bytes",
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
    let refused = SegmentLog::open(folder.path(), SEGMENT_BYTES).unwrap_err();
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

/// Returns a segment of version 1.
fn old_segment(number: u64, records: &[Record]) -> Vec<u8> {
    let mut file = b"PTQUEUE\n\x01\0\0\0".to_vec();
    file.extend(crc32fast::hash(&file).to_le_bytes());
    for record in records {
        let parts = |crc: u32| {
            let mut parts = b"\xf5rec".to_vec();
            parts.extend((record.bytes.len() as u32).to_le_bytes());
            parts.extend(crc.to_le_bytes());
            parts.push(record.signal as u8);
            parts.extend(record.items.to_le_bytes());
            parts.extend((record.accepted.as_nanos() as u64).to_le_bytes());
            parts.extend(&record.bytes);
            parts
        };
        let covered = [number.to_le_bytes(), (file.len() as u64).to_le_bytes()].concat();
        let crc = crc32fast::hash(&[covered, parts(0)].concat());
        file.extend(parts(crc));
    }
    file
}

/// Returns a folder as version 1 left it: the records 0 to 5, the first of them finished.
fn old_folder() -> TempDir {
    let folder = folder();
    for number in [1_u8, 2] {
        let records = [0, 1, 2].map(|at| record(3 * (number - 1) + at));
        let file = old_segment(number.into(), &records);
        fs::write(path(&folder, number.into()), file).unwrap();
    }
    let line = "1 1 341";
    let cursor = format!("{line} {:08x}\n", crc32fast::hash(line.as_bytes()));
    fs::write(folder.path().join("cursor"), cursor).unwrap();
    folder
}

#[test]
fn folder_of_version_1_is_continued_and_its_later_losses_are_counted() {
    let folder = old_folder();
    let (mut log, notices) = open(&folder);
    assert_eq!(notices, []);
    log.append(&record(6)).unwrap();
    drop(log);
    assert_eq!(rest(&mut open(&folder).0), [1, 2, 3, 4, 5, 6]);
    fs::remove_file(path(&folder, 2)).unwrap();
    let (mut log, notices) = open(&folder);
    let expected = Notice::Missing {
        path: path(&folder, 2),
        lost: counts(3),
    };
    assert_eq!(notices, [expected]);
    assert_eq!(rest(&mut log), [1, 2, 6]);
}

#[test]
fn loss_in_a_folder_of_version_1_is_estimated_once() {
    let folder = old_folder();
    let mut file = fs::read(path(&folder, 2)).unwrap();
    file[16 + 100] ^= 1;
    fs::write(path(&folder, 2), file).unwrap();
    let (mut log, notices) = open(&folder);
    assert_eq!((notices.len(), lost_items(&notices)), (1, 5));
    assert!(
        notices[0].to_string().contains("lost at least 5 items"),
        "{}",
        notices[0]
    );
    assert_eq!(rest(&mut log), [1, 2, 4, 5]);
    drop(log);
    assert_eq!(open(&folder).1, []);
}

#[test]
fn deleted_segments_are_closed_and_the_disk_has_their_room() {
    let folder = filled(0..3);
    let (mut log, _) = open(&folder);
    // Sealed and not synced, read, and being written.
    for number in 3..10 {
        log.append(&record(number)).unwrap();
    }
    let mut positions = Vec::new();
    while let Some(stored) = log.next().unwrap() {
        positions.push(stored.position);
    }
    for position in positions {
        log.finish(position);
        assert_eq!(open_and_deleted(folder.path()), Vec::<PathBuf>::new());
    }
    log.save_cursor().unwrap();
    assert_eq!(segment::list(folder.path()).unwrap(), []);
    assert_eq!(open_and_deleted(folder.path()), Vec::<PathBuf>::new());
    log.append(&record(10)).unwrap();
    log.sync().unwrap();
    assert_eq!(rest(&mut log), [10]);
}

/// Returns the deleted files of a folder that this process has open.
fn open_and_deleted(folder: &Path) -> Vec<PathBuf> {
    let descriptors = fs::read_dir("/proc/self/fd").unwrap().flatten();
    let mut files: Vec<_> = descriptors
        .filter_map(|fd| fs::read_link(fd.path()).ok())
        .collect();
    files.retain(|file| file.starts_with(folder) && file.to_string_lossy().ends_with(" (deleted)"));
    files
}

#[test]
fn strange_files_are_rejected_before_they_are_opened() {
    type Make = fn(&Path);
    let fifo = |path: &Path| {
        // A child process would hold the locks of the other tests between its fork and its exec.
        let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
        rustix::fs::mknodat(rustix::fs::CWD, path, rustix::fs::FileType::Fifo, mode, 0).unwrap();
    };
    let sparse = |path: &Path| File::create(path).unwrap().set_len(3 << 30).unwrap();
    let link = |path: &Path| std::os::unix::fs::symlink("/dev/zero", path).unwrap();
    let folder_there = |path: &Path| fs::create_dir(path).unwrap();
    let cases: [(Make, &str); 4] = [
        (fifo, "it is a FIFO; move it out of the folder of the queue"),
        (
            link,
            "it is a symbolic link; move it out of the folder of the queue",
        ),
        (
            sparse,
            "it has 3221225472 bytes, more than the 134217728 of a file of the queue; move it out",
        ),
        (folder_there, "it is a folder; move it out"),
    ];
    for (make, words) in cases {
        for name in ["00000000000000000002.segment", "cursor", "lock"] {
            let folder = filled(0..3);
            let file = folder.path().join(name);
            let _ = fs::remove_file(&file);
            make(&file);
            let refused = SegmentLog::open(folder.path(), SEGMENT_BYTES);
            if name == "lock" && words.contains("bytes") {
                assert!(refused.is_ok(), "a lock is never read");
                continue;
            }
            let refused = refused.unwrap_err().to_string();
            assert!(refused.contains(name), "{refused}");
            let words = words.replace("134217728", if name == "cursor" { "4096" } else { "134217728" });
            assert!(refused.contains(&words), "{refused}");
        }
    }
}

#[test]
fn limit_of_open_files_is_not_called_a_fault_of_the_disk() {
    let error = io::Error::from_raw_os_error(libc::EMFILE);
    assert_eq!(
        super::super::error::remedy(&error),
        "raise the limit of open files (ulimit -n, LimitNOFILE of systemd)"
    );
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
