//! A folder with a configuration, the logs that it names, the ports that it takes, and agents that live by it.

use std::{
    fs,
    io::{Read, Write},
    net::{Ipv4Addr, TcpStream},
    path::PathBuf,
    process::{Command, Output},
};

use pulsetrain_tests::{Items, Process, command, free_port};
use tempfile::TempDir;

pub(crate) struct World {
    folder: TempDir,
    page: u16,
    health: u16,
}

impl World {
    /// A world with one log, `training.json`, and a page.
    pub(crate) fn new() -> Self {
        let world = Self {
            folder: tempfile::tempdir().expect("a temporary folder can be made"),
            page: free_port(),
            health: free_port(),
        };
        world.configure("");
        world
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// The port of the page.
    pub(crate) fn page(&self) -> u16 {
        self.page
    }

    /// Writes the configuration, with more sinks than the page.
    pub(crate) fn configure(&self, sinks: &str) {
        self.configure_with(&["training.json"], sinks, "");
    }

    /// Writes the configuration: a source a log, further sinks, further sections.
    pub(crate) fn configure_with(&self, logs: &[&str], sinks: &str, rest: &str) {
        let sources: String = logs
            .iter()
            .map(|log| {
                let (name, path) = (log.split('.').next().unwrap_or(log), self.path(log));
                let path = path.display();
                format!("  {name}:\n    logs:\n      paths: [{path}]\n      poll_interval: 100ms\n")
            })
            .collect();
        let (page, health) = (self.page, self.health);
        let config = format!(
            "state_folder: ${{STATE}}
sources:
{sources}sinks:
  page:
    prometheus:
      listen: 127.0.0.1:{page}
{sinks}
telemetry:
  interval: 100ms
health:
  listen: 127.0.0.1:{health}
{rest}"
        );
        fs::write(self.path("agent.yaml"), config).expect("a temporary file can be written");
    }

    /// The agent that is to be started, or asked to check.
    pub(crate) fn command(&self) -> Command {
        let mut command = command(["agent", "--config"]);
        command
            .arg(self.path("agent.yaml"))
            .env("STATE", self.path("state"))
            .env("OTEL_EXPORTER_OTLP_PROTOCOL", "http/json");
        command
    }

    /// Starts the agent, and does not wait for it.
    pub(crate) fn spawn(&self) -> Process {
        Process::start("pulsetrain agent", &mut self.command())
    }

    pub(crate) fn start(&self) -> Process {
        let mut agent = self.spawn();
        agent.wait_until_ready(|| self.is_ready());
        agent
    }

    pub(crate) fn is_ready(&self) -> bool {
        self.readiness().starts_with("HTTP/1.1 200")
    }

    /// The answer of `/readyz`.
    pub(crate) fn readiness(&self) -> String {
        get(self.health, "/readyz")
    }

    /// The values of a series of the page, by its name.
    pub(crate) fn scraped(&self, name: &str) -> Vec<f64> {
        self.scraped_where(name, "")
    }

    /// The values of a series of the page, by its name and a part of its labels.
    pub(crate) fn scraped_where(&self, name: &str, labels: &str) -> Vec<f64> {
        let page = get(self.page, "/metrics");
        let of_series = |line: &&str| {
            line.strip_prefix(name)
                .is_some_and(|rest| rest.starts_with(['{', ' ']) && rest.contains(labels))
        };
        let value = |line: &str| {
            line.rsplit(' ')
                .next()
                .and_then(|value| value.parse().ok())
                .expect("a series has a value")
        };
        page.lines().filter(of_series).map(value).collect()
    }

    /// What a file holds by now of the agent itself, and of everything else.
    pub(crate) fn written(&self, name: &str) -> (Items, Items) {
        Items::read_whole_lines(&self.path(name)).divide_by_service("pulsetrain")
    }
}

pub(crate) fn check(world: &World) -> Output {
    world
        .command()
        .arg("--check")
        .output()
        .expect("pulsetrain can be started")
}

#[track_caller]
pub(crate) fn said(output: &Output, code: i32) -> String {
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(code), "{said}");
    said
}

/// The answer to a GET with its head; empty where nobody answers.
pub(crate) fn get(port: u16, path: &str) -> String {
    let mut answer = String::new();
    let asked = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).and_then(|mut stream| {
        write!(
            stream,
            "GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
        )?;
        stream.read_to_string(&mut answer)
    });
    asked.map_or_else(|_| String::new(), |_| answer)
}
