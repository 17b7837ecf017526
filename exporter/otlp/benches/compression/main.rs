//! Throughput and ratio of OTLP compression, in MB/s of uncompressed bytes: flate2 with zlib-rs (the workspace's backend),
//! flate2 with miniz_oxide (its default), and zstd (which the Collector also accepts).
//!
//! Both deflate without the gzip frame, as flate2 calls them for gzip. The two sides of a pair are measured alternately in one
//! run.

#![allow(
    clippy::disallowed_methods,
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a bench reads the clock, prints its table, and stops at what it does not expect"
)]
#![allow(dead_code, reason = "the modules of the other bench hold more")]

#[path = "../codec/batches.rs"]
mod batches;
#[path = "../codec/rounds.rs"]
mod rounds;

use std::io::{Read, Write};

use flate2::{Compression, read::DeflateDecoder, write::DeflateEncoder};
use miniz_oxide::{deflate::compress_to_vec, inflate::decompress_to_vec};
use rounds::{alone, compare};

/// Messages of the Python SDK.
const PYTHON_SDK: &[u8] = include_bytes!("../../../../tests/corpus/otlp/python_sdk.binpb");

fn main() {
    println!("cargo bench -p pulsetrain-otlp --bench compression");
    println!("one core, best of interleaved rounds; ours is zlib-rs, theirs is miniz_oxide\n");
    measure("512 spans with 5 attributes", &batches::spans_by_writer());
    measure("2048 points with 4 attributes", &batches::points_by_writer());
    measure("spans, points and records of the Python SDK", PYTHON_SDK);
}

fn measure(what: &str, bytes: &[u8]) {
    println!("{what}: {} bytes of protobuf", bytes.len());
    println!("{:<34} {:>10} {:>10} {:>7}", "MB/s", "ours", "theirs", "ratio");
    for level in [1, 6] {
        let (ours, theirs) = (deflate(bytes, level.into()), compress_to_vec(bytes, level));
        compare(
            &format!("deflate level {level}"),
            bytes.len(),
            || deflate(bytes, level.into()),
            || compress_to_vec(bytes, level),
        );
        assert!(inflate(&theirs) == bytes && decompress_to_vec(&ours).unwrap() == bytes);
        compare(
            "  inflate",
            bytes.len(),
            || inflate(&ours),
            || decompress_to_vec(&ours).unwrap(),
        );
        println!(
            "  {:<32} {:>9.1}% {:>9.1}%",
            "size",
            percent(&ours, bytes),
            percent(&theirs, bytes)
        );
    }
    for level in [1, 3] {
        let compressed = zstd::bulk::compress(bytes, level).unwrap();
        alone(&format!("zstd level {level}"), bytes.len(), || {
            zstd::bulk::compress(bytes, level).unwrap()
        });
        alone("  inflate", bytes.len(), || {
            zstd::bulk::decompress(&compressed, bytes.len()).unwrap()
        });
        println!("  {:<32} {:>9.1}%", "size", percent(&compressed, bytes));
    }
    println!();
}

fn deflate(bytes: &[u8], level: u32) -> Vec<u8> {
    let mut encoder = DeflateEncoder::new(Vec::with_capacity(bytes.len() / 4), Compression::new(level));
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn inflate(bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    DeflateDecoder::new(bytes).read_to_end(&mut out).unwrap();
    out
}

fn percent(part: &[u8], whole: &[u8]) -> f64 {
    100.0 * part.len() as f64 / whole.len() as f64
}
