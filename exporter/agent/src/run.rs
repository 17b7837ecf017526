//! `pulsetrain run`: runs a trainer unchanged, and sends its telemetry.
//!
//! This process is the keeper of `pulsetrain-launcher`: it starts the trainer, and forwards its signals and keys. `exporter`
//! is a process of its own that gets a copy of the output; `identity` identifies the run for both. A failure of Pulsetrain
//! does not stop the trainer.

mod disk_queues;
pub(crate) mod exporter;
mod identity;
mod lines;
mod outcome;
mod page;
mod recording;
mod stream;

use std::{
    ffi::{CStr, OsString},
    io,
    os::unix::process::CommandExt,
    process::{Command, ExitCode},
};

use pulsetrain_launcher::{Handover, Launch};
use pulsetrain_pipeline::Problem;

use self::identity::Identity;
use crate::{
    cli::RunArguments,
    log::{self, Subject},
};

/// A shell's exit codes for a command that is not found, and for one that cannot be executed.
const NOT_FOUND: u8 = 127;
const NOT_STARTED: u8 = 126;

/// The name of all processes of `run`: a `pkill -HUP -x pulsetrain` for an agent must not reach a trainer.
const PROCESS_NAME: &CStr = c"pulsetrain-run";

/// The command of the exporter, which is not in the help.
pub(crate) const EXPORTER: &str = "run-exporter";

/// Runs the command.
pub(crate) fn run(arguments: &RunArguments) -> ExitCode {
    pulsetrain_launcher::rename_process(PROCESS_NAME);
    log::start(arguments.log);
    let identity = Identity::new(arguments.run_id.clone(), variable, identity::new_id);
    let launch = Launch {
        command: &arguments.command,
        variables: &[(identity::RUN_ID, identity.id.clone())],
        exporter: &|pipes| exporter_command(pipes, &identity.id),
        drain: arguments.drain,
    };
    let report = &mut |incident: &_| log::warn(Subject::Program, incident);
    match pulsetrain_launcher::keep(&launch, report) {
        Ok(code) => ExitCode::from(code),
        Err(error) => not_started(&arguments.command, &error),
    }
}

/// Returns the command of the exporter: this program with the arguments of this process.
fn exporter_command(pipes: &Handover, new_id: &str) -> Command {
    // A path would name another program after an upgrade.
    let mut command = Command::new("/proc/self/exe");
    command.arg0("pulsetrain").arg(EXPORTER);
    command.args([format!("--pipes={pipes}"), format!("--new-id={new_id}")]);
    command.args(std::env::args_os().skip(2));
    // One arena: each thread would reserve 64 MiB of address space, which a limit (`ulimit -v`) may not allow.
    command.env("MALLOC_ARENA_MAX", "1");
    command
}

/// Returns the warnings of `run` about the identity that the environment gives the ranks of a run.
pub(crate) fn identity_warnings(variable: impl Fn(&str) -> Option<String>) -> Vec<Problem> {
    let identity = Identity::new(None, variable, identity::new_id);
    identity.warnings().collect()
}

/// Reports why the trainer could not be started, and returns the exit code of a shell for it.
fn not_started(command: &[OsString], error: &io::Error) -> ExitCode {
    let program = command
        .first()
        .map(|program| program.to_string_lossy())
        .unwrap_or_default();
    log::error(Subject::Program, format_args!("cannot start {program}: {error}"));
    ExitCode::from(if error.kind() == io::ErrorKind::NotFound {
        NOT_FOUND
    } else {
        NOT_STARTED
    })
}

fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok()
}
