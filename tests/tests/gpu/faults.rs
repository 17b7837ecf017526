//! Faults of the driver: it hangs, a GPU is lost, the driver is reloaded.

use std::time::Duration;

use pulsetrain_gpu::{DriverState, GpuConfig, GpuNotice, GpuTrouble};
use pulsetrain_tests::{FakeNvml, wait_until};

use crate::watch::{INTERVAL, Point, Watch, config};

/// Faults of three of eight GPUs.
const THREE_FAULTY: &str = "faults: [{what: answers, error: UNKNOWN, from: 10, gpus: [2]}, \
    {what: answers, error: NO_PERMISSION, gpus: [4]}, {what: hangs, from: 10, until: 70, gpus: [5]}]";

#[test]
fn hung_driver_ends_its_series_until_it_responds() {
    let (fake, watch) = Watch::of_h100("faults: [{what: hangs, from: 10, until: 20}]\ngpus: {count: 2}");
    let busy = [("gpu.index", "0"), ("gpu.task", "general")];
    watch.wait_any("gpu.utilization", &busy);
    fake.at(10.0);
    let end = watch.wait_end("gpu.utilization", &busy);
    let limit = [("gpu.index", "1"), ("gpu.temperature.limit_kind", "slowdown")];
    let link = [("gpu.index", "1"), ("gpu.link.index", "5")];
    for (name, of) in [("gpu.temperature_limit", limit), ("gpu.nvlink.up", link)] {
        watch.wait_end(name, &of);
    }
    let source = [("pulsetrain.source.name", "nvml")];
    let last = watch.wait_any("pulsetrain.source.last_success_time", &source);
    assert!(
        !last.ends && last.value <= end.time as f64 / 1e9,
        "while the driver hangs it is known when it was read last: {last:?}"
    );
    let passes = watch.wait_any("pulsetrain.source.duration", &source);
    assert!(!passes.ends && passes.value >= 1.0, "{passes:?}");
    assert!(watch.count_notices(|notice| matches!(notice, GpuNotice::Silent { .. })) > 0);
    assert_eq!(watch.inventory().driver, DriverState::Silent);
    fake.at(20.0);
    watch.wait_back("gpu.utilization", &busy, &end);
    for (name, of) in [("gpu.temperature_limit", limit), ("gpu.nvlink.up", link)] {
        let again = watch.wait_back(name, &of, &end);
        let first = watch.wait_back("gpu.utilization", &busy, &end);
        let late = again.time.saturating_sub(first.time);
        assert!(late < 4_000_000_000, "{name} is {late} ns later than the rest");
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
    let (fake, watch) = Watch::of_h100("faults: [{what: hangs, from: 10, until: 20}]\ngpus: {count: 1}");
    watch.wait_any("gpu.memory.used", &[]);
    fake.at(10.0);
    let began = std::time::SystemTime::now();
    let sent = watch.end();
    assert!(began.elapsed().is_ok_and(|took| took < Duration::from_secs(3)));
    let has_ended = |point: &Point| point.is("gpu.memory.used", &[]) && point.ends;
    assert!(sent.iter().any(has_ended));
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
    let sound = watch.wait_any("gpu.fault.active", &lost);
    assert_eq!(sound.value, 0.0);
    watch.wait_any("gpu.temperature", &[("gpu.index", "1")]);
    fake.at(10.0);
    watch.wait_value("gpu.fault.active", &lost, 1.0);
    let ended = watch.wait_end("gpu.temperature", &[("gpu.index", "1")]);
    let limit = [("gpu.index", "1"), ("gpu.temperature.limit_kind", "slowdown")];
    watch.wait_end("gpu.temperature_limit", &limit);
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
    watch.wait_back("gpu.memory.used", &[("gpu.index", "1")], &ended);
    watch.wait_back("gpu.temperature_limit", &limit, &ended);
    let reported = watch.notices();
    let index = |wanted: fn(&GpuNotice) -> bool| reported.iter().position(wanted);
    let lost = index(|notice| matches!(notice, GpuNotice::Trouble { gpu: 1, .. }));
    let back = index(|notice| matches!(notice, GpuNotice::Back { gpu: 1, .. }));
    assert!(lost.is_some() && lost < back, "{reported:?}");
    assert_eq!(watch.troubles(1).first(), Some(&GpuTrouble::Lost));
}

#[test]
fn reloaded_driver_is_read_again_without_an_agent_restart() {
    let (fake, watch) = Watch::of_h100(
        "faults: [{what: driver_reload, from: 10, until: 20, forced: true}]\ngpus: {count: 2}",
    );
    let used = [("gpu.index", "1")];
    watch.wait_any("gpu.memory.used", &used);
    fake.at(10.0);
    let ended = watch.wait_end("gpu.memory.used", &used);
    wait_until("it reports that there is no driver", || {
        matches!(watch.inventory().driver, DriverState::Absent { .. })
    });
    fake.at(20.0);
    watch.wait_back("gpu.memory.used", &used, &ended);
    assert!(matches!(watch.inventory().driver, DriverState::Present(_)));
}

#[test]
fn hot_plugged_gpu_is_found_without_a_restart() {
    let (fake, watch) = Watch::of_h100("faults: [{what: absent, until: 10, gpus: [1]}]\ngpus: {count: 2}");
    watch.wait_any("gpu.memory.used", &[("gpu.index", "0")]);
    assert_eq!(watch.inventory().gpus.len(), 1);
    fake.at(10.0);
    watch.wait_any("gpu.memory.used", &[("gpu.index", "1")]);
    assert_eq!(watch.inventory().gpus.len(), 2);
}

#[test]
fn pass_longer_than_two_intervals_ends_no_series() {
    let (_fake, watch) = Watch::scenario("slow", "");
    let last = [("gpu.index", "7"), ("gpu.task", "general")];
    watch.wait_any("gpu.utilization", &last);
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
    let (fake, watch) = Watch::of_h100(THREE_FAULTY);
    watch.wait_any("gpu.memory.used", &[("gpu.index", "5")]);
    fake.at(10.0);
    let fault = |index, fault| [("gpu.index", index), ("gpu.fault", fault)];
    watch.wait_value("gpu.fault.active", &fault("2", "driver_error"), 1.0);
    watch.wait_value("gpu.fault.active", &fault("5", "unresponsive"), 1.0);
    watch.wait_end("gpu.memory.used", &[("gpu.index", "5")]);
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
    let of_fourth = |point: &Point| point.is(&point.name, &[("gpu.index", "4")]);
    assert!(!sent.iter().any(of_fourth), "a GPU of somebody else has series");
    for (gpu, expected) in [
        (2, GpuTrouble::DriverError),
        (4, GpuTrouble::NotPermitted),
        (5, GpuTrouble::Hangs),
    ] {
        let troubles = watch.troubles(gpu);
        let times = troubles.iter().filter(|trouble| **trouble == expected).count();
        assert_eq!(times, 1, "{expected:?} in {troubles:?}");
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
    watch.wait_value("gpu.fault.active", &fault("5", "unresponsive"), 0.0);
    watch.wait_for("gpu.memory.used", &[("gpu.index", "5")], |point| !point.ends);
}

#[test]
fn healthy_gpus_keep_one_point_per_second_despite_three_faulty_ones() {
    let fake = FakeNvml::with("h100x8", THREE_FAULTY);
    let watch = Watch::start(GpuConfig {
        interval: Duration::from_secs(1),
        ..config(&fake)
    });
    watch.wait_any("gpu.memory.used", &[("gpu.index", "5")]);
    fake.at(10.0);
    let hangs = [("gpu.index", "5"), ("gpu.fault", "unresponsive")];
    watch.wait_value("gpu.fault.active", &hangs, 1.0);
    watch.wait_passes(3);
    for index in ["0", "1", "3", "6", "7"] {
        let busy = [("gpu.index", index), ("gpu.task", "general")];
        let points = watch.points("gpu.utilization", &busy);
        assert!(points.len() >= 8, "GPU {index} has {} points", points.len());
        for pair in points.windows(2) {
            let apart = pair[1].time - pair[0].time;
            // A missed pass would be two seconds.
            assert!(apart < 1_900_000_000, "GPU {index} has a gap of {apart} ns");
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
    let (fake, watch) = Watch::of_h100(
        "gpus: {count: 4}\nfaults: [{what: lost, until: 10, gpus: [1, 2]}, {what: answers, error: IRQ_ISSUE, gpus: [3]}]",
    );
    watch.wait_any("gpu.memory.used", &[("gpu.index", "0")]);
    let fault = |index, fault| [("gpu.index", index), ("gpu.fault", fault)];
    for (index, kind) in [("1", "lost"), ("2", "lost"), ("3", "driver_error")] {
        let point = watch.wait_value("gpu.fault.active", &fault(index, kind), 1.0);
        assert_eq!(point.attributes["gpu.id"], format!("index:{index}"));
    }
    watch.wait_passes(5);
    let observed = watch.count_notices(|notice| matches!(notice, GpuNotice::Observed { .. }));
    assert_eq!(observed, 1, "{:?}", watch.notices());
    fake.at(10.0);
    watch.wait_any("gpu.memory.used", &[("gpu.index", "1")]);
    wait_until("it reports that the GPU answers", || {
        watch.count_notices(|notice| matches!(notice, GpuNotice::Back { gpu: 1, .. })) > 0
    });
}
