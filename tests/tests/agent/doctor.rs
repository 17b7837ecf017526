//! `pulsetrain doctor` in worlds with known faults: a fake driver, receivers of all kinds, unusual variables.

use std::{
    fs::{self, Permissions},
    io::{Read, Write},
    net::TcpListener,
    os::unix::fs::PermissionsExt,
    process::Command,
    thread,
};

use pulsetrain_tests::{
    Answer, Certificates, Collector, FakeEndpoint, FakeNvml, Finished, Folder, Judge, Prometheus,
    as_unprivileged, command, free_port, some_or_return, wait_until,
};
use serde_json::Value;

use crate::world::World;

/// The findings, and the exit code.
pub(crate) struct Findings {
    code: Option<i32>,
    pub(crate) all: Vec<Value>,
}

/// Variables that a developer's shell may have, and that `doctor` reads.
const OF_LAUNCHERS: [&str; 7] = [
    "RANK",
    "LOCAL_RANK",
    "WORLD_SIZE",
    "CUDA_VISIBLE_DEVICES",
    "NVIDIA_VISIBLE_DEVICES",
    "SLURM_PROCID",
    "LD_LIBRARY_PATH",
];

fn doctor(configure: impl FnOnce(&mut Command)) -> Findings {
    let mut command = command(["doctor", "--json"]);
    configure(&mut command);
    findings_of(command)
}

/// Runs a command of `doctor --json`, without the launcher variables that the command does not set itself.
pub(crate) fn findings_of(mut command: Command) -> Findings {
    let own: Vec<_> = command.get_envs().map(|(name, _)| name.to_owned()).collect();
    for name in OF_LAUNCHERS
        .iter()
        .filter(|name| own.iter().all(|own| own != *name))
    {
        command.env_remove(name);
    }
    let finished = Finished::run(&mut command);
    let report: Value =
        serde_json::from_str(&finished.stdout).unwrap_or_else(|error| panic!("{error}: {finished:?}"));
    let findings = Findings {
        code: finished.code,
        all: report["findings"].as_array().expect("a list").clone(),
    };
    assert_eq!(report["wrong"], findings.at("wrong").len(), "{report}");
    assert_eq!(
        findings.code,
        Some(i32::from(!findings.at("wrong").is_empty())),
        "the exit code shows whether something is wrong: {report}"
    );
    for finding in findings.at("wrong").iter().chain(&findings.at("warning")) {
        assert!(finding["do"].is_string(), "no remedy: {finding}");
    }
    findings
}

impl Findings {
    fn at(&self, level: &str) -> Vec<&Value> {
        self.all
            .iter()
            .filter(|finding| finding["level"] == level)
            .collect()
    }

    /// Returns the findings of a level whose places begin with `place`, each as one line.
    fn lines(&self, level: &str, place: &str) -> Vec<String> {
        let at = self.at(level);
        let there = at.iter().filter(|finding| {
            let found = finding["place"].as_str().unwrap_or_default();
            found.starts_with(place)
        });
        there
            .map(|finding| finding["what"].as_str().unwrap_or_default().to_owned())
            .collect()
    }

    #[track_caller]
    /// Asserts that a finding has these words, in its text or in its fix.
    fn assert_finding(&self, level: &str, place: &str, words: &str) {
        let has_words = |finding: &&Value| {
            let text = |key: &str| finding[key].as_str().unwrap_or_default();
            text("place").starts_with(place) && (text("what").contains(words) || text("do").contains(words))
        };
        assert!(
            self.at(level).iter().any(has_words),
            "{level} at {place}: {words}? {:#?}",
            self.all
        );
    }
}

