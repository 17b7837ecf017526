//! A Collector that runs a file of `collector-config`, and a job that sends to it.

use std::{
    path::{Path, PathBuf},
    process::Command,
};

use pulsetrain_tests::{Folder, Items, Process, free_port, http::answers_ok};

use crate::collector_config::world::{run, same_in_file};

/// Returns the path of a file of `collector-config`.
pub(crate) fn config(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../collector-config")
        .join(name)
}

/// A running Collector.
pub(crate) struct Otelcol {
    process: Process,
    grpc: u16,
    http: u16,
}

impl Otelcol {
    /// Starts `program` with `collector-config/collector/NAME` on free ports, and waits until it accepts telemetry.
    pub(crate) fn start(program: &Path, name: &str, variables: &[(&str, String)]) -> Self {
        let [grpc, http, health] = [free_port(), free_port(), free_port()];
        let mut command = Command::new(program);
        command
            .arg("--config")
            .arg(config("collector").join(name))
            .env("OTLP_GRPC_LISTEN", format!("127.0.0.1:{grpc}"))
            .env("OTLP_HTTP_LISTEN", format!("127.0.0.1:{http}"))
            .env("HEALTH_LISTEN", format!("127.0.0.1:{health}"))
            .envs(variables.iter().map(|(name, value)| (name, value)));
        let mut process = Process::start(name, &mut command);
        process.wait_until_ready(|| answers_ok(health, "/"));
        Self { process, grpc, http }
    }

    /// Returns `127.0.0.1:PORT` of the OTLP/gRPC receiver.
    pub(crate) fn grpc(&self) -> String {
        format!("127.0.0.1:{}", self.grpc)
    }

    /// Returns the port of the OTLP/HTTP receiver.
    pub(crate) fn port(&self) -> u16 {
        self.http
    }

    /// Returns its OTLP/HTTP receiver as a target.
    pub(crate) fn target(&self) -> String {
        format!("http://127.0.0.1:{}", self.http)
    }

    /// Stops the Collector, which flushes its buffers.
    pub(crate) fn stop(self) {
        self.process.stop_well();
    }

    /// Kills the Collector.
    pub(crate) fn kill(self) {
        self.process.kill();
    }
}

/// Runs a simulated job of 60 steps that sends to `target`, and returns the sent items.
pub(crate) fn send_demo(target: &str, arguments: &[&str]) -> Items {
    let folder = Folder::new();
    let file = folder.path("demo.jsonl");
    let path = file.to_str().expect("the path is text");
    let sent = ["--steps", "60", "--to", path, "--to", target];
    let finished = run(sent.iter().chain(arguments)).expect_code(0);
    same_in_file(&finished, &file).1
}
