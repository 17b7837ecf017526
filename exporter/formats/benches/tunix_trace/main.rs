//! Compares the cost of reading Tunix's Perfetto traces of long runs, both versions, with prost in one run: from the bytes of a
//! file to the bytes of OTLP.
//!
//! The traces are samples of the corpus, repeated ([`input`]). Both readers run in turn and are measured by the processor time
//! of this thread. The best round counts, so load on the machine affects both equally. `--ours` runs our reader alone, for
//! profilers.

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
mod memory;
mod naive;
mod packets;

use clock::timed;
use memory::Peak;

const ROUNDS: usize = 3;
const BYTES: usize = 300_000_000;

fn main() {
    let is_alone = std::env::args().any(|word| word == "--ours");
    println!("$ cargo bench -p pulsetrain-formats --bench tunix_trace");
    println!("one core, processor time, best of {ROUNDS} interleaved rounds; traces of 300 MB\n");
    println!(
        "{:<16}{:<8}{:>6}{:>12}{:>10}{:>10}{:>10}{:>8}",
        "trace", "way", "MB/s", "spans/s", "spans", "points", "peak MB", "ratio"
    );
    for (format, sample) in [
        (
            "tunix-trace",
            "rollout1_actor2/trace/perfetto_trace_1795219968.pb",
        ),
        (
            "tunix-trace-v2",
            "rollout1_actor2/trace/perfetto_trace_v2_1795219968.pb",
        ),
    ] {
        compare(format, &input::make(sample, BYTES), is_alone);
    }
}

fn compare(format: &str, trace: &[u8], is_alone: bool) {
    let (mut ours, mut prost) = (Best::new(), Best::new());
    for _ in 0..ROUNDS {
        ours.take(|| {
            let counts = import::read(format, trace);
            (counts.spans, counts.points)
        });
        if !is_alone {
            prost.take(|| (naive::read(trace), 0));
        }
    }
    ours.print(format, "ours", trace.len(), &prost);
    if !is_alone {
        // Our reader records a group once that occurs on every timeline.
        assert!(ours.spans * 2 > prost.spans, "{} {}", ours.spans, prost.spans);
        prost.print(format, "prost", trace.len(), &prost);
    }
}

/// The best round of a reader.
struct Best {
    seconds: f64,
    megabytes: f64,
    spans: u64,
    points: u64,
}

impl Best {
    fn new() -> Self {
        Self {
            seconds: f64::INFINITY,
            megabytes: 0.0,
            spans: 0,
            points: 0,
        }
    }

    fn take(&mut self, way: impl FnOnce() -> (u64, u64)) {
        let peak = Peak::begin();
        let (seconds, (spans, points)) = timed(way);
        self.seconds = self.seconds.min(seconds);
        self.megabytes = self.megabytes.max(peak.end());
        (self.spans, self.points) = (spans, points);
    }

    fn print(&self, format: &str, way: &str, bytes: usize, other: &Self) {
        println!(
            "{format:<16}{way:<8}{:>6.0}{:>12.0}{:>10}{:>10}{:>10.0}{:>7.1}x",
            bytes as f64 / 1e6 / self.seconds,
            self.spans as f64 / self.seconds,
            self.spans,
            self.points,
            self.megabytes,
            other.seconds / self.seconds,
        );
    }
}