#[test]
fn healthy_machine_lists_its_findings_and_exits_with_zero() {
    let driver = FakeNvml::start("h100x8");
    let endpoint = FakeEndpoint::start([], Answer::Accept);
    let findings = doctor(|command| {
        command.env("LD_LIBRARY_PATH", driver.folder());
        command.args(["--to", &endpoint.url()]);
    });
    assert_eq!(findings.lines("wrong", ""), [""; 0]);
    findings.assert_finding("ok", "GPU driver", "8 GPUs; driver 570.86.15");
    for gpu in 0..8 {
        findings.assert_finding("ok", &format!("GPU {gpu}"), "NVIDIA H100 80GB HBM3");
    }
    for signal in ["traces", "metrics", "logs"] {
        let place = format!("endpoint {}/v1/{signal}", endpoint.url());
        findings.assert_finding("ok", &place, "takes an empty request");
    }
    findings.assert_finding("ok", "endpoint", "its clock agrees with ours");
    let paths: Vec<_> = endpoint
        .received()
        .into_iter()
        .map(|request| request.path)
        .collect();
    assert!(paths.contains(&"/v1/logs".to_owned()), "{paths:?}");
}

#[test]
fn lost_mig_and_unsupported_gpus_are_reported_with_reasons() {
    let lost = FakeNvml::start("gpu_lost");
    lost.at(15.0);
    let found = doctor(|command| {
        command.env("LD_LIBRARY_PATH", lost.folder());
    });
    found.assert_finding("wrong", "GPU 3", "no longer answers (GPU is lost)");
    assert_eq!(found.lines("wrong", "GPU 2"), [""; 0]);

    let split = FakeNvml::start("mig");
    let found = doctor(|command| {
        command.env("LD_LIBRARY_PATH", split.folder());
    });
    found.assert_finding("ok", "GPU 0", "MIG instances");

    let mute = FakeNvml::start("not_supported");
    mute.at(5.0);
    let found = doctor(|command| {
        command.env("LD_LIBRARY_PATH", mute.folder());
    });
    found.assert_finding("warning", "GPU 0", "gpu.process.utilization (no_permission)");
    found.assert_finding(
        "ok",
        "GPU 0",
        "gpu.fan.speed_ratio, gpu.fan.speed, gpu.fan.target_ratio (not_supported: the GPU has no fan of its own: the server cools it)",
    );
}

#[test]
fn hung_driver_is_reported_within_the_timeout() {
    let driver = FakeNvml::start("hang");
    driver.at(15.0);
    let found = doctor(|command| {
        command
            .env("LD_LIBRARY_PATH", driver.folder())
            .args(["--timeout", "0.5"]);
    });
    found.assert_finding("wrong", "GPU driver", "does not answer");
}

#[test]
fn machine_without_a_gpu_is_not_an_error() {
    let endpoint = FakeEndpoint::start([], Answer::Accept);
    let found = doctor(|command| {
        command.args(["--to", &endpoint.url()]);
    });
    if found.lines("ok", "GPU driver").is_empty() {
        found.assert_finding(
            "warning",
            "GPU driver",
            "GPUs are not observed, everything else works",
        );
    }
    assert_eq!(found.lines("wrong", ""), [""; 0]);
}

#[test]
fn rejecting_or_unreachable_receiver_is_reported_once_per_endpoint() {
    let refusing = FakeEndpoint::start([], Answer::Refuse(401));
    let found = doctor(|command| {
        command.args(["--to", &refusing.url()]);
    });
    found.assert_finding("wrong", "endpoint", "401");

    let nowhere = format!("grpc://127.0.0.1:{}", free_port());
    let found = doctor(|command| {
        command.args(["--to", &nowhere]);
    });
    let wrong = found.lines("wrong", &format!("endpoint {nowhere}"));
    assert_eq!(wrong.len(), 1, "one place for all signals: {wrong:?}");

    let closing = answering("").replace("http", "grpc");
    let found = doctor(|command| {
        command.args(["--to", &closing]);
    });
    let wrong = found.lines("wrong", "endpoint");
    assert_eq!(wrong.len(), 1, "one cause: {wrong:?}");

    let hanging = FakeEndpoint::start([], Answer::Hang);
    let found = doctor(|command| {
        command.args(["--to", &hanging.url(), "--timeout", "0.3"]);
    });
    found.assert_finding("wrong", "endpoint", "gave no answer within 0.3 s");
}

