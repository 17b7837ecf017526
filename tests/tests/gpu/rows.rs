//! Eight H100 at work: every row of the table has a value or a reason, and the values are those that the driver declares.

use std::collections::BTreeSet;

use pulsetrain_sources::nvml::{DriverState, GpuNotice, GpuSemconv, NvmlConfig};
use pulsetrain_tests::FakeNvml;

use crate::watch::{Watch, config};

/// The first GPU.
const FIRST: (&str, &str) = ("gpu.index", "0");

#[test]
fn every_metric_has_a_value_or_a_reason_on_eight_h100() {
    let fake = FakeNvml::start("h100x8");
    fake.run_from(0.0);
    let watch = Watch::start(config(&fake));
    watch.wait_for("gpu.sm.active", &[("gpu.index", "7")], |_| true);
    watch.wait_passes(2);
    let inventory = watch.inventory();
    assert_eq!(inventory.gpus.len(), 8);
    let sent = watch.end();
    let metrics = pulsetrain_sources::nvml::table()
        .iter()
        .flat_map(|row| row.also.iter().copied().chain([row.metric]))
        .map(|metric| metric.name)
        .collect::<BTreeSet<_>>();
    assert!(metrics.len() > 45, "the table has only {metrics:?}");
    for gpu in &inventory.gpus {
        let index = gpu.index.to_string();
        for metric in &metrics {
            let here = |name: &str| sent.iter().any(|point| point.is(name, &[("gpu.index", &index)]));
            let unavailable = [("gpu.metric.name", *metric), ("gpu.index", &index)];
            let why = sent
                .iter()
                .any(|point| point.is("gpu.metric.unavailable", &unavailable));
            let nobody = metric.starts_with("gpu.process.") && gpu.processes.is_empty();
            assert!(
                here(metric) || why || nobody,
                "GPU {index} has neither {metric} nor a reason"
            );
            assert!(
                !(here(metric) && why),
                "GPU {index} has {metric} and says that it has not"
            );
        }
    }
}

