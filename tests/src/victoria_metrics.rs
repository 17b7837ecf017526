//! A real VictoriaMetrics of one node: receives OTLP and remote write, and responds to queries.

use std::{path::Path, process::Command};

use serde_json::Value;
use tempfile::TempDir;

use crate::{
    Process, free_port,
    http::{answers_ok, encoded, request},
};

/// A running VictoriaMetrics, which keeps old samples.
#[derive(Debug)]
pub struct VictoriaMetrics {
    _process: Process,
    _folder: TempDir,
    port: u16,
}

impl VictoriaMetrics {
    /// Starts `program` with more flags, and waits until it is ready.
    pub fn start(program: &Path, flags: &[&str]) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder can be made");
        let port = free_port();
        let mut process = Process::start(
            "victoria-metrics",
            Command::new(program)
                .arg(format!("-httpListenAddr=127.0.0.1:{port}"))
                .arg(format!("-storageDataPath={}", folder.path().display()))
                // By default, an instant query does not see the samples of the last 30 seconds.
                .args(["-retentionPeriod=100y", "-search.latencyOffset=0s"])
                .args(flags),
        );
        process.wait_until_ready(|| answers_ok(port, "/health"));
        Self {
            _process: process,
            _folder: folder,
            port,
        }
    }

    /// Returns its base URL.
    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// Returns all stored series that match, each with its labels as `metric`, its `values` and its `timestamps` in milliseconds.
    pub fn export(&self, selector: &str) -> Vec<Value> {
        // Samples are visible after a flush, which is otherwise every few seconds.
        assert!(answers_ok(self.port, "/internal/force_flush"));
        let path = format!("/api/v1/export?match[]={}", encoded(selector));
        let (status, body) = request(self.port, "GET", &path, "", &[]).expect("VictoriaMetrics answers");
        let text = String::from_utf8(body).expect("VictoriaMetrics answers in UTF-8");
        assert_eq!(status, 200, "{text}");
        text.lines()
            .map(|line| serde_json::from_str(line).expect("a line is JSON"))
            .collect()
    }
}
