//! An agent with a live page that shows the OTLP that a test sends to its receiver.

use std::process::ExitStatus;

use pulsetrain_tests::{
    Folder, Process, command, free_port,
    http::{is_open, post_json},
    wait_until,
};
use serde_json::Value;

use crate::page::world::try_get;

/// An agent whose only source is its OTLP receiver.
pub(crate) struct Agent {
    /// The port of the page.
    pub(crate) port: u16,
    receiver: u16,
    process: Process,
    folder: Folder,
}

impl Agent {
    /// Starts an agent with these settings of the page's server, as YAML in one line.
    pub(crate) fn start(settings: &str) -> Self {
        let (folder, port, receiver) = (Folder::new(), free_port(), free_port());
        let config = format!(
            "sources: {{sdk: {{otlp: {{listen: ['127.0.0.1:{receiver}']}}}}}}\n\
             sinks: {{page: {{prometheus: {{listen: '127.0.0.1:{port}'{settings}}}}}}}\n\
             derive: {{signals: {{enabled: false}}, energy: {{enabled: false}}}}\n\
             gpu: {{enabled: false}}\nhealth: {{enabled: false}}\nstate_folder: {}\n",
            folder.path("state").display()
        );
        folder.file("agent.yaml", config);
        Self {
            port,
            receiver,
            process: start(&folder, [port, receiver]),
            folder,
        }
    }

    /// Stops the agent and starts another one on the same ports.
    pub(crate) fn restart(self) -> Self {
        assert!(self.process.stop().success());
        let process = start(&self.folder, [self.port, self.receiver]);
        Self { process, ..self }
    }

    /// Sends lines of OTLP/JSON.
    pub(crate) fn send(&self, lines: &str) {
        for line in lines.lines() {
            let message: Value = serde_json::from_str(line).expect("a line is JSON");
            let path = match &message {
                message if message.get("resourceMetrics").is_some() => "metrics",
                message if message.get("resourceLogs").is_some() => "logs",
                _ => "traces",
            };
            let answer = post_json(self.receiver, &format!("/v1/{path}"), line);
            let (status, body) = answer.expect("the receiver answers");
            assert_eq!(status, 200, "{}", String::from_utf8_lossy(&body));
        }
    }

    /// Waits until the list has this number of runs, and returns them.
    #[track_caller]
    pub(crate) fn wait_for_runs(&self, count: usize) -> Vec<Value> {
        let mut runs = Vec::new();
        wait_until("the page lists the runs", || {
            let overview = try_get(self.port, "/api/overview", "").map(|answer| answer.json());
            runs = overview
                .and_then(|overview| overview["runs"].as_array().cloned())
                .unwrap_or_default();
            runs.len() == count
        });
        runs
    }

    /// Returns the URL of the page.
    pub(crate) fn url(&self) -> String {
        format!("http://127.0.0.1:{}/", self.port)
    }

    /// Returns the current memory of the agent.
    pub(crate) fn memory_kib(&self) -> u64 {
        self.process.memory_kib()
    }

    /// Stops the agent and waits for its exit.
    pub(crate) fn stop(self) -> ExitStatus {
        self.process.stop()
    }
}

/// Starts the agent with the configuration in the folder, and waits until it listens on these ports.
fn start(folder: &Folder, ports: [u16; 2]) -> Process {
    let config = folder.path("agent.yaml");
    let mut process = Process::start("pulsetrain agent", command(["agent", "--config"]).arg(config));
    process.wait_until_ready(|| ports.into_iter().all(is_open));
    process
}
