//! `pulsetrain semconv`: the registry on the command line.

mod check;
mod findings;
mod list;
mod show;

use std::{io::Write, process::ExitCode};

use crate::{cli::SemconvCommand, failure::Failure};

/// Runs the command.
pub(crate) fn run(command: SemconvCommand) -> Result<ExitCode, Failure> {
    match command {
        SemconvCommand::List { kind } => print(&list::list(kind)),
        SemconvCommand::Show { name } => print(&show::show(&name)?),
        SemconvCommand::Check { file } => check::check(&file),
    }
}

/// Prints to the standard output; a closed pipe (`| head`) is not a failure.
fn print(text: &str) -> Result<ExitCode, Failure> {
    match std::io::stdout().write_all(text.as_bytes()) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => Err(Failure::failed(error)),
        _ => Ok(ExitCode::SUCCESS),
    }
}