#[test]
fn values_are_those_of_the_driver_in_base_units() {
    let fake = FakeNvml::start("h100x8");
    let watch = Watch::start(config(&fake));
    let expect = |name: &str, attributes: &[(&str, &str)], value: f64| {
        let attributes: Vec<_> = attributes.iter().copied().chain([FIRST]).collect();
        let point = watch.wait_for(name, &attributes, |_| true);
        assert!(
            (point.value - value).abs() <= 1e-6 * value.abs().max(1e-6),
            "{name} {attributes:?} is {} and not {value}",
            point.value
        );
    };
    expect("gpu.utilization", &[("gpu.task", "general")], 0.6);
    expect("gpu.utilization", &[("gpu.task", "decoder")], 0.12);
    expect("gpu.utilization", &[("gpu.task", "jpeg")], 0.03);
    expect("gpu.utilization", &[("gpu.task", "ofa")], 0.01);
    expect("gpu.memory.activity", &[], 0.35);
    expect("gpu.memory.limit", &[], 85_520_809_984.0);
    expect("gpu.memory.used", &[], 1_073_741_824.0);
    expect("gpu.memory.reserved", &[], 637_534_208.0);
    expect("gpu.bar1.limit", &[], 137_438_953_472.0);
    expect(
        "gpu.power",
        &[("gpu.power.reading", "instant"), ("gpu.power.scope", "gpu")],
        500.0,
    );
    expect(
        "gpu.power",
        &[("gpu.power.reading", "average"), ("gpu.power.scope", "gpu")],
        500.0,
    );
    expect(
        "gpu.power",
        &[("gpu.power.reading", "instant"), ("gpu.power.scope", "module")],
        620.0,
    );
    expect("gpu.power_limit", &[("gpu.power.limit_kind", "enforced")], 700.0);
    expect("gpu.power_limit", &[("gpu.power.limit_kind", "min")], 200.0);
    expect("gpu.energy", &[("gpu.power.scope", "gpu")], 123_456.0);
    expect("gpu.temperature", &[("gpu.temperature.sensor", "memory")], 45.0);
    expect("gpu.temperature_margin", &[], 52.0);
    expect(
        "gpu.temperature_limit",
        &[("gpu.temperature.limit_kind", "slowdown")],
        89.0,
    );
    expect("gpu.clock.frequency", &[("gpu.clock.domain", "memory")], 2_619e6);
    expect(
        "gpu.clock.limit",
        &[("gpu.clock.domain", "sm"), ("gpu.clock.limit_kind", "max")],
        1_980e6,
    );
    expect("gpu.pcie.io", &[("gpu.io.direction", "transmit")], 1_000_000.0);
    expect("gpu.pcie.generation", &[("gpu.link.reading", "current")], 5.0);
    expect("gpu.pcie.width", &[("gpu.link.reading", "max")], 16.0);
    expect("gpu.pcie.speed", &[("gpu.link.reading", "current")], 4e9);
    expect("gpu.pcie.replays", &[], 2.0);
    expect(
        "gpu.nvlink.io",
        &[("gpu.io.direction", "transmit"), ("gpu.link.index", "3")],
        102_400.0,
    );
    expect(
        "gpu.nvlink.io",
        &[("gpu.io.direction", "transmit"), ("gpu.link.index", "7")],
        716_800.0,
    );
    expect("gpu.nvlink.up", &[("gpu.link.index", "17")], 1.0);
    expect("gpu.nvlink.speed", &[("gpu.link.index", "0")], 26_562e6);
    expect("gpu.throttle.time", &[("gpu.throttle.reason", "power_cap")], 1.0);
    expect(
        "gpu.throttle.active",
        &[("gpu.throttle.reason", "sw_power_cap")],
        0.0,
    );
    expect("gpu.performance_state", &[("gpu.performance_state", "p0")], 1.0);
    expect("gpu.performance_state", &[("gpu.performance_state", "p8")], 0.0);
    expect("gpu.fabric_state", &[("gpu.fabric_state", "completed")], 1.0);
    expect("gpu.feature.active", &[("gpu.feature", "persistence")], 1.0);
    expect("gpu.feature.active", &[("gpu.feature", "mig")], 0.0);
    expect("gpu.recovery_action", &[("gpu.recovery_action", "none")], 1.0);
    expect("gpu.fault.active", &[("gpu.fault", "lost")], 0.0);
    expect("gpu.remapped_rows", &[("gpu.ecc.severity", "corrected")], 1.0);
    expect(
        "gpu.row_remap.banks",
        &[("gpu.row_remap.availability", "max")],
        2_559.0,
    );
    expect("gpu.process.memory", &[("process.pid", "4101")], 42_949_672_960.0);
    expect("gpu.process.memory", &[("process.pid", "4102")], 1_073_741_824.0);
    expect(
        "gpu.info",
        &[
            ("gpu.name", "NVIDIA H100 80GB HBM3"),
            ("gpu.architecture", "Hopper"),
        ],
        1.0,
    );
    expect("gpu.xid_errors", &[("gpu.xid.code", "79")], 0.0);
    expect(
        "gpu.ecc.errors",
        &[
            ("gpu.ecc.lifetime", "aggregate"),
            ("gpu.ecc.severity", "corrected"),
            ("gpu.ecc.location", "dram"),
        ],
        2.0,
    );
}

#[test]
fn performance_counters_are_what_was_between_two_passes() {
    let fake = FakeNvml::start("h100x8");
    fake.run_from(0.0);
    let watch = Watch::start(config(&fake));
    let expect = |name: &str, attributes: &[(&str, &str)], value: f64| {
        let point = watch.wait_for(name, attributes, |_| true).value;
        assert!(
            (point - value).abs() < 1e-6 * value,
            "{name} {attributes:?} is {point}"
        );
    };
    expect("gpu.sm.occupancy", &[FIRST], 0.3);
    expect("gpu.pipe.utilization", &[FIRST, ("gpu.pipe", "fp32")], 0.08);
    expect("gpu.memory.bandwidth_utilization", &[("gpu.index", "7")], 0.45);
    let busy = watch.wait_for("gpu.sm.active", &[FIRST], |_| true).value;
    assert!(
        (0.5..0.96).contains(&busy),
        "the sine begins at 55 percent, and {busy} is not on it"
    );
}

