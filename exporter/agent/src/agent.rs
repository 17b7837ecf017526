//! `pulsetrain agent`: collects, buffers and sends telemetry as a daemon.
//!
//! `running` holds the running parts and applies configuration changes; `health` answers health checks; `telemetry` is
//! the agent's own telemetry; `recorders` holds the flight recorders. SIGUSR1 saves them, SIGHUP or a change of
//! the file reloads the configuration; SIGTERM and SIGINT end the agent after a bounded drain.

mod clock_watch;
mod config_watch;
mod health;
mod pid_file;
mod recorders;
mod reload;
mod running;
mod sink_watch;
mod systemd;
mod telemetry;

use std::{
    io,
    net::SocketAddr,
    path::{Path, PathBuf},
    process::ExitCode,
    sync::Arc,
    time::Duration,
};

use tokio::signal::unix::{Signal, SignalKind, signal};

use self::{config_watch::ConfigWatch, pid_file::PidFile, running::Running, systemd::Systemd};
pub(crate) use self::{
    health::{REPORT_PATH, Readiness, ReadinessReport, ReportedProblem, serve as serve_health},
    recorders::Recorders,
    running::{open_disk_queue, queue_folder_name},
};
use crate::{
    cli::AgentArguments,
    config::{self, Config, Fault},
    descriptors,
    failure::{Failure, INCOMPLETE},
    log::{self, Subject},
    runtime, terminal,
    topology::state_folder,
};

/// The configuration file that is used by default if it exists.
const DEFAULT: &str = "pulsetrain.yaml";

/// The retry interval for a sink or a source that could not be opened in a reload.
const TRY_AGAIN: Duration = Duration::from_secs(1);

/// Runs the command.
pub(crate) fn run(arguments: &AgentArguments) -> Result<ExitCode, Failure> {
    log::start(arguments.log);
    if arguments.print_config {
        return print(&config::print(&Config::example()));
    }
    let file = file(arguments);
    let ours = |config: &Config| match arguments.check {
        true => config::addresses_of_agent(config),
        false => Vec::new(),
    };
    // Read before the configuration: a file that is replaced in between is read again.
    let in_use = file.as_deref().and_then(config_watch::content);
    let config = match read(file.as_deref(), ours, arguments.check) {
        Ok(config) => config,
        Err(faults) => return Ok(refuse(&faults)),
    };
    log::configure(config.log.level, config.log.format);
    let warnings = warn(file.as_deref(), &config);
    if arguments.check {
        let looked_at = file
            .as_deref()
            .map_or("the default".into(), Path::to_string_lossy);
        let verdict = match warnings {
            0 => "valid".to_owned(),
            1 => "valid, with 1 warning".to_owned(),
            more => format!("valid, with {more} warnings"),
        };
        return print(&format!("{looked_at}: {verdict}\n"));
    }
    descriptors::raise_limit();
    runtime::run_on(2, |runtime| {
        runtime.block_on(live(arguments, file.as_deref(), in_use, config))
    })
}

/// Runs the agent until it is stopped.
async fn live(
    arguments: &AgentArguments,
    file: Option<&Path>,
    in_use: Option<Vec<u8>>,
    config: Config,
) -> Result<ExitCode, Failure> {
    let mut signals =
        Signals::keep().map_err(|error| Failure::failed(format!("cannot receive signals: {error}")))?;
    let systemd = Arc::new(Systemd::from_env());
    let mut watch = ConfigWatch::new(file, in_use);
    let mut running = Running::start(config).await?;
    // Written after the start, so that a second agent that fails to start does not replace the file of the first.
    let _pid_file = (arguments.pid_file.as_deref()).map(PidFile::write).transpose()?;
    if file.is_none() {
        log::info(
            Subject::Program,
            format_args!(
                "no --config is given and there is no {DEFAULT} here: watches the GPUs of this machine, on a page for Prometheus"
            ),
        );
    }
    let state = match running.has_unopened() {
        true => "runs, and waits for the sinks that are not open",
        false => "ready",
    };
    log::info(Subject::Program, state);
    systemd.ready();
    tokio::spawn(Arc::clone(&systemd).keep_alive());
    loop {
        let request = tokio::select! {
            asked = signals.next() => asked,
            () = watch.changed(), if running.config().reload_on_change => SignalRequest::Reload,
            () = running.sink_left() => {
                running.open_all().await;
                continue;
            }
            () = tokio::time::sleep(TRY_AGAIN), if running.has_unopened() => {
                running.open_all().await;
                continue;
            }
        };
        match request {
            SignalRequest::Reload => {
                systemd.reloading();
                watch.record_use().await;
                tokio::select! {
                    () = reload(file, &mut running) => systemd.ready(),
                    // A signal to end interrupts the reload; other signals wait for the end of the reload.
                    () = signals.end() => break,
                }
            }
            SignalRequest::Record => running.record().await,
            SignalRequest::End => break,
        }
    }
    systemd.stopping();
    tokio::select! {
        lost = running.end() => Ok(if lost { ExitCode::from(INCOMPLETE) } else { ExitCode::SUCCESS }),
        // A second signal ends the process without a drain.
        () = signals.ask_to_end() => Ok(ExitCode::from(INCOMPLETE)),
    }
}

