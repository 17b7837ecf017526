//! The command line.

use std::{ffi::OsString, net::SocketAddr, path::PathBuf, time::Duration};

use clap::{Args, Parser, Subcommand, ValueEnum};
use pulsetrain_formats::{LogFormat, format_by_name, format_names};
use pulsetrain_pipeline::Problem;
use pulsetrain_record::Timezone;

use crate::{log::LogArguments, reading::ReadingArguments, seconds::seconds};

/// OpenTelemetry-native telemetry for model training.
#[derive(Debug, Parser)]
#[command(name = "pulsetrain", version, propagate_version = true)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Convert OTLP files to a Perfetto trace, and a Perfetto trace to OTLP
    Convert(Box<crate::convert::ConvertArguments>),
    /// Import the log of a training run as OpenTelemetry
    Import(ImportArguments),
    /// Follow the logs and GPUs of this machine and send their telemetry, as a daemon
    Agent(AgentArguments),
    /// Run an unmodified trainer and send its output and logs as OpenTelemetry
    Run(RunArguments),
    /// Read the copy of the output of `run` and send its telemetry
    #[command(hide = true)]
    RunExporter(ExporterArguments),
    /// Simulate a training job with faults, and show its telemetry
    Demo(Box<crate::demo::DemoArguments>),
    /// Show finished runs in the browser, as an HTML file or on the terminal
    Show(crate::show::ShowArguments),
    /// Diagnose GPUs, receivers, clocks, names and contradictory variables
    Doctor(crate::doctor::DoctorArguments),
    /// List the registry of names, look up a name, check a file against it
    #[command(subcommand)]
    Semconv(SemconvCommand),
}

/// The arguments of `import`.
#[derive(Args, Debug)]
#[command(after_help = IMPORT_HELP)]
pub(crate) struct ImportArguments {
    /// Logs (plain, gzip or zstd) or folders. A folder selects the recognised logs in it, and the event files and wandb
    /// runs below it. `-` is the standard input
    #[arg(required_unless_present = "suggest_mapping", value_name = "PATH")]
    pub(crate) paths: Vec<PathBuf>,

    #[command(flatten)]
    pub(crate) reading: ReadingArguments,

    /// Print a mapping for LOG, of any text: each key with its count, examples and use, patterns for lines without usual keys, and what
    /// the mapping delivers. Edit it and pass it to --mapping
    #[arg(long, value_name = "LOG", exclusive = true)]
    pub(crate) suggest_mapping: Option<PathBuf>,

    /// The target: FILE.jsonl, FILE.binpb, `-` (JSON lines on the standard output), FILE.pftrace (Perfetto), openmetrics:FILE (history
    /// for promtool), grpc://, grpcs://, http:// or https:// (OTLP), remote-write:URL (Prometheus). A prefix selects signals:
    /// traces=http://jaeger:4318, or traces,logs=FILE.jsonl. May be repeated [default: from the OTEL_EXPORTER_OTLP_* variables]
    #[arg(long, value_name = "TARGET")]
    pub(crate) to: Vec<String>,

    /// The time after which import gives up an unreachable target. With --follow, targets are retried without limit
    #[arg(long, value_name = "SECONDS", default_value = "30", value_parser = seconds)]
    pub(crate) give_up_after: Duration,

    /// Follow the logs as they are written, until interrupted. A PATH may also be a directory or a quoted pattern, and need not exist
    /// yet
    #[arg(long)]
    pub(crate) follow: bool,

    /// With --follow: the folder for checkpoints. The next start resumes from them without loss or duplicates, even after a kill
    #[arg(long, value_name = "FOLDER", requires = "follow")]
    pub(crate) state: Option<PathBuf>,

    /// With --follow: the poll interval where the system does not report file changes (network file systems)
    #[arg(long, value_name = "SECONDS", default_value = "1", requires = "follow", value_parser = seconds)]
    pub(crate) poll_interval: Duration,

    /// Derive signals from the steps, as the agent does: throughput, MFU, smoothed values, anomalies, ETA, bottleneck. Metrics in the
    /// log are not derived
    #[arg(long)]
    pub(crate) derive: bool,

    /// An OTLP file of a file sink of the agent, with gpu.energy during the run. Adds the energy of each step. May be repeated
    #[arg(long, value_name = "FILE", conflicts_with = "follow")]
    pub(crate) gpu_readings: Vec<PathBuf>,