/// Starts a server that answers each connection with this text and closes it. Returns its URL.
fn answering(answer: &'static str) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("http://{}", listener.local_addr().expect("an address"));
    thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.expect("a connection");
            let mut asked = [0; 4096];
            let _ = stream.read(&mut asked);
            let _ = stream.write_all(answer.as_bytes());
        }
    });
    url
}

#[test]
fn receiver_clock_skew_is_detected_from_the_date_header() {
    let url = answering(
        "HTTP/1.1 200 OK\r\ndate: Sat, 01 Jan 2000 00:00:00 GMT\r\ncontent-length: 0\r\nconnection: close\r\n\r\n",
    );
    let found = doctor(|command| {
        command.args(["--to", &url]);
    });
    found.assert_finding("wrong", "endpoint", "slow against ours");
}

#[test]
fn web_server_that_accepts_everything_is_reported_once() {
    let url = answering(
        "HTTP/1.1 200 OK\r\ncontent-type: text/html\r\ncontent-length: 2\r\nconnection: close\r\n\r\nhi",
    );
    let found = doctor(|command| {
        command.args(["--to", &url]);
    });
    assert_eq!(
        found.lines("wrong", "endpoint"),
        ["accepted, but the answer is not OTLP"]
    );
    found.assert_finding("wrong", "endpoint", "check that the endpoint is an OTLP receiver");
}

#[test]
fn conflicting_variables_and_nonexistent_gpus_are_reported() {
    let driver = FakeNvml::start("h100x8");
    let endpoint = FakeEndpoint::start([], Answer::Accept);
    let found = doctor(|command| {
        command
            .env("LD_LIBRARY_PATH", driver.folder())
            .env("OTEL_EXPORTER_OTLP_ENDPOINT", endpoint.url())
            .env(
                "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT",
                "http://127.0.0.1:4317/v1/traces",
            )
            .env("RANK", "1")
            .env("SLURM_PROCID", "2")
            .env("CUDA_VISIBLE_DEVICES", "0,8");
    });
    found.assert_finding(
        "wrong",
        "environment OTEL_EXPORTER_OTLP_TRACES_ENDPOINT",
        "do not speak HTTP",
    );
    found.assert_finding("warning", "environment RANK, SLURM_PROCID", "RANK=1");
    found.assert_finding(
        "wrong",
        "environment CUDA_VISIBLE_DEVICES",
        "the machine has 8 GPUs",
    );
}

#[test]
fn doctor_reads_the_config_and_probes_its_receivers() {
    let endpoint = FakeEndpoint::start([], Answer::Accept);
    let folder = Folder::new();
    let page = free_port();
    let contents = format!(
        "sources: {{trainer: {{logs: {{paths: [training.json]}}}}}}\nhealth: {{enabled: false}}\ngpu: {{enabled: false}}\nsinks:\n  page: {{prometheus: {{listen: \"127.0.0.1:{page}\", translation: no_translation}}}}\n  collector: {{otlp: {{endpoint: \"{}\"}}}}\n",
        endpoint.url()
    );
    let with = |contents: &str| {
        let file = folder.file("pulsetrain.yaml", contents);
        doctor(|command| {
            command.arg("--config").arg(file);
        })
    };
    let found = with(&contents);
    found.assert_finding("ok", "endpoint", "takes an empty request");
    let of_driver = found.lines("warning", "GPU driver").join("; ");
    assert!(!of_driver.contains("no NVIDIA driver"), "{of_driver}");
    found.assert_finding(
        "warning",
        "names at",
        "train.step.duration is called train.step.duration there",
    );
    let found = with("sinks: {a: {otlp: {endpoint: 'nonsense'}}}\n");
    let place = format!("configuration {}:1:", folder.path("pulsetrain.yaml").display());
    found.assert_finding("wrong", &place, "nonsense");
    let found = with("sinks: {a: {oltp: {}}}\n");
    found.assert_finding("wrong", "configuration", "did you mean \"otlp\"?");
    assert_eq!(
        found.lines("warning", "endpoint"),
        [""; 0],
        "the default receiver does not matter"
    );
}

