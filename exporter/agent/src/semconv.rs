//! `pulsetrain semconv`: the registry on the command line.

mod list;
mod show;

use std::{path::Path, process::ExitCode};

use pulsetrain_conformance::check_file;

use crate::{
    cli::SemconvCommand,
    failure::{Failure, INCOMPLETE},
    terminal,
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

fn print(text: &str) -> Result<ExitCode, Failure> {
    terminal::print(text)?;
    Ok(ExitCode::SUCCESS)
}
