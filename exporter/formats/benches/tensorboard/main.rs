//! Compares the cost of reading event files with prost in one run: from the bytes of a file to the bytes of OTLP, including
//! checksums.
//!
//! The inputs are files of the corpus, repeated. Both readers run in turn and are measured by the processor time of this
//! thread. The best round counts, so load on the machine affects both equally. Arguments select folders of the corpus. `--ours`
//! runs our reader alone, for profilers.

#![allow(
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a bench prints its table, and stops at what it does not expect"
)]

#[path = "../measure/clock.rs"]
mod clock;
#[path = "../measure/import.rs"]
mod import;
mod naive;

use std::{fs, path::Path};

use clock::timed;

const ROUNDS: usize = 7;
const MIB: usize = 1 << 20;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let is_alone = arguments.iter().any(|word| word == "--ours");
    let wanted: Vec<&String> = arguments.iter().filter(|word| !word.starts_with('-')).collect();
    println!("$ cargo bench -p pulsetrain-formats --bench tensorboard");
    println!("one core, processor time, best of {ROUNDS} interleaved rounds\n");
    println!(
        "{:<46}{:>8}{:>8}{:>10}{:>8}",
        "MB/s", "ours", "prost", "items", "ratio"
    );
    for (what, folder) in [
        ("one number an event, 14 tags (torch)", "kempnerforge/tensorboard"),
        ("one number an event, 31 tags (torch)", "torchspec/tensorboard"),
        (
            "one number an event, 93 tags (tensorboardX)",
            "tunix/colocated/tensorboard",
        ),
        ("four of five are settings (tensorboardX)", "maxtext/tensorboard"),
    ] {
        if wanted.is_empty() || wanted.iter().any(|word| folder.starts_with(*word)) {
            compare(what, &file(folder), is_alone);
        }
    }
}

/// The event file of a folder of the corpus, repeated to 32 MiB.
fn file(folder: &str) -> Vec<u8> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../tests/corpus")
        .join(folder);
    let entry = fs::read_dir(path).unwrap().next().unwrap().unwrap();
    let once = fs::read(entry.path()).unwrap();
    once.repeat(32 * MIB / once.len())
}

fn compare(what: &str, file: &[u8], is_alone: bool) {
    let (mut ours, mut prost) = (f64::INFINITY, f64::INFINITY);
    let mut items = 0;
    for _ in 0..ROUNDS {
        let (seconds, counts) = timed(|| import::read("tensorboard", file));
        (ours, items) = (ours.min(seconds), counts.points + counts.events);
        assert!(items > 0);
        if is_alone {
            continue;
        }
        let (seconds, naive_items) = timed(|| naive::read(file));
        prost = prost.min(seconds);
        // Our reader leaves out repeated steps and times of day (a fifth of JAX's file), and adds one point a step.
        let is_comparable = items * 4 / 5 < naive_items && naive_items < items * 4 / 3;
        assert!(is_comparable, "{items} items, naively {naive_items}");
    }
    let speed = |seconds: f64| file.len() as f64 / 1e6 / seconds;
    println!(
        "{what:<46}{:>8.0}{:>8.0}{items:>10}{:>7.1}x",
        speed(ours),
        speed(prost),
        prost / ours
    );
}
