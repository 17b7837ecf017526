//! Writes everything that is generated from `grafana/definitions`, or checks that it is up to date.
#![expect(clippy::print_stderr, reason = "a command-line tool reports on stderr")]

use std::{path::Path, process::ExitCode};

use clap::Parser;
use pulsetrain_grafana::{generate, out_of_date, stale, write};

/// Writes dashboards, alerts and their tests from grafana/definitions.
#[derive(Parser)]
struct Arguments {
    /// Write nothing; list the files that are not up to date and exit with 1.
    #[arg(long)]
    check: bool,
}

fn main() -> anyhow::Result<ExitCode> {
    let arguments = Arguments::parse();
    let grafana = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let files = match generate(&grafana.join("definitions")) {
        Ok(files) => files,
        Err(errors) => {
            errors.iter().for_each(|error| eprintln!("{error}"));
            anyhow::bail!("grafana/definitions has {} errors", errors.len());
        }
    };
    if !arguments.check {
        write(&grafana, &files)?;
        return Ok(ExitCode::SUCCESS);
    }
    let stale = stale(&grafana, &files)?;
    for path in &stale {
        eprintln!("{}", out_of_date(path));
    }
    Ok(if stale.is_empty() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}