#[test]
fn only_ports_of_other_programs_are_in_use_while_the_agent_runs() {
    let world = World::new();
    let look = || {
        doctor(|command| {
            command
                .arg("--config")
                .arg(world.path("agent.yaml"))
                .env("STATE", world.path("state"));
        })
    };
    let agent = world.start();
    let found = look();
    assert_eq!(found.lines("wrong", ""), [""; 0]);
    let readyz = format!("endpoint http://127.0.0.1:{}/readyz", world.health());
    found.assert_finding("ok", &readyz, "the agent runs and is ready");
    let other = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = other.local_addr().expect("an address");
    world.configure(&format!("  other:\n    prometheus:\n      listen: {address}\n"));
    let wrong = look().lines("wrong", "");
    assert!(
        matches!(&wrong[..], [one] if one.contains(&format!("cannot listen on {address}"))),
        "{wrong:?}"
    );
    assert!(agent.stop().success());
}

#[test]
fn failing_sink_of_the_running_agent_is_reported_once() {
    let world = World::new();
    let url = format!("http://127.0.0.1:{}", free_port());
    world.configure(&format!("  dead: {{otlp: {{endpoint: '{url}'}}}}\n"));
    let agent = world.start();
    wait_until("the sink fails", || world.readiness().contains("sink dead fails"));
    let found = doctor(|command| {
        command
            .arg("--config")
            .arg(world.path("agent.yaml"))
            .env("STATE", world.path("state"));
    });
    assert_eq!(found.lines("wrong", "").len(), 1, "{:#?}", found.all);
    found.assert_finding("wrong", &format!("endpoint {url}"), "Connection refused");
    assert!(agent.stop().success());
}

#[test]
fn agent_of_another_user_writes_its_own_files() {
    let world = World::new();
    let folder = world.path("");
    fs::set_permissions(&folder, Permissions::from_mode(0o755)).expect("permissions can be set");
    let agent = world.start();
    let mut command = command(["doctor", "--json", "--config"]);
    command
        .arg(world.path("agent.yaml"))
        .env("STATE", world.path("state"));
    let found = findings_of(as_unprivileged(&command, &folder));
    assert_eq!(found.lines("wrong", ""), [""; 0]);
    assert!(agent.stop().success());
}

#[test]
fn collector_accepts_every_signal_and_rejects_the_protocol_of_its_other_port() {
    let program = some_or_return!(Judge::Collector.require_or_skip());
    let collector = Collector::start(&program);
    let found = doctor(|command| {
        let (grpc, http) = (collector.grpc(), collector.http());
        command.args([
            "--to",
            &format!("grpc://{grpc}"),
            "--to",
            &format!("http://{http}"),
        ]);
    });
    assert_eq!(found.lines("wrong", "endpoint"), [""; 0]);
    assert_eq!(
        found
            .lines("ok", &format!("endpoint http://{}/v1/", collector.http()))
            .len(),
        4
    );
    let crossed = doctor(|command| {
        command.args(["--to", &format!("grpc://{}", collector.http())]);
    });
    assert!(
        !crossed.lines("wrong", "endpoint").is_empty(),
        "{:#?}",
        crossed.all
    );
    drop(collector);

    let certificates = Certificates::generate();
    let collector = Collector::start_with_tls(&program, &certificates);
    let found = doctor(|command| {
        command
            .args(["--to", &format!("https://{}", collector.http())])
            .env("OTEL_EXPORTER_OTLP_CERTIFICATE", certificates.authority());
    });
    found.assert_finding("wrong", "endpoint", "OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE");
}

#[test]
fn prometheus_translates_names_the_same_way_as_doctor_reports() {
    let program = some_or_return!(Judge::Prometheus.require_or_skip());
    let prometheus = Prometheus::start(&program, &[], &[]);
    let found = doctor(|command| {
        command.args(["--to", &format!("{}/api/v1/otlp", prometheus.url())]);
    });
    found.assert_finding(
        "ok",
        "names at",
        "train.step.duration is called train_step_duration_seconds there",
    );
    found.assert_finding("ok", "endpoint", "its clock agrees with ours");
}
