//! A driver that hangs for a minute: its series end, and the endpoints respond as fast as before.

use std::time::Duration;

use crate::gpu_faults::{page::fetch, world::World};

const BUSY: [(&str, &str); 2] = [("gpu.index", "7"), ("gpu.task", "general")];
/// The number of scrapes in each phase of the hang.
const SCRAPES: usize = 200;
/// The limit of the 99th percentile in an unoptimized build on a busy machine: far less than the hang, and less than a tick.
/// `benches/gpu_hang.rs` checks the two milliseconds of a release build.
const SLOWEST: Duration = Duration::from_millis(250);

#[test]
fn series_of_a_hung_driver_end_and_return() {
    let Some(world) = World::start("hang", "") else {
        return;
    };
    world.wait_value("gpu.utilization", &BUSY, 0.6);
    world.fake.at(10.0);
    // The page first has the last values, and then none; it never blocks.
    let full = times_of_pages(world.page);
    let end = world.wait_ended("gpu.utilization", &BUSY);
    let empty = times_of_pages(world.page);
    for times in [full, empty] {
        assert!(
            times[SCRAPES - 1 - SCRAPES / 100] < SLOWEST,
            "the slowest took {:?}",
            &times[SCRAPES - 5..]
        );
    }
    world.wait_for_log("has not answered for");
    world.fake.at(69.9);
    assert!(
        world
            .points("gpu.utilization", &BUSY)
            .iter()
            .all(|point| point.time <= end.time)
    );
    world.fake.at(75.0);
    // Three quarters of the sine's period: 60 % minus 40 %.
    world.wait_value("gpu.utilization", &BUSY, 0.2);
    world.wait_for_log("the GPU driver answers again");
}

/// Returns the latencies of the scrapes in ascending order.
#[expect(clippy::disallowed_methods, reason = "how long a page takes is measured")]
fn times_of_pages(port: u16) -> Vec<Duration> {
    let mut times: Vec<_> = (0..SCRAPES)
        .map(|_| {
            let began = std::time::Instant::now();
            fetch(port);
            began.elapsed()
        })
        .collect();
    times.sort_unstable();
    times
}
