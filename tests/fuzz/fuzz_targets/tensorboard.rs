//! Any bytes as an event file with corrected checksums, so that the content of the records is parsed.

#![no_main]

mod reading;

use libfuzzer_sys::fuzz_target;
use pulsetrain_formats::format_by_name;

/// The length and its checksum before the record; the checksum after the record.
const HEAD: usize = 12;
const TAIL: usize = 4;

fuzz_target!(|bytes: &[u8]| {
    let format = format_by_name("tensorboard").unwrap();
    let mut sound = bytes.to_vec();
    let mut at = 0;
    while let Some(record) = record_at(&sound, at) {
        let head = masked(&sound[at..at + 8]);
        sound[at + 8..at + HEAD].copy_from_slice(&head);
        let tail = masked(&sound[at + HEAD..at + HEAD + record]);
        at += HEAD + record;
        sound[at..at + TAIL].copy_from_slice(&tail);
        at += TAIL;
    }
    reading::read_alike(format, &sound);
});

/// Returns the length of the record at an offset, if the record is complete.
fn record_at(bytes: &[u8], at: usize) -> Option<usize> {
    let length = u64::from_le_bytes(bytes.get(at..at + 8)?.try_into().unwrap());
    let length = usize::try_from(length).ok()?;
    (length <= bytes.len().checked_sub(at + HEAD + TAIL)?).then_some(length)
}

/// Returns the masked checksum of TFRecord.
fn masked(bytes: &[u8]) -> [u8; 4] {
    crc32c::crc32c(bytes)
        .rotate_right(15)
        .wrapping_add(0xa282_ead8)
        .to_le_bytes()
}
