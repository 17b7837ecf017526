//! Regenerates everything that comes from the registry, or checks that it is up to date.
#![expect(clippy::print_stderr, reason = "a command-line tool talks on stderr")]

use std::path::Path;
use std::process::ExitCode;

use anyhow::Context as _;
use clap::Parser;
use pulsetrain_codegen::{Registry, check, generate, out_of_date, stale, write};

/// Regenerates constants, instruments and docs from semconv/registry.
#[derive(Parser)]
struct Arguments {
    /// Write nothing; list the files that are not what would be generated and exit with 1.
    #[arg(long)]
    check: bool,
}

fn main() -> anyhow::Result<ExitCode> {
    let arguments = Arguments::parse();
    let semconv = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let registry = Registry::load(&semconv.join("registry"))
        .and_then(|registry| registry.with_trainers(&semconv.join("../exporter/mapping/mappings")))
        .context("the registry cannot be read")?;
    let violations = check(&registry);
    for violation in &violations {
        eprintln!("{violation}");
    }
    anyhow::ensure!(
        violations.is_empty(),
        "{} entries of semconv/registry break a rule",
        violations.len()
    );
    let outputs = generate(&registry)?;
    if !arguments.check {
        write(&semconv, &outputs)?;
        return Ok(ExitCode::SUCCESS);
    }
    let stale = stale(&semconv, &outputs)?;
    for path in &stale {
        eprintln!("{}", out_of_date(path));
    }
    Ok(if stale.is_empty() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}
