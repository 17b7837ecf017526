//! Mutated files of W&B, TensorBoard and Tunix: no panic, valid OTLP, and the same items in pieces of any size.
//!
//! `MUTATED_FILES=100000 cargo test -p pulsetrain-formats --test formats -- mutated` is a longer run, and `MUTATED_SEED`
//! selects another one. The fuzz targets of `tests/fuzz` search further; this test runs with the others.

use std::{
    env,
    panic::{AssertUnwindSafe, catch_unwind},
};

use fastrand::Rng;
use pulsetrain_formats::format_by_name;
use pulsetrain_otlp::limits::{Limits, check};

use crate::imported::{all_samples, json, read_in_chunks, sample};

/// The default number of files that are read; `MUTATED_FILES` sets another number.
const FILES: u64 = 10_000;
/// The bytes of a sample that are mutated: enough for every kind of record, and few enough for thousands of files.
const MAX_BYTES: usize = 6 << 10;

/// The formats of Tunix's traces. Each reads the traces of both.
const TRACES: [&str; 2] = ["tunix-trace", "tunix-trace-v2"];

/// Returns the formats that read a sample that this test mutates.
fn formats_of(name: &str) -> &'static [&'static str] {
    match name {
        _ if name.ends_with(".wandb") => &["wandb"],
        _ if name.contains("tfevents") => &["tensorboard"],
        _ if name.contains("perfetto_trace") => &TRACES,
        _ if name.starts_with("tunix") && name.ends_with(".log") => &["tunix"],
        _ => &[],
    }
}

/// Changes single bytes, and cuts, repeats or overwrites pieces.
fn mutate(bytes: &mut Vec<u8>, random: &mut Rng) {
    for _ in 0..random.usize(1..6) {
        let start = random.usize(..=bytes.len());
        let end = (start + random.usize(1..64)).min(bytes.len());
        match random.u8(..6) {
            0 if start < bytes.len() => bytes[start] ^= 1 << random.u8(..8),
            1 if start < bytes.len() => bytes[start] = random.u8(..),
            2 => drop(bytes.drain(start..end)),
            3 => {
                let piece = bytes[start..end].to_vec();
                drop(bytes.splice(start..start, piece));
            }
            4 => bytes.truncate(start.max(bytes.len() / 2)),
            _ => drop(bytes.splice(start..end, [0xff; 9])),
        }
    }
}

/// Corrects the checksums of a W&B file: its records are in chunks of blocks of 32 KiB, as in LevelDB.
fn correct_wandb(bytes: &mut [u8]) {
    const HEADER: usize = 7;
    let mut start = HEADER;
    while let Some(length) = bytes.get(start + 4..start + 6) {
        let end = start + HEADER + usize::from(u16::from_le_bytes([length[0], length[1]]));
        let Some(chunk) = bytes.get(start + 6..end) else {
            return;
        };
        let checksum = crc32fast::hash(chunk);
        bytes[start..start + 4].copy_from_slice(&checksum.to_le_bytes());
        start = end;
    }
}

/// Corrects the checksums of an event file: TFRecords with masked CRC-32C of the length and of the data.
fn correct_tensorboard(bytes: &mut [u8]) {
    let masked = |bytes: &[u8]| {
        let rotated = crc32c::crc32c(bytes).rotate_right(15);
        rotated.wrapping_add(0xa282_ead8).to_le_bytes()
    };
    let mut start = 0;
    while let Some(length) = bytes.get(start..start + 8) {
        let length = u64::from_le_bytes(length.try_into().expect("eight bytes"));
        let data = start + 12;
        let end = usize::try_from(length)
            .ok()
            .and_then(|length| data.checked_add(length));
        let Some(end) = end.filter(|end| end + 4 <= bytes.len()) else {
            return;
        };
        let checksum = masked(&bytes[start..start + 8]);
        bytes[start + 8..data].copy_from_slice(&checksum);
        let checksum = masked(&bytes[data..end]);
        bytes[end..end + 4].copy_from_slice(&checksum);
        start = end + 4;
    }
}

#[test]
fn no_mutated_file_panics_or_becomes_invalid_otlp() {
    let variable =
        |name: &str, default| env::var(name).map_or(default, |text| text.parse().expect("a number"));
    let seeds: Vec<(String, &str, Vec<u8>)> = all_samples()
        .into_iter()
        .flat_map(|name| {
            let mut bytes = sample(&name);
            bytes.truncate(MAX_BYTES);
            let formats = formats_of(&name).iter();
            formats.map(move |format| (name.clone(), *format, bytes.clone()))
        })
        .collect();
    let mut random = Rng::with_seed(variable("MUTATED_SEED", 1));
    let files = variable("MUTATED_FILES", FILES);
    let (mut with_items, mut with_problems) = (0, 0);
    for _ in 0..files {
        let (name, format, sound) = &seeds[random.usize(..seeds.len())];
        let mut bytes = sound.clone();
        mutate(&mut bytes, &mut random);
        // With wrong checksums, the record parsers would not reach the mutation.
        match *format {
            "wandb" => correct_wandb(&mut bytes),
            "tensorboard" if random.bool() => correct_tensorboard(&mut bytes),
            _ => (),
        }
        let format = format_by_name(format).expect("the format has a row");
        let size = random.usize(1..bytes.len().max(2));
        let read = catch_unwind(AssertUnwindSafe(|| {
            let (batches, counts, skipped) = read_in_chunks(format, &bytes, 1, bytes.len().max(1));
            let (in_pieces, counts_in_pieces, _) = read_in_chunks(format, &bytes, 1, size);
            for batch in batches.iter().chain(&in_pieces) {
                check(batch.signal, &batch.bytes, &Limits::default()).expect("it is valid OTLP");
            }
            assert_eq!(counts, counts_in_pieces, "in pieces of {size} bytes");
            if TRACES.contains(&format.name) {
                assert_eq!(json(&batches), json(&in_pieces), "in pieces of {size} bytes");
            }
            (counts.points + counts.spans + counts.events, skipped.has_losses())
        }));
        let Ok((items, has_losses)) = read else {
            let kept = env::temp_dir().join("mutated-file");
            std::fs::write(&kept, &bytes).expect("it can be kept");
            panic!("{name}: {} has the mutated file", kept.display());
        };
        with_items += u64::from(items > 0);
        with_problems += u64::from(has_losses);
    }
    assert!(
        with_items > files / 4 && with_problems > files / 10,
        "{with_items} files had items, {with_problems} had problems"
    );
}
