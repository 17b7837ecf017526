//! `collector-config/pulsetrain/`: our own agent in the same roles.

use std::{fs, path::PathBuf, process::Command};

use pulsetrain_tests::{
    Certificates, Collector, Finished, Folder, Import, Items, Judge, Process, TlsFront, command, corpus,
    free_port, http, some_or_return, wait_until,
};

use crate::collector_config::otelcol::config;

fn log() -> PathBuf {
    corpus("surogate/training_dense.json")
}

fn agent(file: &str, folder: &Folder) -> Command {
    let mut agent = command(["agent"]);
    agent
        .arg("--config")
        .arg(config("pulsetrain").join(file))
        .current_dir(folder.root())
        .env("XDG_STATE_HOME", folder.path("state"))
        .env("TRAINING_LOGS", log())
        .env("HEALTH_LISTEN", "127.0.0.1:0")
        .env("OTLP_GRPC_LISTEN", format!("127.0.0.1:{}", free_port()))
        .env("OTLP_HTTP_LISTEN", format!("127.0.0.1:{}", free_port()));
    agent
}

/// Returns the items of an import of the same log.
fn imported(folder: &Folder) -> Items {
    let file = folder.path("imported.jsonl");
    Import::new(log()).to(&file).run().expect_code(0);
    Items::read(&file)
}

#[test]
fn the_agent_accepts_every_file() {
    let (folder, certificates) = (Folder::new(), Certificates::generate());
    for file in ["collector.yaml", "prometheus.yaml", "direct.yaml", "gateway.yaml"] {
        let mut check = command(["agent", "--check", "--config"]);
        check.env("TOKEN_FILE", folder.file("token", "secret\n"));
        check.env("GATEWAY_CA", certificates.authority());
        Finished::run(check.arg(config("pulsetrain").join(file))).expect_code(0);
    }
}

#[test]
fn a_collector_gets_the_log() {
    let program = some_or_return!(Judge::Collector.require_or_skip());
    let folder = Folder::new();
    let collector = Collector::start(&program);
    let mut agent = agent("collector.yaml", &folder);
    agent.env("COLLECTOR_ENDPOINT", format!("grpc://{}", collector.grpc()));
    agent.env("PAGE_LISTEN", format!("127.0.0.1:{}", free_port()));
    let agent = Process::start("agent", &mut agent);
    let sent = imported(&folder);
    wait_until("the Collector has the log", || {
        collector.received().len() >= sent.len()
    });
    agent.stop();
    collector.stop().assert_holds(&sent);
}

#[test]
fn a_gateway_gets_the_log_over_tls_with_a_token() {
    let program = some_or_return!(Judge::Collector.require_or_skip());
    let (folder, certificates) = (Folder::new(), Certificates::generate());
    let collector = Collector::start(&program);
    let gateway = TlsFront::start(&certificates, false, &collector.http());
    let mut agent = agent("gateway.yaml", &folder);
    agent.env("GATEWAY_ENDPOINT", gateway.url());
    agent.env("GATEWAY_CA", certificates.authority());
    agent.env("TOKEN_FILE", folder.file("token", "secret\n"));
    let agent = Process::start("agent", &mut agent);
    let sent = imported(&folder);
    wait_until("the Collector has the log", || {
        collector.received().len() >= sent.len()
    });
    agent.stop();
    collector.stop().assert_holds(&sent);
}

#[test]
fn direct_config_delivers_traces_and_metrics_without_a_collector() {
    let program = some_or_return!(Judge::Collector.require_or_skip());
    let folder = Folder::new();
    let [traces, metrics] = [Collector::start(&program), Collector::start(&program)];
    let mut agent = agent("direct.yaml", &folder);
    agent.env("TRACES_ENDPOINT", format!("grpc://{}", traces.grpc()));
    agent.env("METRICS_ENDPOINT", format!("http://{}", metrics.http()));
    let agent = Process::start("agent", &mut agent);
    let sent = imported(&folder);
    let of = |kind: &'static str| sent.clone().changed(move |item| item.get(kind).is_some(), |_| {});
    let [spans, points, logs] = ["span", "point", "log"].map(of);
    let events = folder.path("events.jsonl");
    wait_until("everything has arrived", || {
        traces.received().len() >= spans.len()
            && metrics.received().len() >= points.len()
            && Items::read_complete_lines(&events).len() >= logs.len()
    });
    agent.stop();
    let (traces, metrics) = (traces.stop(), metrics.stop());
    traces.assert_holds(&spans);
    metrics.assert_holds(&points);
    Items::read_complete_lines(&events).assert_holds(&logs);
    assert_eq!(traces.of_kind("span").len(), traces.len());
    assert_eq!(metrics.of_kind("point").len(), metrics.len());
}

#[test]
fn prometheus_config_serves_metrics_and_writes_traces_and_events_to_files() {
    let folder = Folder::new();
    let port = free_port();
    let mut agent = agent("prometheus.yaml", &folder);
    agent.env("PROMETHEUS_LISTEN", format!("127.0.0.1:{port}"));
    let agent = Process::start("agent", &mut agent);
    wait_until("the page has the loss", || {
        http::metrics(port).is_some_and(|page| page.contains("\ntrain_loss{"))
    });
    agent.stop();
    let traces = fs::read_dir(folder.path("traces")).expect("there is a folder of traces");
    assert!(traces.count() > 0);
    assert!(!Items::read(&folder.path("events.jsonl")).is_empty());
}
