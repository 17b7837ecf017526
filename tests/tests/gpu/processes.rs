//! Processes on a GPU: those that are idle, clients of MPS, and those that may only be seen by instance.

use pulsetrain_tests::FakeNvml;

use crate::watch::{Watch, config};

fn busy(pid: &'static str) -> [(&'static str, &'static str); 3] {
    [
        ("gpu.index", "0"),
        ("process.pid", pid),
        ("gpu.engine.name", "sm"),
    ]
}

#[test]
fn a_process_that_is_idle_has_zero_and_one_with_garbage_has_nothing() {
    // Some drivers fill samples with garbage.
    let fake = FakeNvml::with(
        "h100x8",
        r#"gpus: {count: 1, each: {"0": {processes: [{pid: 51, memory_bytes: 1024, sm_percent: 40},
            {pid: 52, memory_bytes: 1024, sm_percent: 0}, {pid: 53, memory_bytes: 1024, sm_percent: 4294967295}]}}}"#,
    );
    fake.at(5.0);
    let watch = Watch::start(config(&fake));
    for (pid, share) in [("51", 0.4), ("52", 0.0)] {
        let point = watch.wait_for("gpu.process.utilization", &busy(pid), |_| true);
        assert!((point.value - share).abs() < 1e-9, "{pid} is {}", point.value);
    }
    watch.wait_for("gpu.process.memory", &busy("53")[..2], |_| true);
    assert!(watch.points("gpu.process.utilization", &busy("53")).is_empty());
}

#[test]
fn clients_of_mps_are_on_the_gpu() {
    let fake = FakeNvml::with(
        "h100x8",
        r#"gpus: {count: 1, each: {"0": {processes: [{pid: 61, memory_bytes: 1024},
            {pid: 62, kind: mps, memory_bytes: 2048}]}}}"#,
    );
    let watch = Watch::start(config(&fake));
    for (pid, bytes) in [("61", 1024.0), ("62", 2048.0)] {
        let memory = watch.wait_for("gpu.process.memory", &busy(pid)[..2], |_| true);
        assert_eq!(memory.value, bytes, "{pid}");
    }
}

#[test]
fn processes_of_instances_are_seen_by_those_who_may_not_list_the_gpu() {
    let fake = FakeNvml::with("mig", r#"gpus: {each: {"0": {readings: {mig.restricted: 1}}}}"#);
    let watch = Watch::start(config(&fake));
    let memory = watch.wait_for("gpu.process.memory", &busy("5102")[..2], |_| true);
    assert_eq!(memory.value, 34_359_738_368.0);
    let gpu = &watch.inventory().gpus[0];
    let of_instance = |pid, instance| {
        let mut processes = gpu.processes.iter();
        processes.any(|process| (process.pid, process.gpu_instance_id) == (pid, Some(instance)))
    };
    assert!(
        of_instance(5101, 1) && of_instance(5102, 2),
        "{:?}",
        gpu.processes
    );
}

#[test]
fn processes_are_listed_by_the_second_version_where_the_third_is_flawed_or_missing() {
    let flawed = FakeNvml::with(
        "h100x8",
        "gpus: {count: 1}\nrecord_calls: true\ndriver: {version: 535.86.10}",
    );
    let watch = Watch::start(config(&flawed));
    watch.wait_for("gpu.process.memory", &busy("4101")[..2], |_| true);
    drop(watch);
    let calls = flawed.calls();
    let third = calls
        .iter()
        .find(|call| call.name.ends_with("RunningProcesses_v3"));
    assert!(third.is_none(), "{third:?} writes beyond its list");
    let old = FakeNvml::start("geforce");
    let watch = Watch::start(config(&old));
    let memory = watch.wait_for("gpu.process.memory", &busy("2202")[..2], |_| true);
    assert_eq!(memory.value, 8_589_934_592.0);
}
