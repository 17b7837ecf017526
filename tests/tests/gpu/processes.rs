//! Processes on a GPU: idle ones, MPS clients, and those that are visible only per instance.

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
fn idle_process_reports_zero_and_garbage_utilization_is_omitted() {
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
fn mps_clients_are_listed_on_the_gpu() {
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
fn mig_processes_are_listed_when_listing_the_gpu_is_restricted() {
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
fn processes_of_another_pid_namespace_have_no_series() {
    let fake = FakeNvml::with(
        "h100x8",
        r#"gpus: {count: 1, each: {"0": {processes: [{pid: 51, memory_bytes: 1024, sm_percent: 40},
            {pid: 90001, elsewhere: true, memory_bytes: 4096, sm_percent: 60}]}}}"#,
    );
    fake.at(5.0);
    let watch = Watch::start(config(&fake));
    let ours = watch.wait_for("gpu.process.utilization", &busy("51"), |_| true);
    assert!((ours.value - 0.4).abs() < 1e-9, "{}", ours.value);
    let sent = watch.end();
    let of_stranger = |pid: &str| pid == "90001";
    let mut pids = sent
        .iter()
        .filter_map(|point| point.attributes.get("process.pid"));
    assert!(!pids.any(|pid| of_stranger(pid)), "{sent:?}");
}

#[test]
fn mig_instance_xid_errors_are_counted_only_when_permitted() {
    let events = r#"events: [{at: 10, gpu: 0, data: 31, gpu_instance: 1}, {at: 10, gpu: 0, data: 79}]"#;
    let restricted = format!(
        r#"{events}
gpus: {{each: {{"0": {{readings: {{mig.restricted: 1}}}}}}}}"#
    );
    for (patch, is_seen) in [(events, true), (restricted.as_str(), false)] {
        let fake = FakeNvml::with("mig", patch);
        let watch = Watch::start(config(&fake));
        watch.wait_for("gpu.xid_errors", &[("gpu.xid.code", "79")], |point| {
            point.value == 0.0
        });
        fake.at(10.0);
        watch.wait_for("gpu.xid_errors", &[("gpu.xid.code", "79")], |point| {
            point.value == 1.0
        });
        let of_instance = [("gpu.xid.code", "31"), ("gpu.mig.instance_id", "1")];
        if is_seen {
            watch.wait_for("gpu.xid_errors", &of_instance, |point| point.value == 1.0);
        }
        let seen = watch.points("gpu.xid_errors", &of_instance);
        assert_eq!(seen.iter().any(|point| point.value == 1.0), is_seen, "{patch}");
    }
}

#[test]
fn process_list_falls_back_to_v2_when_v3_is_flawed_or_missing() {
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
