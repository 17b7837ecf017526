//! The runtime of a command.

use tokio::runtime::{Builder, Runtime};

use crate::failure::Failure;

/// Runs a command on a runtime with this number of threads. A task that hangs, or a thread that waits for a file or a pipe,
/// does not delay the exit.
///
/// # Errors
/// Returns the failure of the command, or an error if no thread can be started.
pub(crate) fn run_on<T>(
    threads: usize,
    command: impl FnOnce(&Runtime) -> Result<T, Failure>,
) -> Result<T, Failure> {
    let runtime = start(threads)?;
    let outcome = command(&runtime);
    runtime.shutdown_background();
    outcome
}

/// Starts a runtime with this number of threads.
///
/// # Errors
/// Returns an error if no thread can be started.
pub(crate) fn start(threads: usize) -> Result<Runtime, Failure> {
    Builder::new_multi_thread()
        .worker_threads(threads)
        .enable_all()
        .build()
        .map_err(|error| Failure::failed(format!("cannot start: {error}")))
}
