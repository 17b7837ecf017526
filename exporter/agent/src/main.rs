//! The `pulsetrain` command.
//!
//! `cli` defines the command line, one module per subcommand implements it, and only `topology` depends on the types of
//! sources and sinks. Exit codes: 0 done, 1 something failed or was lost, 2 the command line is invalid.

mod agent;
mod cli;
mod config;
mod convert;
mod demo;
mod descriptors;
mod doctor;
mod failure;
mod import;
mod input_guard;
mod ledger_view;
mod log;
mod losses;
mod progress_bar;
mod reading;
mod run;
mod runtime;
mod seconds;
mod semconv;
mod show;
mod signal_selection;
mod terminal;
mod topology;
mod trace_sink;

use std::process::ExitCode;

use clap::Parser;

use cli::{Cli, Command};

fn main() -> ExitCode {
    pulsetrain_launcher::ignore_file_size_signal();
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => terminal::exit_with(&error),
    };
    let outcome = match cli.command {
        Command::Agent(arguments) => agent::run(&arguments),
        Command::Convert(arguments) => convert::run(&arguments),
        Command::Demo(arguments) => demo::run(&arguments),
        Command::Doctor(arguments) => doctor::run(&arguments),
        Command::Import(arguments) => import::run(arguments),
        Command::Run(arguments) => Ok(run::run(&arguments)),
        Command::RunExporter(arguments) => run::exporter::run(&arguments),
        Command::Show(arguments) => show::run(&arguments),
        Command::Semconv(command) => semconv::run(command),
    };
    match outcome {
        Ok(code) => code,
        Err(failure) => {
            log::error(log::Subject::Program, &failure);
            failure.exit_code()
        }
    }
}
