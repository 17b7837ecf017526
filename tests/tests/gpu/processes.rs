//! Processes on a GPU: idle ones, MPS clients, and those that are visible only per instance.

use pulsetrain_tests::{FakeNvml, NvmlCall};

use crate::watch::{Point, Watch, config};

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
        let point = watch.wait_any("gpu.process.utilization", &busy(pid));
        assert!((point.value - share).abs() < 1e-9, "{pid} is {}", point.value);
    }
    watch.wait_any("gpu.process.memory", &busy("53")[..2]);
    assert!(watch.points("gpu.process.utilization", &busy("53")).is_empty());
}

#[test]
fn mps_clients_are_listed_on_the_gpu() {
    let (_fake, watch) = Watch::of_h100(
        r#"gpus: {count: 1, each: {"0": {processes: [{pid: 61, memory_bytes: 1024},
            {pid: 62, kind: mps, memory_bytes: 2048}]}}}"#,
    );
    for (pid, bytes) in [("61", 1024.0), ("62", 2048.0)] {
        let memory = watch.wait_any("gpu.process.memory", &busy(pid)[..2]);
        assert_eq!(memory.value, bytes, "{pid}");
    }
}

#[test]
fn mig_processes_are_listed_when_listing_the_gpu_is_restricted() {
    let (_fake, watch) = Watch::scenario("mig", r#"gpus: {each: {"0": {readings: {mig.restricted: 1}}}}"#);
    let memory = watch.wait_any("gpu.process.memory", &busy("5102")[..2]);
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
    let ours = watch.wait_any("gpu.process.utilization", &busy("51"));
    assert!((ours.value - 0.4).abs() < 1e-9, "{}", ours.value);
    let sent = watch.end();
    let of_stranger = |point: &Point| point.is(&point.name, &[("process.pid", "90001")]);
    assert!(!sent.iter().any(of_stranger), "{sent:?}");
}

#[test]
fn mig_instance_xid_errors_are_counted_only_when_permitted() {
    let events = r#"events: [{at: 10, gpu: 0, data: 31, gpu_instance: 1}, {at: 10, gpu: 0, data: 79}]"#;
    let restricted = format!(
        r#"{events}
gpus: {{each: {{"0": {{readings: {{mig.restricted: 1}}}}}}}}"#
    );
    for (patch, is_seen) in [(events, true), (restricted.as_str(), false)] {
        let (fake, watch) = Watch::scenario("mig", patch);
        watch.wait_value("gpu.xid_errors", &[("gpu.xid.code", "79")], 0.0);
        fake.at(10.0);
        watch.wait_value("gpu.xid_errors", &[("gpu.xid.code", "79")], 1.0);
        let of_instance = [("gpu.xid.code", "31"), ("gpu.mig.instance_id", "1")];
        if is_seen {
            watch.wait_value("gpu.xid_errors", &of_instance, 1.0);
        }
        let seen = watch.points("gpu.xid_errors", &of_instance);
        assert_eq!(seen.iter().any(|point| point.value == 1.0), is_seen, "{patch}");
    }
}

#[test]
fn process_list_falls_back_to_v2_when_v3_is_flawed_or_missing() {
    let (flawed, watch) =
        Watch::of_h100("gpus: {count: 1}\nrecord_calls: true\ndriver: {version: 535.86.10}");
    watch.wait_any("gpu.process.memory", &busy("4101")[..2]);
    drop(watch);
    let calls = flawed.calls();
    let is_third = |call: &&NvmlCall| call.name.ends_with("RunningProcesses_v3");
    let third = calls.iter().find(is_third);
    assert!(third.is_none(), "{third:?} writes beyond its list");
    let (_old, watch) = Watch::scenario("geforce", "");
    let memory = watch.wait_any("gpu.process.memory", &busy("2202")[..2]);
    assert_eq!(memory.value, 8_589_934_592.0);
}
