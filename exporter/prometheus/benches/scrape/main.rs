//! The cost of a scrape of 100,000 series with 4 labels, compared with `prometheus` and `prometheus-client`
//! in one run: CPU time of a page at rest and with 50,000 points a second, the delay of points, and memory
//! per series.
//!
//! The three are measured in turns, so that a busy machine affects all alike. CPU time is the thread's own,
//! from the kernel.

#![allow(
    clippy::disallowed_methods,
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a bench reads the clock, prints its table, and stops at what it does not expect"
)]

mod allocator;
mod contestants;
mod load;

use nix::time::{ClockId, clock_gettime};

use contestants::{Client, Contestant, Official, Ours};

const SERIES: usize = 100_000;
const ROUNDS: usize = 15;

/// The measurements of one contestant.
#[derive(Default)]
struct Measured {
    bytes_per_series: usize,
    page_bytes: usize,
    idle: Vec<f64>,
    loaded: Vec<f64>,
    slowest_batch_millis: Vec<f64>,
}

fn main() {
    println!("cargo bench -p pulsetrain-prometheus --bench scrape");
    println!(
        "{SERIES} series with 4 labels, text 0.0.4 (prometheus-client: OpenMetrics); CPU time of the scraping thread,"
    );
    println!(
        "median (and best) of {ROUNDS} rounds in turns; under load {} points/s come in\n",
        load::POINTS_PER_SEC
    );
    println!(
        "{:<22} {:>16} {:>18} {:>11} {:>14} {:>14} {:>10}",
        "", "page, ms", "page under load", "ns/series", "slowest batch", "bytes/series", "page, MB"
    );
    let (ours, ours_bytes) = sized(Ours::new);
    let (official, official_bytes) = sized(Official::new);
    let (client, client_bytes) = sized(Client::new);
    let contestants: [&dyn Contestant; 3] = [&ours, &client, &official];
    let mut measured: [Measured; 3] = Default::default();
    for (one, bytes) in measured
        .iter_mut()
        .zip([ours_bytes, client_bytes, official_bytes])
    {
        one.bytes_per_series = bytes / SERIES;
    }
    contestants.iter().for_each(|contestant| contestant.scrape());
    for _ in 0..ROUNDS {
        for (contestant, measured) in contestants.iter().zip(&mut measured) {
            round(*contestant, measured);
        }
    }
    for (contestant, measured) in contestants.iter().zip(&mut measured) {
        print(contestant.name(), measured);
    }
    let page = |place: usize| median(&measured[place].loaded);
    println!(
        "\nunder load: prometheus-client / ours {:.1}x, prometheus / ours {:.1}x",
        page(1) / page(0),
        page(2) / page(0)
    );
    println!(
        "a batch has {} points; taking it in (setting its gauges) takes so long, waiting included: the slowest of a scrape",
        load::BATCH
    );
    println!("taking a point in: {:.0} ns of CPU time", ours.nanos_per_point());
}

/// Creates a contestant and returns its memory use.
fn sized<T>(make: impl FnOnce() -> T) -> (T, usize) {
    let before = allocator::live_bytes();
    let made = make();
    (made, allocator::live_bytes() - before)
}

/// Measures one page at rest and one under load.
fn round(contestant: &dyn Contestant, measured: &mut Measured) {
    measured.idle.push(millis(|| contestant.scrape()));
    measured.page_bytes = page_bytes(contestant);
    let (loaded, slowest) = load::while_points_come_in(contestant, || millis(|| contestant.scrape()));
    page_bytes(contestant);
    measured.loaded.push(loaded);
    measured.slowest_batch_millis.push(slowest);
}

/// Returns the bytes of the last page, which has every series.
fn page_bytes(contestant: &dyn Contestant) -> usize {
    let (bytes, series) = contestant.page();
    assert_eq!(series, SERIES);
    bytes
}

fn print(name: &str, measured: &mut Measured) {
    let best = |times: &[f64]| times.iter().copied().fold(f64::INFINITY, f64::min);
    println!(
        "{name:<22} {:>16} {:>18} {:>11.0} {:>11.2} ms {:>14} {:>10.1}",
        format!("{:.1} ({:.1})", median(&measured.idle), best(&measured.idle)),
        format!("{:.1} ({:.1})", median(&measured.loaded), best(&measured.loaded)),
        median(&measured.idle) * 1e6 / SERIES as f64,
        median(&measured.slowest_batch_millis),
        measured.bytes_per_series,
        measured.page_bytes as f64 / 1e6,
    );
}

fn median(times: &[f64]) -> f64 {
    let mut sorted = times.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted[sorted.len() / 2]
}

/// Returns the CPU time of this thread during `work`.
fn millis(work: impl FnOnce()) -> f64 {
    let start = thread_nanos();
    work();
    (thread_nanos() - start) as f64 / 1e6
}

/// Returns the CPU time of this thread so far.
fn thread_nanos() -> u64 {
    let time = clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).unwrap();
    time.tv_sec() as u64 * 1_000_000_000 + time.tv_nsec() as u64
}
