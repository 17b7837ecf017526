//! A real Alertmanager that notifies one receiver of every alert, without delay.

use std::{path::Path, process::Command};

use serde_json::Value;
use tempfile::TempDir;

use crate::{
    Process, free_port,
    http::{answers_ok, request},
};

/// A running Alertmanager.
#[derive(Debug)]
pub struct Alertmanager {
    _process: Process,
    _folder: TempDir,
    port: u16,
}

impl Alertmanager {
    /// Starts `program` and waits until it is ready. Notifications, also of resolved alerts, go to the URL `receiver`; `rules`
    /// are appended to its configuration.
    pub fn start(program: &Path, receiver: &str, rules: &str) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder can be made");
        let config = folder.path().join("alertmanager.yml");
        let text = format!(
            "route: {{receiver: test, group_by: ['...'], group_wait: 0s, group_interval: 1s, repeat_interval: 1h}}\n\
             receivers: [{{name: test, webhook_configs: [{{url: '{receiver}', send_resolved: true}}]}}]\n\
             {rules}"
        );
        std::fs::write(&config, text).expect("a temporary file can be written");
        let port = free_port();
        let mut process = Process::start(
            "alertmanager",
            Command::new(program)
                .arg(format!("--config.file={}", config.display()))
                .arg(format!("--storage.path={}", folder.path().join("data").display()))
                .arg(format!("--web.listen-address=127.0.0.1:{port}"))
                .arg("--cluster.listen-address="),
        );
        process.wait_until_ready(|| answers_ok(port, "/-/ready"));
        Self {
            _process: process,
            _folder: folder,
            port,
        }
    }

    /// Returns its address, for the configuration of a Prometheus.
    pub fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }
    /// Returns the labels of the alerts that its inhibit rules suppress now.
    pub fn inhibited(&self) -> Vec<Value> {
        let path = "/api/v2/alerts?inhibited=true";
        let (status, body) = request(self.port, "GET", path, "", &[]).expect("Alertmanager answers");
        assert_eq!(status, 200, "{}", String::from_utf8_lossy(&body));
        let alerts: Vec<Value> = serde_json::from_slice(&body).expect("Alertmanager answers in JSON");
        let is_inhibited = |alert: &Value| {
            let by = alert["status"]["inhibitedBy"].as_array();
            by.is_some_and(|by| !by.is_empty())
        };
        let inhibited = alerts.into_iter().filter(is_inhibited);
        inhibited.map(|mut alert| alert["labels"].take()).collect()
    }
}
