//! A folder with a configuration, its logs, its ports, and the agents that use it.

use std::{
    fs,
    io::{Read, Write},
    net::{Ipv4Addr, TcpStream},
    path::{Path, PathBuf},
    process::Command,
};

use pulsetrain_tests::{Finished, Folder, Import, Items, Process, command, corpus, free_port};

pub(crate) struct World {
    folder: Folder,
    page: u16,
    health: u16,
}

/// The parts of a configuration.
pub(crate) struct Setup<'a> {
    /// The logs, each with its own source.
    pub(crate) logs: &'a [&'a str],
    /// Sinks in addition to the page.
    pub(crate) sinks: &'a str,
    /// The section `telemetry`.
    pub(crate) telemetry: &'a str,
    /// The section of the energy of steps.
    pub(crate) energy: &'a str,
    /// Additional sections.
    pub(crate) rest: &'a str,
}

impl Default for Setup<'_> {
    fn default() -> Self {
        Self {
            logs: &["training.json"],
            sinks: "",
            telemetry: "interval: 100ms",
            energy: "enabled: false",
            rest: "",
        }
    }
}

impl World {
    /// Creates a world with one log, `training.json`, and a page.
    pub(crate) fn new() -> Self {
        let world = Self {
            folder: Folder::new(),
            page: free_port(),
            health: free_port(),
        };
        world.configure("");
        world
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path(name)
    }

    /// Writes a sample as the log of the trainer.
    pub(crate) fn write_log(&self, sample: &str) {
        fs::copy(corpus(sample), self.path("training.json")).expect("the corpus can be copied");
    }

    /// Returns the text of a sink that writes a file in this folder.
    pub(crate) fn file_sink(&self, sink: &str, name: &str) -> String {
        format!(
            "  {sink}:\n    file:\n      path: {}\n",
            self.path(name).display()
        )
    }

    /// Returns the port of the health checks.
    pub(crate) fn health(&self) -> u16 {
        self.health
    }

    /// Returns the port of the page.
    pub(crate) fn page(&self) -> u16 {
        self.page
    }

    /// Writes the configuration, with these sinks in addition to the page.
    pub(crate) fn configure(&self, sinks: &str) {
        self.configure_as(&Setup {
            sinks,
            ..Setup::default()
        });
    }

    /// Writes the configuration.
    pub(crate) fn configure_as(&self, setup: &Setup<'_>) {
        self.folder.file("agent.yaml", self.yaml(setup));
    }

    /// Returns the configuration as text.
    pub(crate) fn yaml(&self, setup: &Setup<'_>) -> String {
        let source = |log: &&str| {
            let (name, path) = (log.split('.').next().unwrap_or(log), self.path(log));
            let path = path.display();
            format!("  {name}:\n    logs:\n      paths: [{path}]\n      poll_interval: 100ms\n")
        };
        let sources: String = setup.logs.iter().map(source).collect();
        let (page, health) = (self.page, self.health);
        let Setup {
            sinks,
            telemetry,
            energy,
            rest,
            ..
        } = setup;
        format!(
            "state_folder: ${{STATE}}
sources:
{sources}sinks:
  page:
    prometheus:
      listen: 127.0.0.1:{page}
{sinks}
telemetry:
  {telemetry}
health:
  listen: 127.0.0.1:{health}
derive:
  # Tests that compare what was sent with what arrives.
  signals: {{enabled: false}}
  energy:
    {energy}
{rest}"
        )
    }

    /// Returns the command of the agent.
    pub(crate) fn command(&self) -> Command {
        let mut command = command(["agent", "--config"]);
        command
            .arg(self.path("agent.yaml"))
            .env("STATE", self.path("state"))
            .env("OTEL_EXPORTER_OTLP_PROTOCOL", "http/json");
        command
    }

    /// Starts the agent, and does not wait until it is ready.
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

    /// Returns the response of `/readyz`.
    pub(crate) fn readiness(&self) -> String {
        get(self.health, "/readyz")
    }

    /// Returns the values of a metric on the page, by its name.
    pub(crate) fn scraped(&self, name: &str) -> Vec<f64> {
        self.scraped_where(name, "")
    }

    /// Returns the values of a metric on the page, by its name and a part of its labels.
    pub(crate) fn scraped_where(&self, name: &str, labels: &str) -> Vec<f64> {
        scraped_from(self.page, name, labels)
    }

    /// Returns the items in a file so far: those of the agent itself, and all others.
    pub(crate) fn written(&self, name: &str) -> (Items, Items) {
        Items::read_complete_lines(&self.path(name)).divide_by_service("pulsetrain")
    }
}

/// Returns the items of an import of each of the finished logs.
pub(crate) fn imported(logs: &[impl AsRef<Path>]) -> Items {
    let imports = logs.iter().map(|log| Import::new(log.as_ref()).to("-").run());
    let text = imports.map(|finished| finished.expect_code(0).stdout);
    Items::parse(&text.collect::<String>())
}

pub(crate) fn check(world: &World) -> Finished {
    Finished::run(world.command().arg("--check"))
}

/// Returns the values of a metric on the page at a port, by its name and a part of its labels.
pub(crate) fn scraped_from(port: u16, name: &str, labels: &str) -> Vec<f64> {
    let page = get(port, "/metrics");
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

/// Returns the response to a GET with its head; empty without a response.
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
