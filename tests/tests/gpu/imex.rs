//! The state of IMEX from a fake `nvidia-imex-ctl`, whose output has the formats of DCGM's `DcgmImexManagerTests.cpp`.

use std::{
    fs,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
    time::Duration,
};

use pulsetrain_gpu::{GpuConfig, GpuNotice, ImexConfig, ImexProgram};
use pulsetrain_tests::{FakeNvml, Folder, wait_until};

use crate::watch::{Point, Watch, config};

const UP: &str = r#"{"nodes":{"0":{"status":"READY"}},"timestamp":"5/22/2025 19:46:40.891","status":"UP"}"#;
const DEGRADED: &str = r#"{"nodes":{
    "3": {"status":"READY","host":"10.76.186.255",
        "connections":{"1":{"host":"10.76.183.30","status":"CONNECTED","changed":true},
            "6":{"host":"10.76.190.23","status":"CONNECTED","changed":true}},
        "changed":true,"version":"580.30","hostName":""}},
    "timestamp":"5/22/2025 19:46:40.891",
    "status":"DEGRADED"}"#;
const DOMAIN: &str = "gpu.imex.domain_state";
const DAEMON: &str = "gpu.imex.daemon_state";

/// A program with scripted output.
struct Program(Folder);

impl Program {
    fn new(domain: &str, daemon: &str) -> Self {
        let folder = Folder::new();
        let tool = Path::new(env!("CARGO_MANIFEST_DIR")).join("fake-nvml/tools/nvidia-imex-ctl");
        symlink(tool, folder.path("nvidia-imex-ctl")).expect("a link can be made");
        let program = Self(folder);
        program.write("domain", domain);
        program.write("daemon", daemon);
        program
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path(name)
    }

    /// Replaces a file atomically: the program never reads a partial file.
    fn write(&self, name: &str, text: &str) {
        let next = self.path("next");
        fs::write(&next, text).expect("the file can be written");
        fs::rename(next, self.path(name)).expect("the file can be renamed");
    }

    fn remove(&self, name: &str) {
        fs::remove_file(self.path(name)).expect("the file can be removed");
    }

    /// Returns the pids that were started so far.
    fn started(&self) -> Vec<u32> {
        let lines = fs::read_to_string(self.path("started")).unwrap_or_default();
        lines.lines().filter_map(|line| line.parse().ok()).collect()
    }

    fn watch(&self, config: GpuConfig) -> Watch {
        Watch::start(GpuConfig {
            imex: ImexConfig {
                program: ImexProgram::At(self.path("nvidia-imex-ctl")),
                interval: Duration::from_millis(100),
                timeout: Duration::from_millis(500),
            },
            ..config
        })
    }
}

fn lives(pid: u32) -> bool {
    Path::new(&format!("/proc/{pid}")).exists()
}

fn holds(watch: &Watch, metric: &str, state: &str) -> Point {
    watch.wait_value(metric, &[(metric, state)], 1.0)
}

/// Returns the messages about IMEX so far.
fn failures(watch: &Watch) -> Vec<String> {
    let notices = watch.notices();
    let all = notices.iter().filter_map(|notice| match notice {
        GpuNotice::Imex { why } => Some(why.clone()),
        _ => None,
    });
    all.collect()
}

fn series(watch: &Watch) -> usize {
    watch.points(DOMAIN, &[]).len() + watch.points(DAEMON, &[]).len()
}

