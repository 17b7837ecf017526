//! Counters that restart, that wrap, and that count a thousand errors with one code.

use pulsetrain_tests::{some_or_return, wait_until};

use crate::gpu_faults::world::World;

const FIRST: (&str, &str) = ("gpu.index", "0");

#[test]
fn reset_counter_gets_a_new_start_time_and_no_negative_rate() {
    let world = some_or_return!(World::start("counter_reset", "gpus: {count: 1}"));
    let joules = [FIRST];
    let first = world.wait_value("gpu.energy", &joules, 123_456.0);
    world.fake.at(20.0);
    let second = world.wait_value("gpu.energy", &joules, 0.0);
    assert!(second.start > first.start);
    world.fake.at(40.0);
    let third = world.wait_both("gpu.energy", &joules, |value| (value - 10_000.0).abs() < 0.01);
    assert_eq!(third.start, second.start);
    let increase = world.scraped("increase(gpu_energy_joules_total[5m])");
    assert!(increase >= Some(0.0), "{increase:?}");
    assert_eq!(world.scraped("resets(gpu_energy_joules_total[5m])"), Some(1.0));
}

#[test]
fn wrapped_counter_continues_in_prometheus_and_otlp() {
    let world = some_or_return!(World::start("counter_wrap", "gpus: {count: 1}"));
    let replays = [FIRST];
    let first = world.wait_value("gpu.pcie.replays", &replays, 3_294_967_296.0);
    for (second, count) in [
        (9.0, 4_194_967_296.0),
        (11.0, 4_394_967_296.0),
        (50.0, 8_294_967_296.0),
    ] {
        world.fake.at(second);
        let last = world.wait_value("gpu.pcie.replays", &replays, count);
        assert_eq!(last.start, first.start);
    }
    assert_eq!(world.scraped("resets(gpu_pcie_replays_total[5m])"), Some(0.0));
}

#[test]
fn thousand_xid_errors_of_one_code_are_all_counted() {
    let world = some_or_return!(World::start("xid_burst", "gpus: {count: 6}"));
    let of = |index, code| [("gpu.index", index), ("gpu.xid.code", code)];
    for (index, code) in [("0", "94"), ("0", "48"), ("5", "79")] {
        world.wait_value("gpu.xid_errors", &of(index, code), 0.0);
    }
    // Half of them in one batch and the rest in another, as from a busy driver.
    world.fake.at(10.4995);
    world.wait_value("gpu.xid_errors", &of("0", "94"), 500.0);
    world.fake.at(15.0);
    world.wait_value("gpu.xid_errors", &of("0", "94"), 1_000.0);
    world.fake.at(25.0);
    world.wait_value("gpu.xid_errors", &of("0", "48"), 1.0);
    world.fake.at(35.0);
    world.wait_value("gpu.xid_errors", &of("5", "79"), 1.0);
    world.wait_value("gpu.xid_errors", &of("0", "94"), 1_000.0);
    wait_until("every error is an event", || {
        world.points("gpu.xid", &[]).len() >= 1_002
    });
    assert_eq!(world.points("gpu.xid", &of("0", "94")).len(), 1_000);
    assert_eq!(
        world.scraped("sum(increase(gpu_xid_errors_total[10m])) > bool 0"),
        Some(1.0)
    );
}
