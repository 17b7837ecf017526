//! Counters never decrease: across a 32-bit wrap, across a reset, and with any field ids of the driver.

use pulsetrain_tests::FakeNvml;

use crate::watch::{Watch, config};

const FIRST: &[(&str, &str)] = &[("gpu.index", "0")];

#[test]
fn wrapped_32_bit_nvml_counter_continues_its_series() {
    let (fake, watch) = Watch::of_h100(
        "gpus: {count: 1, all: {readings: {pcie.replays: {steps: [[0, 4294967000], [1, 704]]}}}}",
    );
    let before = watch.wait_any("gpu.pcie.replays", FIRST);
    assert_eq!(before.value, 4_294_967_000.0);
    fake.at(1.0);
    let after = watch.wait_for("gpu.pcie.replays", FIRST, |point| point.time > before.time);
    assert_eq!(after.value, 4_294_968_000.0, "1,000 more");
    assert_eq!(after.start, before.start);
}

#[test]
fn reset_nvml_counter_starts_at_the_time_of_its_last_reading() {
    let (fake, watch) = Watch::of_h100(
        "gpus: {count: 1, all: {readings: {energy_mj: {counter: null, steps: [[0, 5000000], [1, 2000]]}}}}",
    );
    let before = watch.wait_any("gpu.energy", FIRST);
    assert_eq!((before.value, before.start), (5_000.0, before.time));
    fake.at(1.0);
    let after = watch.wait_for("gpu.energy", FIRST, |point| point.time > before.time);
    assert_eq!((after.value, after.start), (2.0, before.time));
}

#[test]
fn throttle_times_agree_for_both_field_id_schemes() {
    for version in ["570.86.15", "580.82.07"] {
        let changes = format!("driver: {{version: {version}}}\ngpus: {{count: 1}}");
        let fake = FakeNvml::with("h100x8", &changes);
        fake.at(100.0);
        let watch = Watch::start(config(&fake));
        for (reason, seconds) in [
            ("sw_thermal_slowdown", 0.1),
            ("hw_thermal_slowdown", 0.2),
            ("hw_power_brake_slowdown", 0.3),
        ] {
            let reason = [("gpu.throttle.reason", reason)];
            let time = watch.wait_any("gpu.throttle.time", &reason).value;
            assert!((time - seconds).abs() < 1e-6, "{reason:?} of {version} is {time}");
        }
    }
}

#[test]
fn thousand_repeated_xid_errors_are_counted_and_each_is_an_event() {
    let (fake, watch) = Watch::of_h100(
        "events: [{at: 1, gpu: 0, count: 1000, every: 0.001, data: 94}, {at: 3, gpu: 0, count: 2, every: 0.5, data: 79}, {at: 5, gpu: 0, data: 777}]\ngpus: {count: 1}",
    );
    let of = |code| [("gpu.index", "0"), ("gpu.xid.code", code)];
    let zero = watch.wait_any("gpu.xid_errors", &of("94"));
    assert_eq!(zero.value, 0.0, "zero from the start");
    fake.run_from(0.9);
    watch.wait_for("gpu.xid_errors", &of("94"), |point| point.value >= 1000.0);
    watch.wait_for("gpu.xid_errors", &of("79"), |point| point.value >= 2.0);
    let unlisted = watch.wait_for("gpu.xid_errors", &of("777"), |point| point.value >= 1.0);
    let first = &watch.points("gpu.xid_errors", &of("777"))[0];
    assert!(
        first.value == 0.0 && first.time < unlisted.time,
        "the first error is an increase"
    );
    let sent = watch.end();
    let last = |code| {
        sent.iter()
            .rev()
            .find(|point| point.is("gpu.xid_errors", &of(code)) && !point.ends)
    };
    assert_eq!(last("94").map(|point| point.value), Some(1000.0));
    assert_eq!(last("79").map(|point| point.value), Some(2.0));
    let events = sent.iter().filter(|point| point.name == "gpu.xid").count();
    assert_eq!(events, 1003);
}

#[test]
fn non_xid_driver_events_are_counted_by_type_and_each_is_an_event() {
    // Poisoned data, and a changed recovery action; a change of the performance state is not reported.
    let (fake, watch) = Watch::of_h100(
        "events: [{at: 1, gpu: 0, type: 8192, data: 0, count: 2, every: 0.1}, {at: 2, gpu: 0, type: 32768, data: 1}, \
         {at: 2, gpu: 0, type: 4, data: 0}]\ngpus: {count: 1}",
    );
    let of = |kind| [("gpu.index", "0"), ("gpu.driver_event.type", kind)];
    let zero = watch.wait_any("gpu.driver_events", &of("fatal_poison_error"));
    assert_eq!(zero.value, 0.0, "zero from the start");
    fake.run_from(0.9);
    watch.wait_for("gpu.driver_events", &of("fatal_poison_error"), |point| {
        point.value >= 2.0
    });
    watch.wait_for("gpu.driver_events", &of("recovery_action_changed"), |point| {
        point.value >= 1.0
    });
    let sent = watch.end();
    let events: Vec<_> = sent
        .iter()
        .filter(|point| point.name == "gpu.driver_event")
        .map(|point| point.attributes["gpu.driver_event.type"].as_str())
        .collect();
    assert_eq!(
        events,
        [
            "fatal_poison_error",
            "fatal_poison_error",
            "recovery_action_changed"
        ]
    );
}

#[test]
fn gpu_that_reports_only_xid_errors_explains_missing_driver_events() {
    let (_fake, watch) = Watch::of_h100("gpus: {count: 1, all: {readings: {event_types: 8}}}");
    watch.wait_any("gpu.xid_errors", &[("gpu.index", "0")]);
    watch.wait_unavailable("gpu.driver_events", "not_supported");
    assert!(watch.points("gpu.driver_events", &[]).is_empty());
}

#[test]
fn superchip_reports_c2c_throughput_and_tensor_double_pipe() {
    let (_fake, watch) = Watch::running("gb200", "");
    for (metric, attribute, value) in [
        ("gpu.c2c.throughput", ("gpu.io.direction", "transmit"), 1e10),
        ("gpu.c2c.throughput", ("gpu.io.direction", "receive"), 2e10),
        ("gpu.pipe.utilization", ("gpu.pipe", "tensor_double_matrix"), 0.03),
        ("gpu.pipe.utilization", ("gpu.pipe", "tensor_double"), 0.0),
    ] {
        let point = watch.wait_any(metric, &[attribute]);
        let off = (point.value - value).abs();
        assert!(
            off <= 1e-6 * value,
            "{metric} of {attribute:?} is {}",
            point.value
        );
    }
}

#[test]
fn counter_of_a_newer_driver_does_not_disable_other_counters() {
    let changes = "gpus: {count: 1, all: {readings: {gpm.highest_number: 97}}}";
    let (_fake, watch) = Watch::running("h100x8", changes);
    watch.wait_any("gpu.sm.active", FIRST);
    watch.wait_unavailable("gpu.c2c.throughput", "not_supported");
    watch.wait_any("gpu.nvlink.throughput", FIRST);
}

#[test]
fn performance_counter_with_nan_is_reported_as_no_data() {
    let changes =
        "gpus: {count: 1, all: {readings: {gpm.sm_occupancy_percent: {ramp: {from: 0, to: 1, over: 0}}}}}";
    let (_fake, watch) = Watch::running("h100x8", changes);
    watch.wait_unavailable("gpu.sm.occupancy", "no_data");
    watch.wait_any("gpu.sm.active", FIRST);
    assert!(watch.points("gpu.sm.occupancy", FIRST).is_empty());
}
