//! The energy counter between two passes: both readings around each update, with few calls.

use std::time::Duration;

use pulsetrain_gpu::GpuConfig;
use pulsetrain_tests::FakeNvml;

use crate::watch::{Point, Watch, config};

const CHANGES: &str = "record_calls: true
gpus: {count: 1, all: {readings: {energy_mj: {counter: {rate: 500000, updates_every: 0.1}}}}}";

#[test]
fn updates_of_the_energy_counter_are_known_to_milliseconds() {
    let fake = FakeNvml::with("h100x8", CHANGES);
    fake.run_from(0.0);
    let watch = Watch::start(GpuConfig {
        interval: Duration::from_millis(500),
        energy_interval: Duration::from_millis(100),
        ..config(&fake)
    });
    let energies = |all: Vec<Point>| {
        all.into_iter()
            .filter(|point| point.name == "gpu.energy" && !point.ends)
    };
    watch.wait_for("gpu.energy", &[], |point| {
        point.value > 250.0 && point.time > fake.unix_nanos(5.0)
    });
    let points: Vec<Point> = energies(watch.end()).collect();
    let changes: Vec<_> = points
        .windows(2)
        .filter(|pair| pair[1].value > pair[0].value)
        .collect();
    assert!(changes.len() >= 20, "{} changes in 5 s", changes.len());
    let mut gaps: Vec<u64> = changes.iter().map(|pair| pair[1].time - pair[0].time).collect();
    gaps.sort_unstable();
    // A busy machine wakes a thread late now and then.
    let median = gaps[gaps.len() / 2];
    assert!(median < 20_000_000, "the update is known to {median} ns");
    let calls = fake.calls();
    let calls = calls
        .iter()
        .filter(|call| call.name == "nvmlDeviceGetFieldValues")
        .count();
    // A busy machine wakes the thread late, and it searches for longer. To read all the time takes 2500 calls.
    assert!(calls < 1500, "{calls} calls in 5 s");
}
