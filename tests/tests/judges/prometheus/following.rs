//! An agent with a page, and the Surogate log that it follows.

use std::{
    path::{Path, PathBuf},
    process::{Command, ExitStatus},
};

use pulsetrain_tests::{
    Folder, Process, SurogateWriter, command, corpus, free_port,
    http::{is_open, metrics},
    surogate_records, unix_nanos, wait_until,
};

/// An agent with a page that follows `training.json` or other logs in its folder.
pub(crate) struct Agent {
    folder: Folder,
    /// The path or pattern of the followed logs, relative to the folder.
    logs: &'static str,
    page: u16,
    process: Option<Process>,
}

impl Agent {
    /// Creates a folder and a port for an agent that is not yet started.
    pub(crate) fn new() -> Self {
        Self::following("training.json")
    }

    /// As [`new`](Self::new), for other logs of the folder.
    pub(crate) fn following(logs: &'static str) -> Self {
        Self {
            folder: Folder::new(),
            logs,
            page: free_port(),
            process: None,
        }
    }

    /// Starts the agent, with additional settings of the page and additional sinks.
    pub(crate) fn start(&mut self, of_page: &str, sinks: &str) {
        let (page, health) = (self.page, free_port());
        let config = format!(
            "state_folder: {}
sources:
  trainer:
    logs:
      paths: [{}]
      poll_interval: 100ms
sinks:
  page:
    prometheus:
      listen: 127.0.0.1:{page}
{of_page}{sinks}telemetry:
  interval: 100ms
health:
  listen: 127.0.0.1:{health}
",
            self.folder.path("state").display(),
            self.folder().join(self.logs).display()
        );
        let file = self.folder.file("agent.yaml", config);
        let mut program: Command = command(["agent", "--config"]);
        program.arg(file).env("OTEL_EXPORTER_OTLP_PROTOCOL", "http/json");
        let mut process = Process::start("pulsetrain agent", &mut program);
        process.wait_until_ready(|| is_open(page));
        self.process = Some(process);
    }

    /// Returns the path of the followed log.
    pub(crate) fn log(&self) -> PathBuf {
        self.folder.path("training.json")
    }

    /// Returns the folder of the agent.
    pub(crate) fn folder(&self) -> &Path {
        self.folder.root()
    }

    /// Returns the address of its page.
    pub(crate) fn address(&self) -> String {
        format!("127.0.0.1:{}", self.page)
    }

    /// Returns the port of its page.
    pub(crate) fn port(&self) -> u16 {
        self.page
    }

    /// Returns its page as text.
    pub(crate) fn page(&self) -> String {
        metrics(self.page).expect("the agent answers")
    }

    /// Returns its process.
    pub(crate) fn process(&self) -> &Process {
        self.process.as_ref().expect("the agent was started")
    }

    /// Stops the agent.
    pub(crate) fn stop(mut self) -> ExitStatus {
        self.process.take().expect("the agent was started").stop()
    }
}

/// An agent that follows a log whose steps the test writes.
pub(crate) struct Following {
    agent: Agent,
    log: SurogateWriter,
    runs: usize,
    steps: usize,
}

/// A step with the times between which it appeared on the page, in seconds.
pub(crate) struct Written {
    pub(crate) loss: f64,
    pub(crate) begun: f64,
    pub(crate) shown: f64,
}

impl Following {
    /// Starts the agent on a log that has no steps yet.
    pub(crate) fn start(of_page: &str, sinks: &str) -> Self {
        let mut agent = Agent::new();
        let log = begin(&agent.log(), 0);
        agent.start(of_page, sinks);
        Self {
            agent,
            log,
            runs: 1,
            steps: 0,
        }
    }

    /// Restarts the trainer, which truncates the log.
    pub(crate) fn restart(&mut self) {
        self.log = begin(&self.agent.log(), self.runs);
        self.runs += 1;
    }

    pub(crate) fn agent(&self) -> &Agent {
        &self.agent
    }

    /// Writes a record.
    pub(crate) fn append(&mut self, record: &str) {
        self.log.append(record);
    }

    /// Writes the next step, and waits until the page shows it.
    pub(crate) fn write_step(&mut self, loss: f64) -> Written {
        let step = self.steps;
        let begun = seconds_now();
        self.append_step(loss);
        wait_until("the page shows the step", || {
            self.shows("train_global_step", step as f64) && self.shows("train_loss", loss)
        });
        let shown = seconds_now();
        Written { loss, begun, shown }
    }

    /// Writes the next step.
    pub(crate) fn append_step(&mut self, loss: f64) {
        let step = self.steps;
        self.steps += 1;
        // Surogate writes numbers that are not finite as strings.
        let text = if loss.is_finite() {
            loss.to_string()
        } else {
            format!("\"{loss}\"").to_lowercase()
        };
        self.log.append(&format!(
            r#"{{"log": "step", "time": "2026-11-21 01:{:02}:{:02}.{step:09}", "step": {step}, "epoch": 0.5, "step_tokens": 16384, "duration_ms": 123, "norm": 1.5, "loss": {text}, "lr": 2e-05, "phase": "converging"}}"#,
            step / 60 % 60,
            step % 60
        ));
    }

    /// Stops the agent.
    pub(crate) fn stop(self) -> ExitStatus {
        self.agent.stop()
    }

    fn shows(&self, name: &str, value: f64) -> bool {
        let page = self.agent.page();
        let series = page.lines().find(|line| line.starts_with(&format!("{name}{{")));
        let shown = series.and_then(|line| line.rsplit(' ').next()?.parse::<f64>().ok());
        shown.is_some_and(|shown| shown == value || (shown.is_nan() && value.is_nan()))
    }
}

/// Creates a log with all records before the first step; the second makes its start time unique.
fn begin(path: &Path, second: usize) -> SurogateWriter {
    let mut log = SurogateWriter::create(path);
    let records = surogate_records(&corpus("surogate/training_dense.json"));
    let is_step = |record: &&String| record.contains("\"log\": \"step\"");
    let opening = records.iter().take_while(|record| !is_step(record));
    let at = format!("2026-11-21 00:20:{second:02}");
    opening.for_each(|record| log.append(&record.replace("2026-11-21 00:18:40", &at)));
    log
}

fn seconds_now() -> f64 {
    unix_nanos() as f64 / 1e9
}
