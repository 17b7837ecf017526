//! The energy counter between two passes: both readings around each update, with few calls.

use std::time::Duration;

use pulsetrain_gpu::GpuConfig;
use pulsetrain_tests::{FakeNvml, wait_until};

use crate::watch::{Point, Watch, config};

const CHANGES: &str = "record_calls: true
gpus: {count: 1, all: {readings: {energy_mj: {counter: {rate: 500000, updates_every: 0.1}}}}}";

/// The number of exact updates to wait for, and the maximum time between the two readings of one.
const UPDATES: usize = 20;
const EXACT_NANOS: u64 = 20_000_000;

#[test]
fn energy_counter_updates_are_located_within_milliseconds() {
    let fake = FakeNvml::with("h100x8", CHANGES);
    fake.run_from(0.0);
    let watch = Watch::start(GpuConfig {
        interval: Duration::from_millis(500),
        energy_interval: Duration::from_millis(100),
        ..config(&fake)
    });
    // A busy machine wakes a thread late at times, so the test waits for a number of exact updates.
    let exact = || {
        let points: Vec<Point> = watch.points("gpu.energy", &[]);
        let energies: Vec<_> = points.iter().filter(|point| !point.ends).collect();
        let changes = energies.windows(2).filter(|pair| pair[1].value > pair[0].value);
        let exact = changes.filter(|pair| pair[1].time - pair[0].time < EXACT_NANOS);
        exact.count()
    };
    wait_until("updates are known", || exact() >= UPDATES);
    let last = watch.end().into_iter().map(|point| point.time).max();
    let seconds = (last.unwrap_or_default() - fake.unix_nanos(0.0)) as f64 / 1e9;
    let calls = fake.calls();
    let calls = calls
        .iter()
        .filter(|call| call.name == "nvmlDeviceGetFieldValues")
        .count();
    // Continuous polling makes 500 calls per second.
    let most = 300.0 * seconds;
    assert!((calls as f64) < most, "{calls} calls in {seconds} s");
}
