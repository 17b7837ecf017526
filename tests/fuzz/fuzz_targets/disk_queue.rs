//! Any bytes as the segments and the cursor of a disk queue: a folder that can be opened is read to its end, accepts a new
//! record, and is empty after all records are finished.

#![no_main]

use std::{fs, time::Duration};

use libfuzzer_sys::fuzz_target;
use pulsetrain_pipeline::disk::{Position, Record, SegmentLog};

const SEGMENT_BYTES: u64 = 4096;

fuzz_target!(|bytes: &[u8]| {
    let folder = tempfile::tempdir().unwrap();
    let (cursor, segments) = bytes.split_at(bytes.len().min(4));
    // Valid segments, with the input written into one of them: the fuzzer cannot find valid checksums by itself.
    let (mut log, _) = SegmentLog::open(folder.path(), SEGMENT_BYTES).unwrap();
    for (number, payload) in segments.chunks(61).enumerate() {
        log.append(&record(number, payload)).unwrap();
    }
    for _ in 0..cursor.first().map_or(0, |count| count % 16) {
        if let Some(stored) = log.next().unwrap() {
            log.finish(stored.position);
        }
    }
    log.save_cursor().unwrap();
    drop(log);
    if let [_, file, start, is_over, ..] = cursor {
        let name = match file % 4 {
            0 => "cursor".to_owned(),
            number => format!("{number:020}.segment"),
        };
        let path = folder.path().join(name);
        let mut contents = fs::read(&path).unwrap_or_default();
        let start = (usize::from(*start) * 16).min(contents.len());
        let end = (start + segments.len()).min(contents.len());
        match is_over % 3 {
            0 => contents.truncate(start),
            1 => contents[start..end].copy_from_slice(&segments[..end - start]),
            _ => contents.splice(start..start, segments.iter().copied()).for_each(drop),
        }
        fs::write(path, contents).unwrap();
    }
    let Ok((mut log, _)) = SegmentLog::open(folder.path(), SEGMENT_BYTES) else {
        return;
    };
    let before = log.contents();
    log.append(&record(0, b"new")).unwrap();
    let mut positions: Vec<Position> = Vec::new();
    let mut items = 0;
    while let Some(stored) = log.next().unwrap() {
        assert!(positions.last().is_none_or(|last| *last < stored.position));
        positions.push(stored.position);
        items += u64::from(stored.record.items);
    }
    assert_eq!(positions.len() as u64, before.records + 1);
    assert_eq!(items, before.items + 1);
    positions.iter().rev().for_each(|position| log.finish(*position));
    log.save_cursor().unwrap();
    assert_eq!(log.contents().file_bytes, 0);
});

fn record(number: usize, payload: &[u8]) -> Record {
    Record {
        signal: pulsetrain_otlp::Signal::ALL[number % 3],
        items: 1,
        accepted: Duration::from_nanos(number as u64),
        bytes: payload.to_vec().into(),
    }
}
