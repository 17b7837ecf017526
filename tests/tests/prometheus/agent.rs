//! A real Prometheus scrapes the agent, which follows a log that is being written.

use std::{fs, process::Command};

use pulsetrain_tests::{
    Judge, Process, Prometheus, SurogateLog, SurogateWriter, command, corpus, free_port, promtool_check,
    surogate_records, wait_until,
};
use tempfile::TempDir;

use crate::endpoint::page;

#[test]
fn prometheus_sees_the_losses_of_a_run_that_is_being_written_in_their_order() {
    let Some(program) = Judge::Prometheus.require_or_skip() else {
        return;
    };
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let port = free_port();
    let address = format!("127.0.0.1:{port}");
    let agent = start_agent(&folder, port);
    let prometheus = Prometheus::start(&program, &[("ours", address.clone())], &[]);
    let path = corpus("surogate/training_dense.json");
    let losses: Vec<f64> = SurogateLog::read(&path)
        .of_kind("step")
        .iter()
        .map(|step| step.number("loss"))
        .collect();

    let mut log = SurogateWriter::create(&folder.path().join("training.json"));
    let mut steps = 0;
    for record in surogate_records(&path) {
        log.append(&record);
        steps += usize::from(record.contains("\"log\": \"step\""));
        // Every fifth step is waited for, so that Prometheus has some on the way.
        if record.contains("\"log\": \"step\"") && steps % (losses.len() / 5) == 0 {
            let loss = losses[steps - 1];
            wait_until("Prometheus has the loss", || {
                prometheus.value("train_loss") == Some(loss)
            });
        }
    }
    assert_eq!(steps, losses.len());
    wait_until("Prometheus has the last loss", || {
        prometheus.value("train_loss") == losses.last().copied()
    });

    let mut rest = losses.iter();
    let mut before = f64::NAN;
    for loss in seen(&prometheus) {
        assert!(
            loss == before || rest.any(|later| *later == loss),
            "{loss} is out of its order"
        );
        before = loss;
    }
    assert!(prometheus.value("sum(pulsetrain_accepted_items_total)") > Some(losses.len() as f64));
    let output = promtool_check(&program, &page(&address, "text/plain"));
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    assert!(agent.stop().success());
}

/// The values of `train_loss` that Prometheus scraped, in their order.
fn seen(prometheus: &Prometheus) -> Vec<f64> {
    let samples = prometheus.query("train_loss[10m]");
    let values = samples[0]["values"].as_array().expect("a range has values");
    let value = |pair: &serde_json::Value| pair[1].as_str().and_then(|text| text.parse().ok());
    values
        .iter()
        .map(|pair| value(pair).expect("a sample is a number"))
        .collect()
}

fn start_agent(folder: &TempDir, port: u16) -> Process {
    let health = free_port();
    let path = |name: &str| folder.path().join(name).display().to_string();
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
      listen: 127.0.0.1:{port}
telemetry:
  interval: 100ms
health:
  listen: 127.0.0.1:{health}
",
        path("state"),
        path("training.json")
    );
    fs::write(folder.path().join("agent.yaml"), config).expect("a temporary file can be written");
    let mut program: Command = command(["agent", "--config"]);
    let mut agent = Process::start("pulsetrain agent", program.arg(folder.path().join("agent.yaml")));
    agent.wait_until_ready(|| std::net::TcpStream::connect(("127.0.0.1", port)).is_ok());
    agent
}
