//! Compares the conversion of each text format to OTLP with a naive reader in one run.
//!
//! The inputs are samples of the corpus, repeated ([`input`]). Both readers run in turn and are measured by the processor time
//! of this thread. The best round counts, so load on the machine affects both equally. Arguments select formats. `--ours` runs
//! our reader alone, for profilers.

#![allow(
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a bench prints its table, and stops at what it does not expect"
)]

#[path = "../measure/clock.rs"]
mod clock;
#[path = "../measure/import.rs"]
mod import;
mod input;
mod naive;
mod rows;

use clock::timed;
use rows::{ROWS, Row};

const ROUNDS: usize = 5;
const MEGABYTE: usize = 1_000_000;
const INPUT: usize = 50 * MEGABYTE;

fn main() {
    let wanted: Vec<String> = std::env::args()
        .skip(1)
        .filter(|word| !word.starts_with('-'))
        .collect();
    println!("$ cargo bench -p pulsetrain-formats --bench text");
    println!("one core, processor time, best of {ROUNDS} interleaved rounds\n");
    println!(
        "{:<24}{:>6}{:>8}{:>10}{:>10}  {:<34}{:>6}",
        "MB/s", "ours", "naive", "items", "of naive", "naive is", "ratio"
    );
    for row in ROWS {
        if wanted.is_empty() || wanted.iter().any(|word| word == row.format) {
            compare(row);
        }
    }
}

fn compare(row: &'static Row) {
    let input = row.input.make(INPUT);
    let (mut ours, mut naive) = (f64::INFINITY, f64::INFINITY);
    let (mut items, mut naive_items) = (0, 0);
    let mut read_naively = row.naive.reader();
    let is_alone = std::env::args().any(|word| word == "--ours");
    for _ in 0..ROUNDS {
        let (seconds, counts) = timed(|| import::read(row.format, &input));
        (ours, items) = (ours.min(seconds), counts.points + counts.spans + counts.events);
        if is_alone {
            continue;
        }
        let (seconds, read) = timed(|| read_naively(&input));
        (naive, naive_items) = (naive.min(seconds), read);
    }
    assert!(
        is_alone || naive_items * 10 > items * 8,
        "{}: the naive reader makes {naive_items} items and not {items}",
        row.format
    );
    let speed = |seconds: f64| input.len() as f64 / 1e6 / seconds;
    println!(
        "{:<24}{:>6.0}{:>8.0}{items:>10}{naive_items:>10}  {:<34}{:>5.1}x",
        row.format,
        speed(ours),
        speed(naive),
        row.naive.name(),
        naive / ours
    );
}
