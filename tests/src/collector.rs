//! A real OpenTelemetry Collector: receives OTLP over gRPC and HTTP, and writes the received data into a file.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use tempfile::TempDir;

use crate::{Certificates, Items, Process, free_port, http::answers_ok};

/// A running Collector.
#[derive(Debug)]
pub struct Collector {
    process: Process,
    folder: TempDir,
    grpc: u16,
    http: u16,
}

impl Collector {
    /// Starts `program` without TLS and waits until it accepts telemetry.
    pub fn start(program: &Path) -> Self {
        Self::start_with(program, "", [free_port(), free_port()])
    }

    /// Starts `program` at the ports of an earlier Collector that has stopped.
    pub fn start_at(program: &Path, [grpc, http]: [u16; 2]) -> Self {
        Self::start_with(program, "", [grpc, http])
    }

    /// Starts `program` with a server certificate; it accepts only clients with a certificate of the same authority.
    pub fn start_with_tls(program: &Path, certificates: &Certificates) -> Self {
        let (certificate, key) = certificates.server();
        let tls = format!(
            ", tls: {{cert_file: {}, key_file: {}, client_ca_file: {}}}",
            certificate.display(),
            key.display(),
            certificates.authority().display()
        );
        Self::start_with(program, &tls, [free_port(), free_port()])
    }

    /// Returns `127.0.0.1:PORT` of the gRPC receiver.
    pub fn grpc(&self) -> String {
        format!("127.0.0.1:{}", self.grpc)
    }

    /// Returns `127.0.0.1:PORT` of the HTTP receiver.
    pub fn http(&self) -> String {
        format!("127.0.0.1:{}", self.http)
    }

    /// Returns the ports of the two receivers, gRPC first.
    pub fn ports(&self) -> [u16; 2] {
        [self.grpc, self.http]
    }

    /// Returns the items that it has written so far; it buffers the newest for a second.
    pub fn received(&self) -> Items {
        Items::read_complete_lines(&output(&self.folder))
    }

    /// Stops the Collector, which flushes its buffers, and returns the received items.
    pub fn stop(self) -> Items {
        Items::parse(&self.stop_with_text())
    }

    /// As [`stop`](Self::stop), but returns the text of the file, with the lines in the order in which they were written.
    pub fn stop_with_text(self) -> String {
        let status = self.process.stop();
        assert!(status.success(), "the Collector ended with {status}");
        fs::read_to_string(output(&self.folder)).expect("the Collector writes its file")
    }

    fn start_with(program: &Path, tls: &str, [grpc, http]: [u16; 2]) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder can be made");
        let health = free_port();
        let config = folder.path().join("config.yaml");
        fs::write(&config, configuration(&output(&folder), grpc, http, health, tls))
            .expect("a temporary file can be written");
        let mut process = Process::start("collector", Command::new(program).arg("--config").arg(config));
        // The health check responds with 503 until every pipeline has started.
        process.wait_until_ready(|| answers_ok(health, "/"));
        Self {
            process,
            folder,
            grpc,
            http,
        }
    }
}

fn output(folder: &TempDir) -> PathBuf {
    folder.path().join("received.jsonl")
}

fn configuration(output: &Path, grpc: u16, http: u16, health: u16, tls: &str) -> String {
    let output = output.display();
    format!(
        "extensions:
  health_check: {{endpoint: 127.0.0.1:{health}}}
receivers:
  otlp:
    protocols:
      grpc: {{endpoint: 127.0.0.1:{grpc}{tls}}}
      http: {{endpoint: 127.0.0.1:{http}{tls}}}
exporters:
  file: {{path: {output}}}
service:
  extensions: [health_check]
  telemetry: {{metrics: {{level: none}}}}
  pipelines:
    traces: {{receivers: [otlp], exporters: [file]}}
    metrics: {{receivers: [otlp], exporters: [file]}}
    logs: {{receivers: [otlp], exporters: [file]}}
"
    )
}
