//! An agent with a page and an OTLP endpoint, and the Surogate log that it follows.

use std::{
    fs,
    net::TcpStream,
    process::{Command, ExitStatus},
};

use pulsetrain_tests::{Process, SurogateWriter, command, corpus, free_port, surogate_records, wait_until};
use tempfile::TempDir;

use crate::{endpoint::page, otlp::now};

pub(crate) struct Following {
    _folder: TempDir,
    page: u16,
    agent: Process,
    log: SurogateWriter,
    steps: usize,
}

/// A step with the times between which it came onto the page, in seconds.
pub(crate) struct Written {
    pub(crate) loss: f64,
    pub(crate) begun: f64,
    pub(crate) shown: f64,
}

impl Following {
    /// Starts the agent, with more of the configuration, on a log whose steps are yet to come.
    pub(crate) fn start(endpoint: &str, more: &str) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder can be made");
        let [page, health] = [free_port(), free_port()];
        let path = folder.path().join("training.json");
        let mut log = SurogateWriter::create(&path);
        let records = surogate_records(&corpus("surogate/training_dense.json"));
        let first = records
            .iter()
            .position(|record| record.contains("\"log\": \"step\""));
        records[..first.expect("a run has steps")]
            .iter()
            .for_each(|record| log.append(record));
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
  receiver:
    otlp:
      endpoint: {endpoint}
telemetry:
  interval: 100ms
health:
  listen: 127.0.0.1:{health}
{more}",
            folder.path().join("state").display(),
            path.display()
        );
        let file = folder.path().join("agent.yaml");
        fs::write(&file, config).expect("a temporary file can be written");
        let mut program: Command = command(["agent", "--config"]);
        program.arg(file).env("OTEL_EXPORTER_OTLP_PROTOCOL", "http/json");
        let mut agent = Process::start("pulsetrain agent", &mut program);
        agent.wait_until_ready(|| TcpStream::connect(("127.0.0.1", page)).is_ok());
        Self {
            _folder: folder,
            page,
            agent,
            log,
            steps: 0,
        }
    }

    /// Where the page is.
    pub(crate) fn page(&self) -> String {
        format!("127.0.0.1:{}", self.page)
    }

    /// Writes the next step, and waits until the page shows it.
    pub(crate) fn write_step(&mut self, loss: f64) -> Written {
        let step = self.steps;
        self.steps += 1;
        // Surogate writes what is no number as text.
        let text = if loss.is_finite() {
            loss.to_string()
        } else {
            format!("\"{loss}\"").to_lowercase()
        };
        let begun = seconds_now();
        self.log.append(&format!(
            r#"{{"log": "step", "time": "2026-11-21 01:{:02}:{:02}.{step:09}", "step": {step}, "epoch": 0.5, "step_tokens": 16384, "duration_ms": 123, "norm": 1.5, "loss": {text}, "lr": 2e-05, "phase": "converging"}}"#,
            step / 60 % 60,
            step % 60
        ));
        wait_until("the page shows the step", || {
            self.shows("train_global_step", step as f64) && self.shows("train_loss", loss)
        });
        let shown = seconds_now();
        Written { loss, begun, shown }
    }

    /// Ends the agent.
    pub(crate) fn stop(self) -> ExitStatus {
        self.agent.stop()
    }

    fn shows(&self, name: &str, value: f64) -> bool {
        let page = page(&self.page(), "text/plain");
        let page = String::from_utf8(page).expect("the page is text");
        let series = page.lines().find(|line| line.starts_with(&format!("{name}{{")));
        let shown = series.and_then(|line| line.rsplit(' ').next()?.parse::<f64>().ok());
        shown.is_some_and(|shown| shown == value || (shown.is_nan() && value.is_nan()))
    }
}

fn seconds_now() -> f64 {
    now() as f64 / 1e9
}