#[test]
fn what_is_unavailable_is_told_once_and_by_reason() {
    let fake = FakeNvml::start("h100x8");
    fake.run_from(0.0);
    let watch = Watch::start(config(&fake));
    watch.wait_for(
        "gpu.metric.unavailable",
        &[("gpu.metric.name", "gpu.fan.speed_ratio")],
        |_| true,
    );
    watch.wait_passes(5);
    let told: Vec<_> = watch
        .notices()
        .into_iter()
        .filter(|notice| matches!(notice, GpuNotice::Unavailable { metrics, .. } if metrics.contains(&"gpu.fan.speed_ratio")))
        .collect();
    let [GpuNotice::Unavailable { gpus, .. }] = told.as_slice() else {
        panic!("told {told:?}");
    };
    assert_eq!(
        gpus,
        &(0..8).collect::<Vec<_>>(),
        "one line for all that lack the same"
    );
    let again = watch.points(
        "gpu.metric.unavailable",
        &[FIRST, ("gpu.metric.name", "gpu.fan.speed_ratio")],
    );
    assert_eq!(again.len(), 1, "it is not said in every pass");
}

#[test]
fn standard_names_stand_in_the_place_of_ours_or_beside_them() {
    let fake = FakeNvml::start("h100x8");
    fake.run_from(0.0);
    let names = |semconv| {
        let watch = Watch::start(NvmlConfig {
            semconv,
            ..config(&fake)
        });
        watch.wait_for("gpu.throttle.time", &[], |_| true);
        watch.wait_for("gpu.sm.active", &[], |_| true);
        watch.end()
    };
    let standard = names(GpuSemconv::Hw);
    let of = |name: &str, attributes: &[(&str, &str)]| {
        let found = standard.iter().find(|point| point.is(name, attributes));
        found
            .unwrap_or_else(|| panic!("no {name} {attributes:?}"))
            .clone()
    };
    let id = ("hw.id", "GPU-5fae0c00-1f2e-4d3c-8b4a-000000000000");
    let busy = of("hw.gpu.utilization", &[id, ("hw.gpu.task", "general")]).value;
    assert!((0.6..=1.0).contains(&busy));
    assert_eq!(
        of("hw.gpu.memory.limit", &[id, ("hw.vendor", "NVIDIA")]).value,
        85_520_809_984.0
    );
    let share = of("hw.gpu.memory.utilization", &[id]).value;
    let used = of("hw.gpu.memory.usage", &[id]).value;
    assert!((share - used / 85_520_809_984.0).abs() < 1e-9);
    let at_least = |name: &str, attributes: &[(&str, &str)], least: f64| {
        let value = of(name, attributes).value;
        assert!(value >= least, "{name} is {value}");
    };
    at_least(
        "hw.gpu.io",
        &[id, ("network.io.direction", "receive")],
        2_000_000.0,
    );
    at_least("hw.power", &[id, ("hw.type", "gpu")], 500.0);
    at_least("hw.energy", &[id, ("hw.type", "gpu")], 123_456.0);
    at_least("hw.temperature", &[id, ("hw.sensor_location", "memory")], 45.0);
    assert_eq!(
        of("hw.temperature.limit", &[id, ("hw.limit_type", "high.critical")]).value,
        92.0
    );
    assert_eq!(
        of("hw.status", &[id, ("hw.state", "ok"), ("hw.type", "gpu")]).value,
        1.0
    );
    assert_eq!(of("hw.status", &[id, ("hw.state", "failed")]).value, 0.0);
    assert_eq!(of("hw.errors", &[id, ("error.type", "xid_79")]).value, 0.0);
    let port = ("hw.parent", id.1);
    assert_eq!(
        of("hw.network.up", &[port, ("hw.name", "GPU 0 nvlink 5")]).value,
        1.0
    );
    let ours = |points: &[crate::watch::Point], name: &str| points.iter().any(|point| point.name == name);
    for name in ["gpu.power", "gpu.energy", "gpu.memory.used", "gpu.utilization"] {
        let of_all = |point: &crate::watch::Point| {
            !point.attributes.contains_key("gpu.power.scope") || point.is(name, &[("gpu.power.scope", "gpu")])
        };
        let ours = standard.iter().any(|point| point.name == name && of_all(point));
        assert!(!ours, "{name} has a standard name");
    }
    let both = names(GpuSemconv::Both);
    assert!(ours(&both, "gpu.power") && ours(&both, "hw.power"));
    let own = names(GpuSemconv::Gpu);
    assert!(!own.iter().any(|point| point.name.starts_with("hw.")));
}

