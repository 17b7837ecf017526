//! Any bytes as the chunks of a wandb file with corrected checksums, so that the content of the records is parsed.

#![no_main]

mod reading;

use libfuzzer_sys::fuzz_target;
use pulsetrain_formats::format_by_name;

/// The file's header, the length of a block, and a chunk's checksum, length and kind.
const MAGIC: &[u8] = b":W&B\xe1\xbe\0";
const BLOCK: usize = 32 << 10;
const HEAD: usize = 7;

fuzz_target!(|bytes: &[u8]| {
    let format = format_by_name("wandb").unwrap();
    let mut sound = bytes.to_vec();
    let header = sound.len().min(MAGIC.len());
    sound[..header].copy_from_slice(&MAGIC[..header]);
    let mut at = MAGIC.len();
    while at + HEAD <= sound.len() {
        let left = BLOCK - at % BLOCK;
        let length = usize::from(u16::from_le_bytes([sound[at + 4], sound[at + 5]]));
        let end = at + HEAD + length;
        if left < HEAD || end > sound.len() {
            at += left.min(HEAD);
            continue;
        }
        let checksum = crc32fast::hash(&sound[at + 6..end]).to_le_bytes();
        sound[at..at + 4].copy_from_slice(&checksum);
        at = end;
    }
    reading::read_alike(format, &sound);
});