    /// Print the summary as one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

const IMPORT_HELP: &str = "\
Exit status: 0 all records were parsed and delivered, 1 some were malformed, beyond a limit or lost, 2 the command line is \
invalid. Values that the trainer did not measure, and input that a rule of the format ignores, are skipped without an error. A signal that a \
receiver does not support is reported. It counts as lost only if --to or a variable selects it, or if the receiver supports no signal.

Examples:
  pulsetrain import training.json --to out.jsonl
  pulsetrain import training.json --to grpc://localhost:4317
  pulsetrain import runs/*/training.json --to http://localhost:4318 --json
  pulsetrain import training.json --to traces=http://localhost:4318 --to metrics=http://localhost:9090/api/v1/otlp
  pulsetrain import --follow 'runs/*/training.json' --state state --to grpc://localhost:4317";

/// The arguments of `agent`.
#[derive(Args, Debug)]
#[command(after_help = AGENT_HELP)]
pub(crate) struct AgentArguments {
    /// The configuration file [default: pulsetrain.yaml if it exists; else the agent watches only the GPUs of this machine]
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,

    /// Write the process id to this file while the agent runs, for programs that send it signals
    #[arg(long, value_name = "FILE")]
    pub(crate) pid_file: Option<PathBuf>,

    /// Check the configuration, report its errors and exit
    #[arg(long, conflicts_with = "print_config")]
    pub(crate) check: bool,

    /// Print a configuration with every key, its default and its documentation
    #[arg(long)]
    pub(crate) print_config: bool,

    #[command(flatten)]
    pub(crate) log: LogArguments,
}

const AGENT_HELP: &str = "\
SIGHUP reloads the configuration, SIGUSR1 writes the contents of flight recorders to files, SIGTERM and SIGINT drain the queues and \
end the agent.

Exit status: 0 stopped without loss, 1 something failed or was lost, 2 the configuration or the command line is invalid.

Examples:
  pulsetrain agent --print-config > pulsetrain.yaml
  pulsetrain agent --check
  pulsetrain agent --config /etc/pulsetrain.yaml";

/// The arguments of `run`.
#[derive(Args, Debug)]
#[command(after_help = RUN_HELP)]
pub(crate) struct RunArguments {
    /// The program and its arguments, after `--`
    #[arg(required = true, last = true, value_name = "COMMAND")]
    pub(crate) command: Vec<OsString>,

    /// Use the sinks and limits of this configuration of the agent
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,

    /// The format of the output [default: detected from its contents]
    #[arg(long, value_name = "NAME|auto", default_value = "auto", hide_default_value = true, value_parser = format)]
    pub(crate) format: FormatChoice,

    /// A YAML file that maps keys to metrics, like {format: text, step: iter, values: [{key: loss, metric: train.loss}]}. Its
    /// `format` applies unless --format is given
    #[arg(long, value_name = "FILE")]
    pub(crate) mapping: Option<PathBuf>,

    /// The target, as for `import`. May be repeated [default: the sinks of --config, or from the OTEL_EXPORTER_OTLP_* variables]
    #[arg(long, value_name = "TARGET")]
    pub(crate) to: Vec<String>,

    /// Serve the live page and /metrics at this loopback address, such as 127.0.0.1:9464. Without --to and --config, OTLP is sent only
    /// if an OTEL_EXPORTER_OTLP_* variable names an endpoint
    #[arg(long, value_name = "ADDRESS", value_parser = loopback)]
    pub(crate) listen: Option<SocketAddr>,

    /// Also follow this log. May be repeated
    #[arg(long, value_name = "PATH")]
    pub(crate) follow: Vec<PathBuf>,

    /// The id of the run [default: PULSETRAIN_RUN_ID, or the id of the launcher's job, or a new one]
    #[arg(long, value_name = "ID", value_parser = not_empty)]
    pub(crate) run_id: Option<String>,

    /// The name of the run [default: from the log]
    #[arg(long, value_name = "NAME", value_parser = not_empty)]
    pub(crate) run_name: Option<String>,

    /// The rank of the command [default: from RANK, SLURM_PROCID or similar]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(i64).range(0..))]
    pub(crate) rank: Option<i64>,

