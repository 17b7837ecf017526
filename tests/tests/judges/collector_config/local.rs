//! `collector-config/local/start`: a complete stack with one command.

use std::{fs, process::Command};

use nix::unistd::Pid;
use pulsetrain_tests::{
    Folder, Judge, Process, Tempo, free_port,
    http::{self, encoded},
    wait_until, with_default_signals,
};
use serde_json::Value;

use crate::collector_config::otelcol::{config, send_demo};

const PORTS: [&str; 14] = [
    "PROMETHEUS_PORT",
    "TEMPO_HTTP_PORT",
    "TEMPO_GRPC_PORT",
    "TEMPO_GOSSIP_PORT",
    "TEMPO_OTLP_GRPC_PORT",
    "TEMPO_OTLP_HTTP_PORT",
    "JAEGER_HTTP_PORT",
    "JAEGER_GRPC_PORT",
    "JAEGER_HEALTH_PORT",
    "JAEGER_OTLP_GRPC_PORT",
    "JAEGER_OTLP_HTTP_PORT",
    "OTLP_GRPC_PORT",
    "OTLP_HTTP_PORT",
    "COLLECTOR_HEALTH_PORT",
];

/// Returns the processes with this text in their environment.
fn processes_with(text: &str) -> Vec<Pid> {
    let entries = fs::read_dir("/proc").expect("there is /proc");
    let pids = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<i32>().ok());
    let has = |pid: &i32| {
        let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        String::from_utf8_lossy(&environment).contains(text)
    };
    pids.filter(has).map(Pid::from_raw).collect()
}

fn get(port: u16, path: &str) -> Value {
    let (status, body) = http::request(port, "GET", path, "", &[]).expect("the server answers");
    assert_eq!(status, 200, "{path}: {}", String::from_utf8_lossy(&body));
    serde_json::from_slice(&body).expect("the answer is JSON")
}

#[test]
fn start_script_runs_the_local_stack_and_leaves_no_processes() {
    for judge in [Judge::Prometheus, Judge::Jaeger, Judge::Collector] {
        if judge.require_or_skip().is_none() {
            return;
        }
    }
    let has_tempo = Tempo::program().is_some();
    let folder = Folder::new();
    let data = folder.path("data");
    let ports = PORTS.map(|name| (name, free_port()));
    let port = |name: &str| ports.iter().find(|(each, _)| *each == name).expect("a port").1;
    let mut command = Command::new(config("local/start"));
    command
        .arg(&data)
        .envs(ports.map(|(name, port)| (name, port.to_string())));
    let mut stack = Process::start("start", &mut with_default_signals(&command));
    let end_of_start = format!(
        "pulsetrain demo --to http://127.0.0.1:{}\n",
        port("OTLP_HTTP_PORT")
    );
    let mut log = String::new();
    wait_until("everything is ready", || {
        log.clear();
        assert!(stack.exit_status().is_none(), "{}", stack.log());
        log.push_str(&stack.log());
        log.contains(&end_of_start)
    });
    let mark = format!("TEMPO_DATA={}", data.display());
    assert!(processes_with(&mark).len() >= 3 + usize::from(has_tempo));

    // As in the README.
    let sent = send_demo(&format!("http://127.0.0.1:{}", port("OTLP_HTTP_PORT")), &[]);
    let step = sent.spans_of("train.step")[0]["span"]["traceId"].as_str();
    let step = step.expect("a step has a trace");
    wait_until("Prometheus has the loss", || {
        let query = encoded("last_over_time(train_loss[1h])");
        let answer = get(port("PROMETHEUS_PORT"), &format!("/api/v1/query?query={query}"));
        answer["data"]["result"]
            .as_array()
            .is_some_and(|result| !result.is_empty())
    });
    let rules = get(port("PROMETHEUS_PORT"), "/api/v1/rules");
    assert!(!rules["data"]["groups"].as_array().expect("a list").is_empty());
    if has_tempo {
        wait_until("TraceQL finds the steps", || {
            let query = encoded("{ name = \"train.step\" }");
            let answer = get(
                port("TEMPO_HTTP_PORT"),
                &format!("/api/search?q={query}&limit=100"),
            );
            answer["traces"]
                .as_array()
                .is_some_and(|traces| traces.len() == 60)
        });
    }
    wait_until("Jaeger has all spans of the step", || {
        let path = format!("/api/traces/{step}");
        let jaeger = port("JAEGER_HTTP_PORT");
        let (status, body) = http::request(jaeger, "GET", &path, "", &[]).expect("Jaeger answers");
        let answer: Value = serde_json::from_slice(&body).expect("the answer is JSON");
        let spans = answer["data"][0]["spans"].as_array().map_or(0, Vec::len);
        assert!(spans <= 20, "{answer}");
        status == 200 && spans == 20
    });
    let events = data.join("events.jsonl");
    wait_until("the events are in their file", || {
        fs::read_to_string(&events).is_ok_and(|events| events.contains("run.command"))
    });

    stack.interrupt();
    let (status, log) = stack.wait_for_end();
    assert_eq!(status.code(), Some(130), "{log}");
    assert_eq!(processes_with(&mark), []);
}

#[test]
fn missing_program_is_reported_with_its_download_url() {
    let folder = Folder::new();
    let mut command = Command::new(config("local/start"));
    command
        .arg(folder.path("data"))
        .env("PATH", "/usr/bin:/bin")
        .env("PULSETRAIN_JUDGES", folder.path("none"));
    let output = command.output().expect("bash can be started");
    assert_eq!(output.status.code(), Some(1));
    let errors = String::from_utf8_lossy(&output.stderr);
    for name in ["prometheus", "jaeger", "otelcol"] {
        let line = errors.lines().find(|line| line.starts_with(name));
        assert!(
            line.is_some_and(|line| line.contains("https://")),
            "{name}: {errors}"
        );
    }
}

#[test]
fn port_in_use_is_reported_before_the_stack_starts() {
    for judge in [Judge::Prometheus, Judge::Jaeger, Judge::Collector] {
        if judge.require_or_skip().is_none() {
            return;
        }
    }
    let folder = Folder::new();
    let data = folder.path("data");
    let taken = std::net::TcpListener::bind("127.0.0.1:0").expect("a port of the system");
    let taken = (taken.local_addr().expect("it listens").port(), taken);
    let mut command = Command::new(config("local/start"));
    command
        .arg(&data)
        .envs(PORTS.map(|name| (name, free_port().to_string())));
    command.env("PROMETHEUS_PORT", taken.0.to_string());
    let output = command.output().expect("bash can be started");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{errors}");
    let expected = format!("port {} of 127.0.0.1 is in use;", taken.0);
    assert!(errors.starts_with(&expected), "{errors}");
    assert!(errors.contains("set PROMETHEUS_PORT"), "{errors}");
    let log = fs::read_dir(data.join("log")).expect("there is a folder of logs");
    assert_eq!(log.count(), 0);
}
