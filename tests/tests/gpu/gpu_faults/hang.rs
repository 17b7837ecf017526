//! A driver that does not answer for a minute: its series have ended, and the endpoints answer as fast as ever.

use std::time::Duration;

use crate::gpu_faults::{page::fetch, world::World};

const BUSY: [(&str, &str); 2] = [("gpu.index", "7"), ("gpu.task", "general")];
/// How many pages are fetched in each phase of the hang.
const SCRAPES: usize = 200;
/// How long the slowest may take in a build without optimisation on a machine that does other things: far less than the
/// driver hangs, and less than a tick. The two milliseconds of a release build are `benches/gpu_hang.rs`.
const SLOWEST: Duration = Duration::from_millis(250);

#[test]
fn a_driver_that_hangs_ends_its_series_and_they_come_back() {
    let Some(world) = World::start("hang", "") else {
        return;
    };
    world.wait_both("gpu.utilization", &BUSY, |value| value == 0.6);
    world.fake.at(10.0);
    // The page has the last values, and then none; it never waits.
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
    // Three quarters of the sine's period: 60 % less 40 %.
    world.wait_both("gpu.utilization", &BUSY, |value| value == 0.2);
    world.wait_for_log("the GPU driver answers again");
}

/// How long the pages took, the quickest first.
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
