//! Faults of the driver: it hangs, a GPU is lost, the driver is reloaded.

use std::time::Duration;

use pulsetrain_gpu::{DriverState, GpuConfig, GpuNotice, GpuTrouble};
use pulsetrain_tests::{FakeNvml, wait_until};

use crate::watch::{INTERVAL, Watch, config};

#[test]
fn hung_driver_ends_its_series_until_it_responds() {
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
fn source_stops_immediately_while_its_driver_hangs() {
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
fn lost_gpu_raises_a_fault_and_other_gpus_continue() {
    let fake = FakeNvml::with(
        "h100x8",
        "faults: [{what: lost, from: 10, until: 20, gpus: [1]}]\ngpus: {count: 2}",
    );
    let watch = Watch::start(GpuConfig {
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
    assert!(
        watch.inventory().gpus[1].trouble == Some(GpuTrouble::Lost)
            && watch.inventory().gpus[0].trouble.is_none()
    );
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
    let reported = watch.notices();
    let index = |wanted: fn(&GpuNotice) -> bool| reported.iter().position(wanted);
    let lost = index(|notice| {
        matches!(
            notice,
            GpuNotice::Trouble {
                gpu: 1,
                trouble: GpuTrouble::Lost,
                ..
            }
        )
    });
    let back = index(|notice| matches!(notice, GpuNotice::Back { gpu: 1, .. }));
    assert!(lost.is_some() && lost < back, "{reported:?}");
}

#[test]
fn reloaded_driver_is_read_again_without_an_agent_restart() {
    let fake = FakeNvml::with(
        "h100x8",
        "faults: [{what: driver_reload, from: 10, until: 20, forced: true}]\ngpus: {count: 2}",
    );
    let watch = Watch::start(config(&fake));
    let used = [("gpu.index", "1")];
    watch.wait_for("gpu.memory.used", &used, |_| true);
    fake.at(10.0);
    let ended = watch.wait_for("gpu.memory.used", &used, |point| point.ends);
    wait_until("it reports that there is no driver", || {
        matches!(watch.inventory().driver, DriverState::Absent { .. })
    });
    fake.at(20.0);
    watch.wait_for("gpu.memory.used", &used, |point| {
        !point.ends && point.time > ended.time
    });
    assert!(matches!(watch.inventory().driver, DriverState::Present(_)));
}

#[test]
fn hot_plugged_gpu_is_found_without_a_restart() {
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
fn pass_longer_than_two_intervals_ends_no_series() {
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

#[test]
fn three_faulty_gpus_do_not_affect_the_other_five_in_any_pass() {
    let fake = FakeNvml::with(
        "h100x8",
        "faults: [{what: answers, error: UNKNOWN, from: 10, gpus: [2]}, {what: answers, error: NO_PERMISSION, gpus: [4]}, \
         {what: hangs, from: 10, until: 70, gpus: [5]}]",
    );
    let watch = Watch::start(config(&fake));
    watch.wait_for("gpu.memory.used", &[("gpu.index", "5")], |_| true);
    fake.at(10.0);
    let fault = |index, fault| [("gpu.index", index), ("gpu.fault", fault)];
    watch.wait_for("gpu.fault.active", &fault("2", "driver_error"), |point| {
        point.value == 1.0
    });
    watch.wait_for("gpu.fault.active", &fault("5", "unresponsive"), |point| {
        point.value == 1.0
    });
    watch.wait_for("gpu.memory.used", &[("gpu.index", "5")], |point| point.ends);
    watch.wait_passes(10);
    let sent = watch.sent();
    for index in ["0", "1", "3", "6", "7"] {
        let of_it: Vec<_> = sent
            .iter()
            .filter(|point| point.is("gpu.memory.used", &[("gpu.index", index)]))
            .collect();
        assert!(
            of_it.iter().all(|point| !point.ends),
            "the series of GPU {index} has ended"
        );
        for pair in of_it.windows(2) {
            let apart = pair[1].time.saturating_sub(pair[0].time);
            assert!(apart < 3_000_000_000, "GPU {index} has a gap of {apart} ns");
        }
    }
    assert!(
        !sent.iter().any(|point| point
            .attributes
            .get("gpu.index")
            .is_some_and(|index| index == "4")),
        "a GPU of somebody else has series"
    );
    let reported: Vec<_> = watch
        .notices()
        .into_iter()
        .filter_map(|notice| match notice {
            GpuNotice::Trouble { gpu, trouble, .. } => Some((gpu, trouble)),
            _ => None,
        })
        .collect();
    for expected in [
        (2, GpuTrouble::DriverError),
        (4, GpuTrouble::NotPermitted),
        (5, GpuTrouble::Hangs),
    ] {
        let times = reported.iter().filter(|reported| **reported == expected).count();
        assert_eq!(times, 1, "{expected:?} in {reported:?}");
    }
    assert_lines(
        &watch,
        [
            "GPU 2 (GPU-5fae0c00-1f2e-4d3c-8b4a-000000000002) cannot be read: the driver fails at every call: look for NVRM and Xid in the \
             kernel log; drain the machine, stop every program on the GPU and this agent, then reset it with nvidia-smi --gpu-reset, or reboot",
            "GPU 4 (index:4) is not observed: this process may not use it: no action is needed if it belongs to another job or \
             container; otherwise give this process its /dev/nvidia*",
            "GPU 5 (GPU-5fae0c00-1f2e-4d3c-8b4a-000000000005) does not answer: a call of the driver does not return: look for Xid 119, 120 \
             (GSP) and NVRM in the kernel log; nvidia-smi hangs as well then. If it stays, drain the machine and reboot",
        ],
    );
    fake.at(70.0);
    watch.wait_for("gpu.fault.active", &fault("5", "unresponsive"), |point| {
        point.value == 0.0
    });
    watch.wait_for("gpu.memory.used", &[("gpu.index", "5")], |point| !point.ends);
}

#[test]
fn healthy_gpus_keep_one_point_per_second_despite_three_faulty_ones() {
    let fake = FakeNvml::with(
        "h100x8",
        "faults: [{what: answers, error: UNKNOWN, from: 10, gpus: [2]}, {what: answers, error: NO_PERMISSION, gpus: [4]}, \
         {what: hangs, from: 10, until: 70, gpus: [5]}]",
    );
    let watch = Watch::start(GpuConfig {
        interval: Duration::from_secs(1),
        ..config(&fake)
    });
    watch.wait_for("gpu.memory.used", &[("gpu.index", "5")], |_| true);
    fake.at(10.0);
    let hangs = [("gpu.index", "5"), ("gpu.fault", "unresponsive")];
    watch.wait_for("gpu.fault.active", &hangs, |point| point.value == 1.0);
    watch.wait_passes(3);
    for index in ["0", "1", "3", "6", "7"] {
        let points = watch.points(
            "gpu.utilization",
            &[("gpu.index", index), ("gpu.task", "general")],
        );
        assert!(points.len() >= 8, "GPU {index} has {} points", points.len());
        for pair in points.windows(2) {
            let apart = Duration::from_nanos(pair[1].time - pair[0].time);
            // A missed pass would be two seconds.
            assert!(
                apart < Duration::from_millis(1_900),
                "GPU {index} has a gap of {apart:?}"
            );
        }
    }
    fake.at(70.0);
}

/// Asserts that each of these lines is in the log exactly once.
fn assert_lines<const N: usize>(watch: &Watch, expected: [&str; N]) {
    let lines: Vec<String> = watch.notices().iter().map(ToString::to_string).collect();
    for line in expected {
        let times = lines.iter().filter(|known| *known == line).count();
        assert_eq!(times, 1, "{line:?} in {lines:#?}");
    }
}

#[test]
fn unopenable_gpus_have_distinct_fault_series_and_share_a_notice() {
    let fake = FakeNvml::with(
        "h100x8",
        "gpus: {count: 4}\nfaults: [{what: lost, until: 10, gpus: [1, 2]}, {what: answers, error: IRQ_ISSUE, gpus: [3]}]",
    );
    let watch = Watch::start(config(&fake));
    watch.wait_for("gpu.memory.used", &[("gpu.index", "0")], |_| true);
    let fault = |index, fault| [("gpu.index", index), ("gpu.fault", fault)];
    for (index, kind) in [("1", "lost"), ("2", "lost"), ("3", "driver_error")] {
        let point = watch.wait_for("gpu.fault.active", &fault(index, kind), |point| {
            point.value == 1.0
        });
        assert_eq!(point.attributes["gpu.id"], format!("index:{index}"));
    }
    watch.wait_passes(5);
    let observed = watch.notices();
    let observed = observed
        .iter()
        .filter(|notice| matches!(notice, GpuNotice::Observed { .. }));
    assert_eq!(observed.count(), 1, "{:?}", watch.notices());
    fake.at(10.0);
    watch.wait_for("gpu.memory.used", &[("gpu.index", "1")], |_| true);
    wait_until("it reports that the GPU answers", || {
        watch
            .notices()
            .iter()
            .any(|notice| matches!(notice, GpuNotice::Back { gpu: 1, .. }))
    });
}
