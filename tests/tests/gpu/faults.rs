//! What goes wrong below: a driver that hangs, a GPU that is lost, a driver that is loaded anew.

use std::time::Duration;

use pulsetrain_sources::nvml::{DriverState, GpuNotice, NvmlConfig};
use pulsetrain_tests::{FakeNvml, wait_until};

use crate::watch::{INTERVAL, Watch, config};

#[test]
fn a_driver_that_hangs_ends_its_series_and_they_go_on_when_it_answers() {
    let fake = FakeNvml::with(
        "h100x8",
        "faults: [{what: hangs, from: 10, until: 20}]\ngpus: {count: 2}",
    );
    let watch = Watch::start(config(&fake));
    let busy = [("gpu.index", "0"), ("gpu.task", "general")];
    watch.wait_for("gpu.utilization", &busy, |_| true);
    fake.at(10.0);
    let end = watch.wait_for("gpu.utilization", &busy, |point| point.ends);
    let limit = [("gpu.index", "1"), ("gpu.temperature.limit_kind", "slowdown")];
    let link = [("gpu.index", "1"), ("gpu.link.index", "5")];
    for (name, of) in [("gpu.temperature_limit", limit), ("gpu.nvlink.up", link)] {
        watch.wait_for(name, &of, |point| point.ends);
    }
    let source = [("pulsetrain.source.name", "nvml")];
    let last = watch.wait_for("pulsetrain.source.last_success_time", &source, |_| true);
    assert!(
        !last.ends && last.value <= end.time as f64 / 1e9,
        "while the driver hangs it is known when it was read last: {last:?}"
    );
    let passes = watch.wait_for("pulsetrain.source.duration", &source, |_| true);
    assert!(!passes.ends && passes.value >= 1.0, "{passes:?}");
    assert!(
        watch
            .notices()
            .iter()
            .any(|notice| matches!(notice, GpuNotice::Silent { .. }))
    );
    assert_eq!(watch.inventory().driver, DriverState::Silent);
    fake.at(20.0);
    watch.wait_for("gpu.utilization", &busy, |point| {
        !point.ends && point.time > end.time
    });
    for (name, of) in [("gpu.temperature_limit", limit), ("gpu.nvlink.up", link)] {
        let again = watch.wait_for(name, &of, |point| !point.ends && point.time > end.time);
        let late = again.time.saturating_sub(
            watch
                .wait_for("gpu.utilization", &busy, |point| {
                    !point.ends && point.time > end.time
                })
                .time,
        );
        assert!(
            late < 4_000_000_000,
            "{name} comes back with the rest and not when it is due"
        );
    }
    watch.wait_for("pulsetrain.source.last_success_time", &source, |point| {
        point.value > last.value
    });
    assert!(watch.notices().contains(&GpuNotice::Answers));
    assert!(matches!(watch.inventory().driver, DriverState::Present(_)));
}

#[test]
#[expect(clippy::disallowed_methods, reason = "how long the end takes is measured")]
fn a_source_ends_at_once_while_its_driver_hangs() {
    let fake = FakeNvml::with(
        "h100x8",
        "faults: [{what: hangs, from: 10, until: 20}]\ngpus: {count: 1}",
    );
    let watch = Watch::start(config(&fake));
    watch.wait_for("gpu.memory.used", &[], |_| true);
    fake.at(10.0);
    let began = std::time::SystemTime::now();
    let sent = watch.end();
    assert!(began.elapsed().is_ok_and(|took| took < Duration::from_secs(3)));
    assert!(
        sent.iter()
            .any(|point| point.is("gpu.memory.used", &[]) && point.ends)
    );
}

