//! Drivers that are reloaded, that lack calls, that refuse, and that have other field ids.

use pulsetrain_tests::some_or_return;

use crate::gpu_faults::world::World;

const FIRST: (&str, &str) = ("gpu.index", "0");

#[test]
fn series_resume_after_a_driver_reload_with_a_counter_reset() {
    let world = some_or_return!(World::start("driver_reload", "gpus: {count: 2}"));
    let joules = [FIRST];
    let before = world.wait_value("gpu.energy", &joules, 123_456.0);
    world.fake.at(10.0);
    world.wait_ended("gpu.energy", &joules);
    world.wait_for_log("GPUs are not observed");
    // A full period of the sine after the counter restarted at zero: 500 W for 20 s.
    world.fake.at(40.0);
    let after = world.wait_both("gpu.energy", &joules, |value| (value - 10_000.0).abs() < 0.01);
    assert!(
        after.start > before.start,
        "the start time shows the reset of the counter"
    );
}

#[test]
fn missing_driver_calls_are_reported_and_other_metrics_are_present() {
    let world = some_or_return!(World::start("missing_symbols", "gpus: {count: 1}"));
    let missing = |metric| {
        [
            FIRST,
            ("gpu.metric.name", metric),
            ("gpu.unavailable.reason", "missing_symbol"),
        ]
    };
    for metric in [
        "gpu.throttle.time",
        "gpu.nvlink.up",
        "gpu.nvlink.errors",
        "gpu.nvlink.speed",
        "gpu.c2c.up",
        "gpu.fabric_state",
        "gpu.sm.active",
        "gpu.xid_errors",
    ] {
        world.wait_value("gpu.metric.unavailable", &missing(metric), 1.0);
        assert!(
            world.points(metric, &[FIRST]).is_empty(),
            "{metric} has a value and a reason"
        );
    }
    world.wait_both("gpu.memory.used", &[FIRST], |value| value > 1e9);
    world.wait_value("gpu.power", &[FIRST, ("gpu.power.reading", "average")], 500.0);
    world.wait_value("gpu.average_power", &[FIRST], 500.0);
    let printed = world.wait_for_log("gpu.sm.active");
    assert_eq!(printed.len(), 1, "one line: {printed:?}");
}

#[test]
fn unsupported_calls_are_reported_and_transient_failures_recover() {
    let world = some_or_return!(World::start("not_supported", "gpus: {count: 3}"));
    let reason = |metric, reason| {
        [
            FIRST,
            ("gpu.metric.name", metric),
            ("gpu.unavailable.reason", reason),
        ]
    };
    let action = reason("gpu.recovery_action", "not_supported");
    world.wait_value("gpu.metric.unavailable", &action, 1.0);
    let rows = reason("gpu.remapped_rows", "not_supported");
    world.wait_value("gpu.metric.unavailable", &rows, 1.0);
    let third = [("gpu.index", "2"), ("gpu.task", "general")];
    world.wait_value("gpu.utilization", &third, 0.6);
    world.fake.at(15.0);
    world.wait_ended("gpu.utilization", &third);
    world.fake.at(30.0);
    world.wait_value("gpu.utilization", &third, 0.6);
    // Field 82 is the memory temperature of all GPUs; the temperature of the chip is available.
    let heat = |sensor| [("gpu.index", "1"), ("gpu.temperature.sensor", sensor)];
    world.wait_value("gpu.temperature", &heat("gpu"), 50.0);
    assert!(world.points("gpu.temperature", &heat("memory")).is_empty());
}

#[test]
fn metrics_are_the_same_with_renumbered_field_ids() {
    let world = some_or_return!(World::start("later_field_ids", "gpus: {count: 1}"));
    for second in [50.0, 100.0] {
        world.fake.at(second);
        for (reason, share) in [
            ("sw_thermal_slowdown", 0.001),
            ("hw_thermal_slowdown", 0.002),
            ("hw_power_brake_slowdown", 0.003),
        ] {
            let reason = [FIRST, ("gpu.throttle.reason", reason)];
            let expected = share * second;
            world.wait_both("gpu.throttle.time", &reason, |value| {
                (value - expected).abs() < 1e-6
            });
        }
    }
}
