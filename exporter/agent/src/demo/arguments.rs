//! The command line of `demo`.

use std::{net::SocketAddr, path::PathBuf, time::Duration};

use clap::Args;
use pulsetrain_demo::{Fault, FaultRow, Workload};

use pulsetrain_pipeline::Problem;

use crate::{config::parsed_time, log::LogArguments};

/// The arguments of `demo`.
#[derive(Args, Debug)]
#[command(after_help = help())]
pub(crate) struct DemoArguments {
    /// The kind of training: sft (fine-tuning of a mixture of experts) or rl (rollout, inference, training, weight sync)
    #[arg(long, value_name = "sft|rl", default_value = "sft", value_parser = str::parse::<Workload>)]
    pub(crate) workload: Workload,

    /// The number of ranks, each with one GPU. Eight ranks share a host
    #[arg(long, value_name = "N", default_value = "4")]
    pub(crate) ranks: u32,

    /// The number of steps [default: 5000, plus those of --history]
    #[arg(long, value_name = "N")]
    pub(crate) steps: Option<u64>,

    /// The speed of the job: a step takes half a second divided by this [default: 1, with --history 0.25]
    #[arg(long, value_name = "X", value_parser = rate)]
    pub(crate) rate: Option<f64>,

    /// The random seed: the same seed simulates the same job
    #[arg(long, value_name = "S", default_value = "0")]
    pub(crate) seed: u64,

    /// A fault: NAME, NAME@STEP, NAME:rank=R or NAME@STEP:rank=R. May be repeated. The names are below
    #[arg(long, value_name = "FAULT", value_parser = str::parse::<Fault>)]
    pub(crate) fault: Vec<Fault>,

    /// Start the job this long ago, such as 6h. Past data is sent at once with its original timestamps, then the job continues in
    /// real time
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    pub(crate) history: Option<Duration>,

    /// The target, as for `import`. May be repeated [default: a page for browsers and Prometheus on loopback, the step line on the
    /// terminal, and an OTLP file and Perfetto traces in a new folder]
    #[arg(long, value_name = "TARGET")]
    pub(crate) to: Vec<String>,

    /// Use the derived signals, the limits and, without --to, the sinks of this configuration of the agent
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,

    /// The address of the page [default: 127.0.0.1:9464, or a free port if that is in use]
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) listen: Option<SocketAddr>,

    /// The folder of the OTLP file and the Perfetto traces, which must be new or empty [default: pulsetrain-demo-TIME]
    #[arg(long, value_name = "FOLDER")]
    pub(crate) out: Option<PathBuf>,

    /// Print only a summary at the end, as one JSON object
    #[arg(long)]
    pub(crate) json: bool,

    #[command(flatten)]
    pub(crate) log: LogArguments,
}

const AFTER_FAULTS: &str = "
Without a step, a fault begins about half a minute after the start; several faults follow one another. Without a rank, the seed \
selects one.

Exit status: 0 everything was delivered, 1 something was lost or a port or file cannot be used, 2 the command line is invalid.

Examples:
  pulsetrain demo
  pulsetrain demo --ranks 8 --fault straggler@60:rank=3
  pulsetrain demo --workload rl --fault inference-bottleneck
  pulsetrain demo --history 6h --to http://localhost:4318";

/// Returns the end of the help: every fault, and examples.
fn help() -> String {
    let mut text = "Faults (R: of one rank or its GPU):\n".to_owned();
    for row in FaultRow::all() {
        let rank = if row.has_rank() { "R" } else { "" };
        let workload = row
            .workload
            .map(|workload| format!("{workload}: "))
            .unwrap_or_default();
        text.push_str(&format!("  {:22} {rank:1} {workload}{}\n", row.name, row.shows));
    }
    text + AFTER_FAULTS
}

fn duration(text: &str) -> Result<Duration, Problem> {
    parsed_time(text)
}

fn rate(text: &str) -> Result<f64, Problem> {
    let rate: f64 = text
        .parse()
        .map_err(|_| "expected a number above 0, such as 2".to_owned())?;
    if rate.is_finite() && rate > 0.0 {
        Ok(rate)
    } else {
        Err("expected a number above 0, such as 2".into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_help_names_every_fault() {
        let help = help();
        for row in FaultRow::all() {
            assert!(help.contains(&format!("\n  {} ", row.name)), "{}", row.name);
        }
    }

    #[test]
    fn a_rate_is_a_number_above_zero() {
        assert_eq!(rate("10"), Ok(10.0));
        for text in ["0", "-1", "NaN", "inf", "fast"] {
            assert!(rate(text).is_err(), "{text}");
        }
    }
}
