//! The power of a GPU: one series at a time, with the best reading that the driver has.

use std::{collections::BTreeMap, time::Duration};

use pulsetrain_sources::nvml::NvmlConfig;
use pulsetrain_tests::FakeNvml;

use crate::watch::{Point, Watch, config};

/// The field of the power at the moment.
const NO_INSTANT: &str =
    "faults: [{what: answers, error: NOT_SUPPORTED, from: 10, until: 20, fields: [186]}]";

fn of_reading(reading: &str) -> [(&str, &str); 2] {
    [("gpu.index", "0"), ("gpu.power.reading", reading)]
}

#[test]
fn the_power_of_a_gpu_is_one_series_also_where_its_reading_changes() {
    let fake = FakeNvml::with("h100x8", &format!("{NO_INSTANT}\ngpus: {{count: 1}}"));
    let watch = Watch::start(NvmlConfig {
        retry: Duration::from_millis(300),
        ..config(&fake)
    });
    let is_live = |point: &Point| !point.ends;
    watch.wait_for("gpu.power", &of_reading("instant"), is_live);
    fake.at(10.0);
    let average = watch.wait_for("gpu.power", &of_reading("average"), is_live);
    watch.wait_for("gpu.power", &of_reading("instant"), |point| point.ends);
    fake.at(20.0);
    watch.wait_for("gpu.power", &of_reading("instant"), |point| {
        is_live(point) && point.time > average.time
    });
    watch.wait_for("gpu.power", &of_reading("average"), |point| point.ends);
    watch.wait_passes(2);
    assert_one_at_a_time(&watch.points("gpu.power", &[]));
}

#[test]
fn a_gpu_without_a_reading_of_the_moment_has_its_average_as_both_metrics() {
    let fake = FakeNvml::with("missing_symbols", "gpus: {count: 1}");
    let watch = Watch::start(config(&fake));
    let power = watch.wait_for("gpu.power", &of_reading("average"), |_| true);
    let average = watch.wait_for("gpu.average_power", &[("gpu.index", "0")], |_| true);
    assert_eq!((power.value, average.value), (500.0, 500.0));
    watch.wait_passes(2);
    assert_one_at_a_time(&watch.points("gpu.power", &[]));
}

/// After each point, in the order in which they were sent, at most one series has a value.
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