/// Reopens moved files, and applies the configuration file if it is valid.
async fn reload(file: Option<&Path>, running: &mut Running) {
    // This also runs if the configuration is invalid: a program that rotates files does not depend on it.
    running.reopen_files().await;
    match read(file, |_| config::addresses(running.config()), true) {
        Ok(config) => {
            if let Err(failure) = state_folder::check(&config) {
                log::error(Subject::Program, failure.into_problem());
                running.record_reload(false);
                return log::warn(Subject::Program, "continues with the old configuration");
            }
            log::configure(config.log.level, config.log.format);
            warn(file, &config);
            running.change(config).await;
            running.record_reload(true);
            log::info(Subject::Program, "reloaded the configuration");
        }
        Err(faults) => {
            report(&faults);
            running.record_reload(false);
            log::warn(Subject::Program, "continues with the old configuration");
        }
    }
}

/// Reads the file, or uses the default without one, and checks it against the system. The addresses of `running` may be in use.
/// Files of sinks that do not exist yet are faults only if `needs_files`: the agent waits for them at its start.
fn read(
    file: Option<&Path>,
    running: impl FnOnce(&Config) -> Vec<SocketAddr>,
    needs_files: bool,
) -> Result<Config, Vec<Fault>> {
    let config = match file {
        Some(file) => config::load_with_faults(file, &config::environment())?,
        None => Config::default(),
    };
    let faults = config::check(&name(file), &config, &running(&config));
    if faults.iter().all(|fault| fault.is_awaited && !needs_files) {
        Ok(config)
    } else {
        Err(faults)
    }
}

/// Logs the warnings about a configuration, and returns their number.
fn warn(file: Option<&Path>, config: &Config) -> usize {
    let warnings = config::warnings(&name(file), config);
    for warning in &warnings {
        log::warn(Subject::Place, warning);
    }
    warnings.len()
}

/// Returns the name of the configuration in messages.
fn name(file: Option<&Path>) -> String {
    file.unwrap_or(Path::new(DEFAULT)).display().to_string()
}

/// Returns the file from the command line, or the default file if it exists.
fn file(arguments: &AgentArguments) -> Option<PathBuf> {
    let there = || Path::new(DEFAULT).exists().then(|| PathBuf::from(DEFAULT));
    arguments.config.clone().or_else(there)
}

/// The action that a signal requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SignalRequest {
    Reload,
    Record,
    End,
}

/// The signals that an agent handles.
struct Signals {
    reload: Signal,
    record: Signal,
    terminate: Signal,
    interrupt: Signal,
}

impl Signals {
    fn keep() -> io::Result<Self> {
        Ok(Self {
            reload: signal(SignalKind::hangup())?,
            record: signal(SignalKind::user_defined1())?,
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
        })
    }

    async fn next(&mut self) -> SignalRequest {
        tokio::select! {
            _ = self.reload.recv() => SignalRequest::Reload,
            _ = self.record.recv() => SignalRequest::Record,
            _ = self.terminate.recv() => SignalRequest::End,
            _ = self.interrupt.recv() => SignalRequest::End,
        }
    }

    /// Waits for a signal to end, and leaves the others pending.
    async fn end(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }

    async fn ask_to_end(&mut self) {
        while self.next().await != SignalRequest::End {}
    }
}

fn refuse(faults: &[Fault]) -> ExitCode {
    report(faults);
    ExitCode::from(2)
}

fn report(faults: &[Fault]) {
    faults.iter().for_each(|fault| log::error(Subject::Place, fault));
}

fn print(text: &str) -> Result<ExitCode, Failure> {
    terminal::print(text)?;
    Ok(ExitCode::SUCCESS)
}
