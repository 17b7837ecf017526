//! Eight busy H100: every row of the table has a value or a reason, and reading them makes few driver calls.

use std::collections::BTreeSet;

use pulsetrain_gpu::{DriverState, GpuConfig, GpuNotice};

use crate::watch::{Point, Watch};

/// The attribute of the first GPU.
const FIRST: (&str, &str) = ("gpu.index", "0");

#[test]
fn every_metric_has_a_value_or_an_unavailable_reason_on_eight_h100() {
    assert_value_or_reason("h100x8", 8);
}

#[test]
fn every_metric_has_a_value_or_an_unavailable_reason_on_other_gpus() {
    for (scenario, gpus) in [
        ("b200x8", 8),
        ("gb200", 4),
        ("geforce", 1),
        ("a100x8", 8),
        ("l40s", 2),
        ("gh200", 1),
        ("mig", 2),
        ("missing_symbols", 8),
        ("not_supported", 8),
        ("later_field_ids", 8),
    ] {
        assert_value_or_reason(scenario, gpus);
    }
}

/// Asserts that each GPU has, for every metric of the table, a value or a reason for its absence.
fn assert_value_or_reason(scenario: &str, gpus: usize) {
    let (_fake, watch) = Watch::running(scenario, "");
    for gpu in 0..gpus {
        // The performance counters need two readings that are not too close.
        watch.wait_passes_of(gpu, 5);
    }
    let inventory = watch.inventory();
    assert_eq!(inventory.gpus.len(), gpus);
    let sent = watch.end();
    let metrics = pulsetrain_gpu::nvml::table()
        .iter()
        .flat_map(|row| row.also.iter().copied().chain([row.metric]))
        .map(|metric| metric.name)
        .collect::<BTreeSet<_>>();
    assert!(metrics.len() > 45, "the table has only {metrics:?}");
    for gpu in &inventory.gpus {
        let index = gpu.index.to_string();
        for metric in &metrics {
            let of_gpu = |point: &&Point| point.attributes.get("gpu.index") == Some(&index);
            let of_process = metric.starts_with("gpu.process.");
            let of_gpu_itself =
                |point: &&Point| of_process || !point.attributes.contains_key("gpu.mig.instance_id");
            let mut of_it = sent.iter().filter(of_gpu).filter(of_gpu_itself);
            let here = of_it.clone().any(|point| point.name == *metric);
            let unavailable = [("gpu.metric.name", *metric)];
            let why = of_it.any(|point| point.is("gpu.metric.unavailable", &unavailable));
            let nobody = of_process && gpu.processes.is_empty();
            assert!(
                here || why || nobody,
                "{scenario}: GPU {index} has neither {metric} nor a reason"
            );
            assert!(
                !(here && why),
                "{scenario}: GPU {index} has {metric} and lists it as missing"
            );
        }
    }
}

#[test]
fn performance_counters_cover_the_time_between_two_passes() {
    let (_fake, watch) = Watch::running("h100x8", "");
    let expect = |name: &str, attributes: &[(&str, &str)], value: f64| {
        let point = watch.wait_any(name, attributes).value;
        assert!(
            (point - value).abs() < 1e-6 * value,
            "{name} {attributes:?} is {point}"
        );
    };
    expect("gpu.sm.occupancy", &[FIRST], 0.3);
    expect("gpu.pipe.utilization", &[FIRST, ("gpu.pipe", "fp32")], 0.08);
    expect("gpu.memory.bandwidth_utilization", &[("gpu.index", "7")], 0.45);
    let busy = watch.wait_any("gpu.sm.active", &[FIRST]).value;
    assert!(
        (0.5..0.96).contains(&busy),
        "the sine begins at 55 percent, and {busy} is not on it"
    );
}

#[test]
fn unavailable_metrics_are_reported_once_and_grouped_by_reason() {
    let (_fake, watch) = Watch::running("h100x8", "");
    watch.wait_any(
        "gpu.metric.unavailable",
        &[("gpu.metric.name", "gpu.fan.speed_ratio")],
    );
    watch.wait_passes(5);
    let notices: Vec<_> = watch
        .notices()
        .into_iter()
        .filter(|notice| matches!(notice, GpuNotice::Unavailable { metrics, .. } if metrics.iter().any(|metric| metric.name == "gpu.fan.speed_ratio")))
        .collect();
    let [GpuNotice::Unavailable { gpus, .. }] = notices.as_slice() else {
        panic!("{notices:?}");
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
    assert_eq!(again.len(), 1, "it is not reported in every pass");
}

#[test]
fn points_have_driver_timestamps_that_never_decrease() {
    let (fake, watch) = Watch::of_h100("");
    watch.wait_any("gpu.energy", &[FIRST]);
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
fn passes_avoid_blocking_calls_and_batch_field_requests() {
    let (fake, watch) = Watch::running("h100x8", "record_calls: true");
    watch.wait_any("gpu.sm.active", &[("gpu.index", "7")]);
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
    // One call for the scopes of the power sensors, two for the numbers of links, one for the errors of lanes; the first pass
    // needs more than fits into one call, and another call reads the rarely read values. On a slow machine those are read
    // again.
    let rounds = 1 + passes / 40;
    assert!(
        count("nvmlDeviceGetFieldValues") <= passes + 10 * rounds,
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
fn missing_driver_is_reported_once_and_yields_no_series() {
    let watch = Watch::start(GpuConfig {
        library: Some("/nowhere/libnvidia-ml.so.1".into()),
        ..GpuConfig::default()
    });
    pulsetrain_tests::wait_until("there is a notice", || !watch.notices().is_empty());
    assert!(matches!(watch.inventory().driver, DriverState::Absent { .. }));
    let notices = watch.notices();
    let [GpuNotice::NoDriver(problem)] = notices.as_slice() else {
        panic!("{notices:?}");
    };
    assert!(problem.what.contains("/nowhere/libnvidia-ml.so.1"));
    assert!(
        problem
            .remedy
            .as_ref()
            .is_some_and(|remedy| remedy.contains("library"))
    );
    assert!(watch.end().is_empty());
}