#[test]
fn a_lost_gpu_is_a_fault_and_its_neighbour_goes_on() {
    let fake = FakeNvml::with(
        "h100x8",
        "faults: [{what: lost, from: 10, until: 20, gpus: [1]}]\ngpus: {count: 2}",
    );
    let watch = Watch::start(NvmlConfig {
        retry: Duration::from_millis(200),
        ..config(&fake)
    });
    let lost = [("gpu.index", "1"), ("gpu.fault", "lost")];
    let sound = watch.wait_for("gpu.fault.active", &lost, |_| true);
    assert_eq!(sound.value, 0.0);
    watch.wait_for("gpu.temperature", &[("gpu.index", "1")], |_| true);
    fake.at(10.0);
    watch.wait_for("gpu.fault.active", &lost, |point| point.value == 1.0);
    let ended = watch.wait_for("gpu.temperature", &[("gpu.index", "1")], |point| point.ends);
    let limit = [("gpu.index", "1"), ("gpu.temperature.limit_kind", "slowdown")];
    watch.wait_for("gpu.temperature_limit", &limit, |point| point.ends);
    watch.wait_for("gpu.memory.used", &[("gpu.index", "0")], |point| {
        point.time > ended.time
    });
    assert!(watch.inventory().gpus[1].lost && !watch.inventory().gpus[0].lost);
    fake.at(20.0);
    watch.wait_for("gpu.fault.active", &lost, |point| {
        point.value == 0.0 && point.time > ended.time
    });
    watch.wait_for("gpu.memory.used", &[("gpu.index", "1")], |point| {
        !point.ends && point.time > ended.time
    });
    watch.wait_for("gpu.temperature_limit", &limit, |point| {
        !point.ends && point.time > ended.time
    });
    let told = watch.notices();
    let index = |wanted: fn(&GpuNotice) -> bool| told.iter().position(wanted);
    let lost = index(|notice| matches!(notice, GpuNotice::Lost { gpu: 1, .. }));
    let back = index(|notice| matches!(notice, GpuNotice::Back { gpu: 1, .. }));
    assert!(lost.is_some() && lost < back, "told {told:?}");
}

#[test]
fn a_driver_that_was_loaded_anew_is_read_again_without_a_restart() {
    let fake = FakeNvml::with(
        "h100x8",
        "faults: [{what: driver_reload, from: 10, until: 20}]\ngpus: {count: 2}",
    );
    let watch = Watch::start(config(&fake));
    let used = [("gpu.index", "1")];
    watch.wait_for("gpu.memory.used", &used, |_| true);
    fake.at(10.0);
    let ended = watch.wait_for("gpu.memory.used", &used, |point| point.ends);
    wait_until("it says that there is no driver", || {
        matches!(watch.inventory().driver, DriverState::Absent { .. })
    });
    fake.at(20.0);
    watch.wait_for("gpu.memory.used", &used, |point| {
        !point.ends && point.time > ended.time
    });
    assert!(matches!(watch.inventory().driver, DriverState::Present(_)));
}

#[test]
fn a_gpu_that_is_plugged_in_is_found_without_a_restart() {
    let fake = FakeNvml::with(
        "h100x8",
        "faults: [{what: absent, until: 10, gpus: [1]}]\ngpus: {count: 2}",
    );
    let watch = Watch::start(config(&fake));
    watch.wait_for("gpu.memory.used", &[("gpu.index", "0")], |_| true);
    assert_eq!(watch.inventory().gpus.len(), 1);
    fake.at(10.0);
    watch.wait_for("gpu.memory.used", &[("gpu.index", "1")], |_| true);
    assert_eq!(watch.inventory().gpus.len(), 2);
}

#[test]
fn a_pass_that_takes_longer_than_two_intervals_ends_no_series() {
    let fake = FakeNvml::start("slow");
    let watch = Watch::start(config(&fake));
    let last = [("gpu.index", "7"), ("gpu.task", "general")];
    watch.wait_for("gpu.utilization", &last, |_| true);
    let source = [("pulsetrain.source.name", "nvml")];
    let passes = watch.wait_for("pulsetrain.source.duration", &source, |passes| {
        passes.value >= 3.0
    });
    assert!(
        passes.sum > passes.value * 2.0 * INTERVAL.as_secs_f64(),
        "passes are quicker than they should be: {passes:?}"
    );
    let ended: Vec<_> = watch.sent().into_iter().filter(|point| point.ends).collect();
    assert!(ended.is_empty(), "{ended:?}");
}
