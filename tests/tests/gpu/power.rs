//! The power of a GPU: one series at a time, from the best reading of the driver.

use std::{collections::BTreeMap, time::Duration};

use pulsetrain_gpu::{GpuConfig, GpuSemconv, Reason};
use pulsetrain_tests::FakeNvml;

use crate::watch::{Point, Watch, config, config_with};

/// A fault of the field for instantaneous power.
const NO_INSTANT: &str =
    "faults: [{what: answers, error: NOT_SUPPORTED, from: 10, until: 20, fields: [186]}]";

fn of_reading(reading: &str) -> [(&str, &str); 2] {
    [("gpu.index", "0"), ("gpu.power.reading", reading)]
}

#[test]
fn power_switches_between_readings_without_overlapping_series() {
    let fake = FakeNvml::with("h100x8", &format!("{NO_INSTANT}\ngpus: {{count: 1}}"));
    let watch = Watch::start(GpuConfig {
        retry: Duration::from_millis(300),
        ..config(&fake)
    });
    let is_live = |point: &Point| !point.ends;
    watch.wait_for("gpu.power", &of_reading("instant"), is_live);
    fake.at(10.0);
    let average = watch.wait_for("gpu.power", &of_reading("average"), is_live);
    watch.wait_end("gpu.power", &of_reading("instant"));
    fake.at(20.0);
    watch.wait_for("gpu.power", &of_reading("instant"), |point| {
        is_live(point) && point.time > average.time
    });
    watch.wait_end("gpu.power", &of_reading("average"));
    watch.wait_passes(2);
    assert_one_at_a_time(&watch.points("gpu.power", &[]));
}

#[test]
fn gpu_without_instant_power_uses_the_average_for_both_metrics() {
    let (_fake, watch) = Watch::scenario("missing_symbols", "gpus: {count: 1}");
    let power = watch.wait_any("gpu.power", &of_reading("average"));
    let average = watch.wait_any("gpu.average_power", &[("gpu.index", "0")]);
    assert_eq!((power.value, average.value), (500.0, 500.0));
    watch.wait_passes(2);
    assert_one_at_a_time(&watch.points("gpu.power", &[]));
}

#[test]
fn a100_reports_only_instant_power() {
    // Without the fields of newer drivers there is one call, which returns instantaneous power on this chip.
    for driver in ["", "missing_symbols: [nvmlDeviceGetFieldValues]"] {
        let (_fake, watch) = Watch::scenario("a100x8", &format!("gpus: {{count: 1}}\n{driver}"));
        let power = watch.wait_any("gpu.power", &of_reading("instant"));
        assert_eq!(power.value, 500.0);
        watch.wait_passes(2);
        for absent in [
            ("gpu.power", &of_reading("average")[1..]),
            ("gpu.average_power", &[]),
        ] {
            assert!(
                watch.points(absent.0, absent.1).is_empty(),
                "{absent:?} with {driver:?}"
            );
        }
    }
}

#[test]
fn memory_reports_average_power_and_a_board_without_cpu_no_module_power() {
    let (_fake, watch) = Watch::of_h100("gpus: {count: 1}");
    let memory = watch.wait_any("gpu.memory_power", &of_reading("average"));
    assert_eq!(memory.value, 70.0);
    let energy = watch.wait_any("gpu.energy", &[("gpu.index", "0")]);
    assert_eq!(energy.value, 123_456.0);
    watch.wait_passes(2);
    for of_module in ["gpu.module_power", "gpu.module_energy"] {
        assert!(watch.points(of_module, &[]).is_empty(), "{of_module}");
    }
}

#[test]
fn superchip_with_module_sensors_reports_no_gpu_power_or_energy() {
    let fake = FakeNvml::start("gh200");
    let watch = Watch::start(config_with(&fake, GpuSemconv::Both));
    let power = watch.wait_any("gpu.module_power", &of_reading("instant"));
    let energy = watch.wait_any("gpu.module_energy", &[("gpu.index", "0")]);
    assert_eq!((power.value, energy.value), (620.0, 123_456.0));
    for name in [
        "gpu.power",
        "gpu.average_power",
        "gpu.energy",
        "gpu.power_distribution",
    ] {
        watch.wait_any("gpu.metric.unavailable", &[("gpu.metric.name", name)]);
    }
    let missing = watch.inventory().gpus[0].missing();
    let missing = &missing[&Reason::NotSupported];
    let energy = missing.iter().find(|metric| metric.name == "gpu.energy");
    assert!(
        energy.is_some_and(|metric| metric.meaning.contains("gpu.module_energy")),
        "{missing:?}"
    );
    watch.wait_passes(2);
    let sent = watch.end();
    let of_gpu = [
        "gpu.power",
        "gpu.average_power",
        "gpu.energy",
        "gpu.power_distribution",
        "hw.power",
        "hw.energy",
    ];
    let wrong = sent.iter().find(|point| of_gpu.contains(&point.name.as_str()));
    assert!(wrong.is_none(), "{wrong:?} is of the module");
}

/// Asserts that, after each point in the order of sending, at most one series has a value.
fn assert_one_at_a_time(points: &[Point]) {
    let mut live = BTreeMap::new();
    for point in points {
        if point.ends {
            live.remove(&point.series());
        } else {
            live.insert(point.series(), point.value);
        }
        assert!(live.len() <= 1, "{live:?} at once");
    }
    assert_eq!(live.len(), 1);
}
