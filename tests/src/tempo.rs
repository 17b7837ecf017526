//! A real Grafana Tempo with a folder as its storage: accepts OTLP, and returns traces by id and by TraceQL.
//!
//! No set-up builds a Tempo, because its license is the AGPL. `PULSETRAIN_TEMPO` names the program of the tester; without it, the
//! recorded answers of `tests/corpus/tempo` are the only check.

use std::{
    env, fs,
    io::{self, Write},
    path::{Path, PathBuf},
    process::Command,
    sync::Once,
};

use serde_json::Value;
use tempfile::TempDir;

use crate::{
    Process, free_port,
    http::{answers_ok, encoded, push_otlp, request},
};

/// A running Tempo.
#[derive(Debug)]
pub struct Tempo {
    _process: Process,
    _folder: TempDir,
    ports: Ports,
    tenant: Option<&'static str>,
}

#[derive(Clone, Copy, Debug)]
struct Ports {
    http: u16,
    grpc: u16,
    gossip: u16,
    otlp: u16,
    otlp_grpc: u16,
}

impl Ports {
    fn free() -> Self {
        Self {
            http: free_port(),
            grpc: free_port(),
            gossip: free_port(),
            otlp: free_port(),
            otlp_grpc: free_port(),
        }
    }
}

impl Tempo {
    /// Returns the program that `PULSETRAIN_TEMPO` names, or `None`: then the test must return. A line that the test runner does
    /// not capture reports this once in a program; it is no skipped judge.
    ///
    /// # Panics
    ///
    /// If there is no such program.
    pub fn program() -> Option<PathBuf> {
        static REPORTED: Once = Once::new();
        let Some(program) = env::var_os("PULSETRAIN_TEMPO").filter(|path| !path.is_empty()) else {
            REPORTED.call_once(|| {
                let line = "No live Tempo: PULSETRAIN_TEMPO names none; its recorded answers are tested";
                writeln!(io::stderr(), "{line}").expect("standard error can be written");
            });
            return None;
        };
        let program = PathBuf::from(program);
        assert!(
            program.is_file(),
            "PULSETRAIN_TEMPO: there is no {}",
            program.display()
        );
        Some(program)
    }

    /// Starts `program` and waits until it is ready.
    pub fn start(program: &Path) -> Self {
        Self::start_with(program, None, "")
    }

    /// Starts `program` so that every request has to name its tenant; all requests of this value are for `tenant`.
    pub fn start_for_tenant(program: &Path, tenant: &'static str) -> Self {
        Self::start_with(program, Some(tenant), "multitenancy_enabled: true\n")
    }