    /// The zone of timestamps without one: a name such as America/New_York, local, UTC, or an offset such as -05:00 [default: inferred
    /// from the clock, else the zone of this machine]
    #[arg(long, value_name = "NAME|local|UTC", allow_hyphen_values = true, value_parser = timezone)]
    pub(crate) timezone: Option<Timezone>,

    /// Do not watch the GPUs of this machine. If several ranks share a machine, only the first rank watches the GPUs
    #[arg(long)]
    pub(crate) no_gpu: bool,

    /// The time limit for sending queued data after the command exits
    #[arg(long, value_name = "SECONDS", default_value = "2", value_parser = seconds)]
    pub(crate) drain: Duration,

    /// Print one line per step on the terminal
    #[arg(long)]
    pub(crate) step_line: bool,

    /// Print a summary of the data read and sent at the end. Without it, only losses are printed
    #[arg(long)]
    pub(crate) summary: bool,

    #[command(flatten)]
    pub(crate) log: LogArguments,
}

/// The arguments of the exporter that `run` starts.
#[derive(Args, Debug)]
pub(crate) struct ExporterArguments {
    /// The descriptors of the copy of the output
    #[arg(long)]
    pub(crate) pipes: String,

    /// The id of the run if nothing else sets one
    #[arg(long)]
    pub(crate) new_id: String,

    #[command(flatten)]
    pub(crate) run: RunArguments,
}

const RUN_HELP: &str = "\
Exit status: the status of the command; 128 + n if signal n ended it, 127 if it does not exist, 126 if it cannot be started, 2 if the \
command line of pulsetrain is invalid. The command gets PULSETRAIN_RUN_ID, so that all its ranks share one run.

All signals are forwarded to the command, including SIGUSR1, which launchers send before a time limit ends. A flight recorder in --config \
answers GET /trace?last=5m on the health address (127.0.0.1:13133), and writes its file when the command fails.

Examples:
  pulsetrain run --listen 127.0.0.1:9464 -- python train.py
  pulsetrain run --to grpc://localhost:4317 -- python train.py
  pulsetrain run --format maxtext --to out.jsonl -- python -m maxtext.train config.yml
  pulsetrain run --follow training.json --step-line -- surogate sft config.yaml";

/// The arguments of `semconv`.
#[derive(Debug, Subcommand)]
pub(crate) enum SemconvCommand {
    /// List every name in the registry
    List {
        /// Only names of this kind
        #[arg(long)]
        kind: Option<DefinitionKind>,
    },
    /// Show the definition of a name, its unit, its attributes and its sources
    Show {
        /// A metric, attribute, span or event, the Prometheus name of a metric, or a key of a trainer's log
        name: String,
    },
    /// Check an OTLP file (.jsonl, .json, .binpb, plain or compressed) against the registry
    #[command(after_help = "Exit status: 0 no findings, 1 at least one finding, or the file cannot be read.")]
    Check {
        /// The file
        file: PathBuf,
    },
}

/// The kinds of definition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum DefinitionKind {
    Metric,
    Attribute,
    Span,
    Event,
}

/// A format, or the choice to detect it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FormatChoice(pub(crate) Option<&'static LogFormat>);

pub(crate) fn format(name: &str) -> Result<FormatChoice, Problem> {
    if name == "auto" {
        return Ok(FormatChoice(None));
    }
    match format_by_name(name) {
        Some(format) => Ok(FormatChoice(Some(format))),
        None => Err(Problem::new("there is no such format")
            .with_remedy(format!("use auto or one of: {}", format_names()))),
    }
}

/// Parses an address that only this machine can reach.
fn loopback(text: &str) -> Result<SocketAddr, Problem> {
    let address: SocketAddr = text
        .parse()
        .map_err(|_| "expected an address such as 127.0.0.1:9464".to_owned())?;
    if address.ip().is_loopback() {
        Ok(address)
    } else {
        Err(Problem::new("other machines could read the telemetry").with_remedy("use a loopback address such as 127.0.0.1:9464, or allow it with allow_remote in the file of --config"))
    }
}

pub(crate) fn timezone(name: &str) -> Result<Timezone, Problem> {
    Timezone::parse(name).map_err(|error| Problem::new(error.to_string()).with_remedy(error.remedy()))
}

pub(crate) fn not_empty(text: &str) -> Result<String, Problem> {
    if text.is_empty() {
        Err("must not be empty".into())
    } else {
        Ok(text.to_owned())
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }
}
