//! Alternating rounds, and the lines of the table.

use std::{
    hint::black_box,
    time::{Duration, Instant},
};

const ROUNDS: usize = 250;
const ROUND: Duration = Duration::from_millis(3);

/// Prints the header of one part of the table.
pub(crate) fn title(what: &str, bytes: &[u8], text: &[u8]) {
    println!(
        "{what}: {} bytes of protobuf, {} bytes of JSON",
        bytes.len(),
        text.len()
    );
    println!("{:<34} {:>10} {:>10} {:>7}", "MB/s", "ours", "theirs", "ratio");
}

/// Measures two implementations of the same work in alternating rounds.
pub(crate) fn compare<A, B>(what: &str, bytes: usize, ours: impl Fn() -> A, theirs: impl Fn() -> B) {
    let (mut best_ours, mut best_theirs) = (f64::INFINITY, f64::INFINITY);
    for _ in 0..ROUNDS {
        best_ours = best_ours.min(round(&ours));
        best_theirs = best_theirs.min(round(&theirs));
    }
    let (ours, theirs) = (
        megabytes_per_sec(bytes, best_ours),
        megabytes_per_sec(bytes, best_theirs),
    );
    println!(
        "{what:<34} {ours:>10.0} {theirs:>10.0} {:>6.1}x",
        best_theirs / best_ours
    );
}

/// Measures work that has no counterpart.
pub(crate) fn alone<A>(what: &str, bytes: usize, work: impl Fn() -> A) {
    let best = (0..ROUNDS).map(|_| round(&work)).fold(f64::INFINITY, f64::min);
    println!("{what:<34} {:>10.0}", megabytes_per_sec(bytes, best));
}

/// Returns the seconds for one call, averaged over a round of calls.
fn round<T>(work: &impl Fn() -> T) -> f64 {
    let start = Instant::now();
    let mut calls = 0u32;
    while start.elapsed() < ROUND {
        black_box(work());
        calls += 1;
    }
    start.elapsed().as_secs_f64() / f64::from(calls)
}

fn megabytes_per_sec(bytes: usize, secs: f64) -> f64 {
    bytes as f64 / secs / 1e6
}