    /// Starts `program` with a file of `collector-config`, whose ports and folder are variables.
    pub fn start_file(program: &Path, file: &Path) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder can be made");
        let ports = Ports::free();
        let mut command = Command::new(program);
        command
            .arg(format!("-config.file={}", file.display()))
            .arg("-config.expand-env=true")
            .env("TEMPO_DATA", folder.path())
            .env("TEMPO_HTTP_PORT", ports.http.to_string())
            .env("TEMPO_GRPC_PORT", ports.grpc.to_string())
            .env("TEMPO_GOSSIP_PORT", ports.gossip.to_string())
            .env("TEMPO_OTLP_GRPC_PORT", ports.otlp_grpc.to_string())
            .env("TEMPO_OTLP_HTTP_PORT", ports.otlp.to_string());
        Self::start_command(&mut command, folder, ports, None)
    }

    /// Starts `program` with additional top-level keys of its configuration in `more`.
    fn start_with(program: &Path, tenant: Option<&'static str>, more: &str) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder can be made");
        let ports = Ports::free();
        let config = folder.path().join("tempo.yaml");
        fs::write(&config, configuration(ports, folder.path(), more))
            .expect("a temporary file can be written");
        let mut command = Command::new(program);
        command.arg(format!("-config.file={}", config.display()));
        Self::start_command(&mut command, folder, ports, tenant)
    }

    fn start_command(
        command: &mut Command,
        folder: TempDir,
        ports: Ports,
        tenant: Option<&'static str>,
    ) -> Self {
        let mut process = Process::start("tempo", command);
        process.wait_until_ready(|| answers_ok(ports.http, "/ready"));
        Self {
            _process: process,
            _folder: folder,
            ports,
            tenant,
        }
    }

    /// Returns the base URL of its query API.
    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.ports.http)
    }

    /// Returns the base URL of its OTLP/HTTP receiver.
    pub fn otlp(&self) -> String {
        format!("http://127.0.0.1:{}", self.ports.otlp)
    }

    /// Sends OTLP traces; panics unless everything is accepted.
    pub fn push(&self, otlp: &[u8]) {
        push_otlp(self.ports.otlp, "/v1/traces", &self.tenant_header(), otlp);
    }

    /// Returns the status and the body of a path of its query API.
    pub fn get(&self, path: &str) -> (u16, Vec<u8>) {
        let headers = format!("Accept: application/json\r\n{}", self.tenant_header());
        request(self.ports.http, "GET", path, &headers, &[]).expect("Tempo answers")
    }

    /// Returns a trace from `/api/v2/traces/ID`, in OTLP with ids in base64; `None` if Tempo does not have it.
    pub fn trace(&self, id: &str) -> Option<Value> {
        let (status, body) = self.get(&format!("/api/v2/traces/{id}"));
        if status == 404 {
            return None;
        }
        assert_eq!(status, 200, "{}", String::from_utf8_lossy(&body));
        let mut answer: Value = serde_json::from_slice(&body).expect("Tempo answers in JSON");
        // A trace that Tempo does not have is empty here.
        Some(answer["trace"].take()).filter(|trace| trace.get("resourceSpans").is_some())
    }

    /// Returns the ids of the traces that a TraceQL query finds, with 32 digits each, sorted. New traces are found after some
    /// seconds.
    pub fn search(&self, query: &str) -> Vec<String> {
        let (status, body) = self.get(&format!("/api/search?q={}&limit=1000", encoded(query)));
        assert_eq!(status, 200, "{}", String::from_utf8_lossy(&body));
        let answer: Value = serde_json::from_slice(&body).expect("Tempo answers in JSON");
        let traces = answer["traces"].as_array().cloned().unwrap_or_default();
        let id = |trace: &Value| format!("{:0>32}", trace["traceID"].as_str().expect("a trace has an id"));
        let mut ids: Vec<String> = traces.iter().map(id).collect();
        ids.sort();
        ids
    }

    fn tenant_header(&self) -> String {
        self.tenant
            .map_or_else(String::new, |tenant| format!("X-Scope-OrgID: {tenant}\r\n"))
    }
}

fn configuration(ports: Ports, folder: &Path, more: &str) -> String {
    let Ports {
        http,
        grpc,
        gossip,
        otlp,
        otlp_grpc,
    } = ports;
    let folder = folder.display();
    // A trace is complete for the search after one second without new spans, instead of the default ten.
    format!(
        "stream_over_http_enabled: true
server:
  http_listen_address: 127.0.0.1
  http_listen_port: {http}
  grpc_listen_address: 127.0.0.1
  grpc_listen_port: {grpc}
  log_level: warn
distributor:
  receivers:
    otlp:
      protocols:
        grpc: {{endpoint: 127.0.0.1:{otlp_grpc}}}
        http: {{endpoint: 127.0.0.1:{otlp}}}
ingester:
  trace_idle_period: 1s
  flush_check_period: 1s
  lifecycler:
    address: 127.0.0.1
    min_ready_duration: 0s
    ring: {{kvstore: {{store: inmemory}}, replication_factor: 1}}
memberlist: {{bind_addr: [127.0.0.1], bind_port: {gossip}}}
storage:
  trace:
    backend: local
    local: {{path: {folder}/blocks}}
    wal: {{path: {folder}/wal}}
usage_report: {{reporting_enabled: false}}
metrics_generator:
  ring: {{kvstore: {{store: inmemory}}}}
  storage: {{path: {folder}/generator}}
  traces_storage: {{path: {folder}/traces}}
  processor: {{local_blocks: {{filter_server_spans: false}}}}
overrides:
  defaults:
    metrics_generator: {{processors: [local-blocks]}}
{more}"
    )
}
