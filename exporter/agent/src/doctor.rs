//! `pulsetrain doctor`: checks the environment of telemetry, and reports faults with their remedies.
//!
//! `agent` finds the agent that runs with the configuration, `gpus` queries the driver, `endpoint` the receivers and their
//! clocks, `names` the translation of names by receivers, `prometheus` a Prometheus for Pulsetrain's series; `logs` reads the
//! heads of logs, `folders` tests writes, `step_traces` compares the trace of a step with the limit of a store; `environment` and `launcher` check for variables that contradict each other. Each
//! `finding` is independent.

mod agent;
mod endpoint;
mod environment;
mod finding;
mod folders;
mod gpus;
mod launcher;
mod logs;
mod names;
mod prometheus;
mod step_traces;
mod variables;

use std::{path::PathBuf, process::ExitCode, time::Duration};

use clap::Args;
use pulsetrain_otlp::Signal;

use self::{
    agent::RunningAgent,
    finding::{Findings, Level, Subject},
    variables::Variables,
};
use crate::{
    config::{self, Config, Fault},
    failure::{Failure, INCOMPLETE},
    runtime,
    seconds::seconds,
    terminal,
};

/// The arguments of `doctor`.
#[derive(Args, Debug)]
#[command(after_help = HELP)]
pub(crate) struct DoctorArguments {
    /// Logs to inspect, folders or quoted patterns: format, run and rank of each [default: those of the configuration]
    #[arg(value_name = "LOG")]
    pub(crate) logs: Vec<PathBuf>,

    /// Check the sources and sinks of this configuration of the agent
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,

    /// Check this target instead of those of the configuration or of the OTEL_EXPORTER_OTLP_* variables. May be repeated
    #[arg(long, value_name = "TARGET")]
    pub(crate) to: Vec<String>,

    /// Check whether this Prometheus has the series, with the labels that the dashboards need
    #[arg(long, value_name = "URL")]
    pub(crate) prometheus: Option<String>,

    /// The time limit for the driver, for each receiver and for the head of each log
    #[arg(long, value_name = "SECONDS", default_value = "5", value_parser = seconds)]
    pub(crate) timeout: Duration,

    /// Print the findings as one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

/// The advice for a fault of the configuration.
const CORRECT: &str = "correct it there; pulsetrain agent --print-config shows every key";

const HELP: &str = "\
Sends only an empty request to each receiver. Reads the environment variables of this shell, so run it where the trainer runs.

Exit status: 0 no problem found, 1 at least one problem found, 2 the command line is invalid.

Examples:
  pulsetrain doctor
  pulsetrain doctor --config /etc/pulsetrain.yaml
  pulsetrain doctor 'logs/rank_*.log'
  pulsetrain doctor --prometheus http://localhost:9090
  srun pulsetrain doctor --to grpc://collector:4317 --json";

/// Runs the command.
pub(crate) fn run(arguments: &DoctorArguments) -> Result<ExitCode, Failure> {
    let findings = runtime::run_on(1, |runtime| runtime.block_on(look(arguments)))?;
    let text = if arguments.json {
        findings.to_json()
    } else {
        findings.to_text()
    };
    terminal::print(&text)?;
    Ok(if findings.has_wrong() {
        ExitCode::from(INCOMPLETE)
    } else {
        ExitCode::SUCCESS
    })
}

async fn look(arguments: &DoctorArguments) -> Result<Findings, Failure> {
    let mut findings = Findings::default();
    let (config, agent) = configuration(arguments, &mut findings).await.unzip();
    let timeout = arguments.timeout;
    let inventory = gpus::survey(config.as_ref(), timeout).await;
    gpus::check(&inventory, config.as_ref(), &mut findings);
    let variables = |name: &str| std::env::var(name).ok();
    environment::check(Variables(&variables), &mut findings);
    environment::check_names(variables::names(), &mut findings);
    launcher::check(Variables(&variables), &inventory.gpus, &mut findings);
    let targets = endpoint::targets(arguments, config.as_ref(), &mut findings)?;
    if targets
        .iter()
        .any(|target| target.config.signals().contains(Signal::Traces))
    {
        step_traces::check(Variables(&variables), &mut findings);
    }
    for target in targets {
        endpoint::check(&target, timeout, &mut findings).await;
        names::check_receiver(&target, timeout, &mut findings).await;
    }
    names::of_pages(config.as_ref(), &mut findings);
    if let Some(url) = &arguments.prometheus {
        prometheus::check(url, timeout, &mut findings).await?;
    }
    logs::check(&arguments.logs, config.as_ref(), timeout, &mut findings).await;
    let agent = agent.unwrap_or_default();
    if !agent.is_of_other_user {
        folders::check(config.as_ref(), &mut findings);
    }
    agent.report(&mut findings);
    Ok(findings)
}

/// Returns the configuration from the command line, as far as it can be read, and the agent that runs with it; faults become
/// findings.
async fn configuration(
    arguments: &DoctorArguments,
    findings: &mut Findings,
) -> Option<(Config, RunningAgent)> {
    let path = arguments.config.as_ref()?;
    let config = match config::load_with_faults(path, &config::environment()) {
        Ok(config) => config,
        Err(faults) => {
            report(&faults, findings);
            return None;
        }
    };
    let file = path.display().to_string();
    let agent = RunningAgent::find(&config, arguments.timeout, findings).await;
    let faults = config::check(&file, &config, &agent.addresses);
    if faults.is_empty() {
        findings.fine(Subject::Config(file), "nothing is wrong");
    }
    report(&faults, findings);
    Some((config, agent))
}

/// Reports the faults of the configuration.
fn report(faults: &[Fault], findings: &mut Findings) {
    for fault in faults {
        let place = Subject::Config(fault.place());
        findings.add(Level::Wrong, place, fault.problem.clone(), CORRECT);
    }
}