#[test]
fn points_carry_the_drivers_own_times_and_never_go_back() {
    let fake = FakeNvml::start("h100x8");
    let watch = Watch::start(config(&fake));
    watch.wait_for("gpu.energy", &[FIRST], |_| true);
    for second in [1.0, 2.0, 3.0] {
        fake.at(second);
        let stamped = fake.unix_nanos(second) / 1000 * 1000;
        let joules = watch.wait_for("gpu.energy", &[FIRST], |point| point.time == stamped);
        assert!(joules.value > 123_456.0);
    }
    let sent = watch.end();
    let mut last = std::collections::HashMap::new();
    for point in sent.iter().filter(|point| point.name.starts_with("gpu.")) {
        let before = last.insert(point.series(), point.time).unwrap_or_default();
        assert!(point.time >= before, "{point:?} goes back before {before}");
        assert!(
            point.start <= point.time,
            "{point:?} counts from after its own time"
        );
    }
}

#[test]
fn no_call_sleeps_and_fields_are_asked_together() {
    let fake = FakeNvml::with("h100x8", "record_calls: true");
    fake.run_from(0.0);
    let watch = Watch::start(config(&fake));
    watch.wait_for("gpu.sm.active", &[("gpu.index", "7")], |_| true);
    watch.wait_passes(6);
    drop(watch);
    let calls = fake.calls();
    assert!(
        !calls
            .iter()
            .any(|call| call.name == "nvmlDeviceGetPcieThroughput")
    );
    let count = |name: &str| {
        let of_first = |call: &&pulsetrain_tests::NvmlCall| call.name == name && call.gpu == Some(0);
        calls.iter().filter(of_first).count()
    };
    let passes = count("nvmlDeviceGetUtilizationRates");
    assert!(passes >= 6);
    // Two ask for the numbers of links; the first pass asks more than fits into one call; another asks what is seldom due.
    assert!(
        count("nvmlDeviceGetFieldValues") <= passes + 8,
        "{} calls for the fields of {passes} passes",
        count("nvmlDeviceGetFieldValues")
    );
    for once in [
        "nvmlDeviceGetName",
        "nvmlDeviceGetSerial",
        "nvmlDeviceGetVbiosVersion",
    ] {
        assert!(count(once) <= 1, "{once} never changes");
    }
    assert_eq!(count("nvmlDeviceGetFanSpeed_v2"), 0, "there are no fans to ask");
}

#[test]
fn a_machine_without_a_driver_says_so_once_and_has_no_series() {
    let watch = Watch::start(NvmlConfig {
        library: Some("/nowhere/libnvidia-ml.so.1".into()),
        ..NvmlConfig::default()
    });
    pulsetrain_tests::wait_until("it says that there is no driver", || !watch.notices().is_empty());
    assert!(matches!(watch.inventory().driver, DriverState::Absent { .. }));
    let told = watch.notices();
    let [GpuNotice::NoDriver { why, advice }] = told.as_slice() else {
        panic!("told {told:?}");
    };
    assert!(why.contains("/nowhere/libnvidia-ml.so.1") && advice.contains("library"));
    assert!(watch.end().is_empty());
}
