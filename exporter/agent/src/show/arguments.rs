//! The command line of `show`.

use std::{
    net::{IpAddr, Ipv4Addr, SocketAddr},
    path::PathBuf,
};

use clap::Args;
use pulsetrain_pipeline::Problem;

use crate::reading::ReadingArguments;

/// The command line of `show`.
#[derive(Args, Debug)]
#[command(after_help = HELP)]
pub(crate) struct ShowArguments {
    /// Logs of any format that `import` reads, OTLP (.jsonl, .binpb), Perfetto traces, or folders with such files
    #[arg(required = true, value_name = "PATH")]
    pub(crate) paths: Vec<PathBuf>,

    #[command(flatten)]
    pub(crate) reading: ReadingArguments,

    /// Write the page to a single HTML file to share, without opening a browser
    #[arg(long, value_name = "FILE", conflicts_with_all = ["text", "listen", "no_open"])]
    pub(crate) html: Option<PathBuf>,

    /// Print a summary of the runs on the terminal
    #[arg(long, conflicts_with_all = ["listen", "no_open"])]
    pub(crate) text: bool,

    /// Print the address of the page without opening a browser
    #[arg(long)]
    pub(crate) no_open: bool,

    /// The maximum number of series per run. Points of further series are counted but not shown
    #[arg(long, value_name = "N", default_value = "20000")]
    pub(crate) series_limit: usize,

    /// The loopback address of the page; port 0 selects a free port
    #[arg(long, value_name = "ADDRESS", default_value_t = ANY_PORT, value_parser = loopback)]
    pub(crate) listen: SocketAddr,
}

const ANY_PORT: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 0);

const HELP: &str = "\
Exit status: 0 everything was read, 1 something could not be read or shown, or no run was found, 2 the command line is invalid.

Examples:
  pulsetrain show training.json                  (opens the browser)
  pulsetrain show runs/                          (all runs in the folder and below it)
  pulsetrain show training.json --html run.html  (one file to share)
  pulsetrain show own.log --mapping mapping.yaml (a log with keys of its own)
  pulsetrain show telemetry.jsonl --text         (on the terminal)";

/// Parses an address that only this machine can reach.
fn loopback(text: &str) -> Result<SocketAddr, Problem> {
    let address: SocketAddr = text
        .parse()
        .map_err(|_| "expected an address such as 127.0.0.1:8080".to_owned())?;
    if address.ip().is_loopback() {
        Ok(address)
    } else {
        Err(Problem::new("other machines could read the runs")
            .with_remedy("use a loopback address such as 127.0.0.1:8080, or write a file with --html"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn show_listens_on_loopback_addresses_only() {
        assert!(loopback("127.0.0.1:0").is_ok() && loopback("[::1]:80").is_ok());
        assert!(loopback("0.0.0.0:80").unwrap_err().to_string().contains("--html"));
        assert!(
            loopback("here")
                .unwrap_err()
                .to_string()
                .contains("127.0.0.1:8080")
        );
    }
}
