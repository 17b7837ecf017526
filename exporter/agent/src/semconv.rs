//! `pulsetrain semconv`: the registry on the command line.

mod list;
mod show;

use std::{io::Write, path::Path, process::ExitCode};

use pulsetrain_conformance::check_file;

use crate::{
    cli::SemconvCommand,
    failure::{Failure, INCOMPLETE},
};

/// Runs the command.
pub(crate) fn run(command: SemconvCommand) -> Result<ExitCode, Failure> {
    match command {
        SemconvCommand::List { kind } => print(&list::list(kind)),
        SemconvCommand::Show { name } => print(&show::show(&name)?),
        SemconvCommand::Check { file } => check(&file),
    }
}

/// Checks an OTLP file and prints the findings.
fn check(path: &Path) -> Result<ExitCode, Failure> {
    let report = check_file(path)
        .map_err(|error| Failure::failed(format!("cannot open {}: {error}", path.display())))?;
    if report.is_clean() {
        return print(&format!("{} items, nothing found\n", report.items));
    }
    print(&report.to_string())?;
    Ok(ExitCode::from(INCOMPLETE))
}

/// Prints to the standard output; a closed pipe (`| head`) is not a failure.
fn print(text: &str) -> Result<ExitCode, Failure> {
    match std::io::stdout().write_all(text.as_bytes()) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => Err(Failure::failed(error)),
        _ => Ok(ExitCode::SUCCESS),
    }
}
