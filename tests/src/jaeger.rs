//! A real Jaeger that keeps traces in memory: accepts OTLP, and returns traces by id and by service.

use std::{fs, path::Path, process::Command};

use serde_json::Value;
use tempfile::TempDir;

use crate::{
    Process, free_port,
    http::{answers_ok, encoded, push_otlp, request},
};

/// A running Jaeger.
#[derive(Debug)]
pub struct Jaeger {
    _process: Process,
    _folder: TempDir,
    ports: Ports,
}

#[derive(Clone, Copy, Debug)]
struct Ports {
    query: u16,
    query_grpc: u16,
    otlp: u16,
    otlp_grpc: u16,
    health: u16,
}

impl Ports {
    fn free() -> Self {
        Self {
            query: free_port(),
            query_grpc: free_port(),
            otlp: free_port(),
            otlp_grpc: free_port(),
            health: free_port(),
        }
    }
}

impl Jaeger {
    /// Starts `program` and waits until it accepts traces and responds to queries.
    pub fn start(program: &Path) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder can be made");
        let config = folder.path().join("jaeger.yaml");
        let ports = Ports::free();
        fs::write(&config, configuration(ports)).expect("a temporary file can be written");
        let mut command = Command::new(program);
        command.arg("--config").arg(config);
        Self::start_command(&mut command, folder, ports)
    }

    /// Starts `program` with a file of `collector-config`, whose ports are variables.
    pub fn start_file(program: &Path, file: &Path) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder can be made");
        let ports = Ports::free();
        let mut command = Command::new(program);
        command
            .arg("--config")
            .arg(file)
            .env("JAEGER_HTTP_PORT", ports.query.to_string())
            .env("JAEGER_GRPC_PORT", ports.query_grpc.to_string())
            .env("JAEGER_HEALTH_PORT", ports.health.to_string())
            .env("JAEGER_OTLP_GRPC_PORT", ports.otlp_grpc.to_string())
            .env("JAEGER_OTLP_HTTP_PORT", ports.otlp.to_string());
        Self::start_command(&mut command, folder, ports)
    }

    fn start_command(command: &mut Command, folder: TempDir, ports: Ports) -> Self {
        let mut process = Process::start("jaeger", command);
        process.wait_until_ready(|| {
            answers_ok(ports.health, "/status") && answers_ok(ports.query, "/api/services")
        });
        Self {
            _process: process,
            _folder: folder,
            ports,
        }
    }

    /// Returns the base URL of its query API.
    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.ports.query)
    }

    /// Returns the base URL of its OTLP/HTTP receiver.
    pub fn otlp(&self) -> String {
        format!("http://127.0.0.1:{}", self.ports.otlp)
    }

    /// Returns its OTLP/gRPC receiver, in the form of a target of ours.
    pub fn grpc(&self) -> String {
        format!("grpc://127.0.0.1:{}", self.ports.otlp_grpc)
    }

    /// Sends OTLP traces; panics unless everything is accepted.
    pub fn push(&self, otlp: &[u8]) {
        push_otlp(self.ports.otlp, "/v1/traces", "", otlp);
    }

    /// Returns the status and the body of a path of its query API.
    pub fn get(&self, path: &str) -> (u16, Vec<u8>) {
        request(self.ports.query, "GET", path, "", &[]).expect("Jaeger answers")
    }

    /// Returns a trace in OTLP/JSON from `/api/v3/traces/ID`, or `None` if Jaeger does not have it.
    pub fn trace(&self, id: &str) -> Option<Value> {
        let (status, body) = self.get(&format!("/api/v3/traces/{id}?raw_traces=true"));
        let mut answer: Value = serde_json::from_slice(&body).expect("Jaeger answers in JSON");
        match status {
            200 => Some(answer["result"].take()),
            404 => None,
            status => panic!("{status}: {answer}"),
        }
    }

    /// Returns the traces of a service, in Jaeger's own JSON.
    pub fn traces_of(&self, service: &str) -> Vec<Value> {
        let (status, body) = self.get(&format!(
            "/api/traces?service={}&limit=1000&start=1&end=4102444800000000",
            encoded(service)
        ));
        let answer: Value = serde_json::from_slice(&body).expect("Jaeger answers in JSON");
        assert_eq!(status, 200, "{answer}");
        answer["data"].as_array().cloned().unwrap_or_default()
    }
}

fn configuration(ports: Ports) -> String {
    let Ports {
        query,
        query_grpc,
        otlp,
        otlp_grpc,
        health,
    } = ports;
    format!(
        "service:
  extensions: [jaeger_storage, jaeger_query, healthcheckv2]
  telemetry: {{metrics: {{level: none}}, logs: {{level: warn}}}}
  pipelines:
    traces: {{receivers: [otlp], exporters: [jaeger_storage_exporter]}}
extensions:
  healthcheckv2:
    use_v2: true
    http: {{endpoint: 127.0.0.1:{health}}}
  jaeger_query:
    storage: {{traces: memory}}
    http: {{endpoint: 127.0.0.1:{query}}}
    grpc: {{endpoint: 127.0.0.1:{query_grpc}}}
  jaeger_storage:
    backends: {{memory: {{memory: {{max_traces: 100000}}}}}}
receivers:
  otlp:
    protocols:
      grpc: {{endpoint: 127.0.0.1:{otlp_grpc}}}
      http: {{endpoint: 127.0.0.1:{otlp}}}
exporters:
  jaeger_storage_exporter: {{trace_storage: memory}}
"
    )
}