#[test]
fn imex_domain_and_daemon_states_match_the_program_output() {
    let fake = FakeNvml::start("gb200");
    let program = Program::new(UP, "READY\n");
    let watch = program.watch(config(&fake));
    let up = holds(&watch, DOMAIN, "up");
    assert_eq!(up.unit, "{state}");
    assert!(up.attributes.len() == 1, "{up:?} is of the host");
    holds(&watch, DAEMON, "ready");
    for state in ["degraded", "down", "other"] {
        watch.wait_value(DOMAIN, &[(DOMAIN, state)], 0.0);
    }
    program.write("domain", DEGRADED);
    program.write("daemon", "WAITING_FOR_PEERS\n");
    holds(&watch, DOMAIN, "degraded");
    holds(&watch, DAEMON, "waiting_for_peers");
    watch.wait_value(DOMAIN, &[(DOMAIN, "up")], 0.0);
    program.write("domain", r#"{"status":"REBALANCING"}"#);
    holds(&watch, DOMAIN, "other");
    assert_eq!(failures(&watch), [""; 0]);
}

#[test]
fn failing_imex_program_reports_one_notice_and_no_series() {
    let fake = FakeNvml::start("gb200");
    let program = Program::new(UP, "READY\n");
    program.write("fails", "");
    let watch = program.watch(config(&fake));
    wait_until("the failure is reported", || failures(&watch).len() == 1);
    let why = failures(&watch).remove(0);
    assert!(why.contains("-N -j: exit status: 1"), "{why}");
    assert!(why.contains("Failed to connect to the IMEX daemon"), "{why}");
    let runs = program.started().len();
    wait_until("it is tried again", || program.started().len() > runs + 4);
    assert_eq!((failures(&watch).len(), series(&watch)), (1, 0));
    program.remove("fails");
    holds(&watch, DAEMON, "ready");
    holds(&watch, DOMAIN, "up");
    program.write("fails", "");
    watch.wait_end(DAEMON, &[(DAEMON, "ready")]);
    watch.wait_end(DOMAIN, &[(DOMAIN, "up")]);
    wait_until("the second failure is reported", || failures(&watch).len() == 2);
}

#[test]
fn invalid_imex_output_is_reported_and_yields_no_series() {
    let fake = FakeNvml::start("gb200");
    let program = Program::new("<html>502 Bad Gateway</html>", "READY\n");
    let watch = program.watch(config(&fake));
    holds(&watch, DAEMON, "ready");
    wait_until("the garbage is reported", || failures(&watch).len() == 1);
    assert!(failures(&watch)[0].contains("502 Bad Gateway"));
    assert!(
        watch.points(DOMAIN, &[]).is_empty(),
        "the daemon alone has a state"
    );
    drop(watch);
    let program = Program::new(
        "Failed to read node configuration file\n",
        "Failed to read node configuration file\n",
    );
    let watch = program.watch(config(&fake));
    wait_until("it is reported", || failures(&watch).len() == 1);
    assert!(failures(&watch)[0].ends_with("IMEX is not configured"));
    assert_eq!(series(&watch), 0);
}

#[test]
fn hung_imex_program_is_killed_without_losing_gpu_points() {
    let fake = FakeNvml::start("gb200");
    fake.run_from(0.0);
    let program = Program::new(UP, "READY\n");
    program.write("hang", "");
    let watch = program.watch(config(&fake));
    wait_until("the program runs", || program.started().len() == 1);
    let first = program.started()[0];
    // The timeout is longer than four passes of 120 ms.
    watch.wait_passes(3);
    let during = failures(&watch);
    wait_until("the program is killed", || !lives(first));
    wait_until("the hang is reported", || failures(&watch).len() == 1);
    assert!(failures(&watch)[0].contains("did not end within 500ms and was killed"));
    assert!(during.len() <= 1 && series(&watch) == 0);
    let hanging = program.started().len();
    wait_until("it is tried again", || program.started().len() > hanging);
    let started = program.started();
    watch.end();
    wait_until("nothing runs after the end", || {
        !program.started().iter().chain(&started).any(|pid| lives(*pid))
    });
}

#[test]
fn imex_is_observed_without_a_driver() {
    let program = Program::new(UP, "READY\n");
    let fake = FakeNvml::start("gb200");
    let watch = program.watch(GpuConfig {
        library: Some(program.path("libnvidia-ml.so.1")),
        sysfs: program.path("sys"),
        ..config(&fake)
    });
    holds(&watch, DOMAIN, "up");
    wait_until("the driver is missed", || {
        watch.count_notices(|notice| matches!(notice, GpuNotice::NoDriver { .. })) > 0
    });
    program.write("daemon", "SHUTTING_DOWN\n");
    holds(&watch, DAEMON, "shutting_down");
    let ends = watch.points(DOMAIN, &[]).iter().any(|point| point.ends);
    assert!(!ends, "the series of IMEX do not end with the driver's");
}
