//! `pulsetrain run`: runs a trainer unchanged, and sends its telemetry.
//!
//! `pulsetrain-launcher` starts it and forwards its output and signals; `stream` parses a copy of the output; `page` is the
//! live page of `--listen`; `recording` holds the flight recorders; `identity` identifies the run. A failure of Pulsetrain does not stop the trainer.

mod identity;
mod lines;
mod outcome;
mod page;
mod recording;
mod stream;

use std::{
    ffi::OsString,
    io,
    process::ExitCode,
    sync::{Arc, Mutex, PoisonError, atomic::Ordering, mpsc::RecvTimeoutError},
    time::Duration,
};

use pulsetrain_gpu::workload::Workload;
use pulsetrain_launcher::{Chunks, HeldSignals, SignalForwarder, Trainer};
use pulsetrain_page::PageStore;
use pulsetrain_pipeline::{
    CancellationToken, Ingress, Pipeline, PipelineBuilder, Problem, Requirement, Sink, SinkTaskConfig,
    Source, run_sources,
};
use pulsetrain_tail::{Checkpointer, ImportReport, RankSource, RunOptions, TailError, TailEvent};
use tokio::{runtime::Runtime, task::JoinHandle};

use self::{
    identity::Identity,
    outcome::{Inputs, Outcome},
    stream::StreamSource,
};
use crate::{
    agent::Recorders,
    cli::RunArguments,
    config::{self, Config, SinkConfig},
    failure::Failure,
    import::{mapping, resource},
    ledger_view::LedgerView,
    log::{self, Subject},
    runtime,
    topology::{self, BuiltSink, RetainedStores},
};

/// A shell's exit codes for a command that is not found, and for one that cannot be executed.
const NOT_FOUND: u8 = 127;
const NOT_STARTED: u8 = 126;

/// Runs the command.
pub(crate) fn run(arguments: &RunArguments) -> Result<ExitCode, Failure> {
    log::start(arguments.log);
    runtime::run_on(1, |runtime| supervise(runtime, arguments))
}

fn supervise(runtime: &Runtime, arguments: &RunArguments) -> Result<ExitCode, Failure> {
    let config = load(arguments)?;
    log::configure(config.log.level, config.log.format);
    let options = options(arguments)?;
    let mut identity = Identity::new(arguments.run_id.clone(), variable, identity::new_id);
    identity.member = options.rank.member("", identity.member);
    for warning in identity.warnings() {
        log::warn(Subject::Program, warning);
    }
    let recorders = Recorders::default();
    let (pipeline, ingress) = runtime.block_on(start_pipeline(arguments, &config, &recorders))?;
    let gpus = {
        let _inside = runtime.enter();
        gpus(arguments, &config, &options, &identity)
    };
    let signals =
        HeldSignals::hold().map_err(|error| Failure::failed(format!("cannot receive signals: {error}")))?;
    let variables = [(identity::RUN_ID, identity.id.clone())];
    let mut trainer = match Trainer::start(&arguments.command, &variables) {
        Ok(trainer) => trainer,
        Err(error) => return Ok(not_started(&arguments.command, &error)),
    };
    let forwarder = SignalForwarder::start(signals, &trainer);
    let copies = trainer.copy_output();
    let reading = Reading::start(
        runtime,
        arguments,
        copies.chunks,
        identity,
        options,
        gpus,
        ingress,
    );

    let status = trainer
        .wait(|| forwarder.forget_trainer())
        .map_err(|error| Failure::failed(format!("cannot wait for the trainer: {error}")))?;
    // The output of the trainer's remaining children is forwarded for a limited time only.
    let _: Result<(), RecvTimeoutError> = copies.ended.recv_timeout(arguments.drain);
    drop(trainer);
    let code = pulsetrain_launcher::exit_code(status);
    forwarder.set_exit_code(code);
    let (inputs, sinks) = runtime.block_on(async {
        let inputs = reading.end(arguments.drain).await;
        let sinks = pipeline.drain(arguments.drain).await;
        if code != 0 {
            recording::save(&recorders).await;
        }
        (inputs, sinks)
    });
    Outcome::new(inputs, sinks, copies.unparsed.load(Ordering::Relaxed)).log(arguments.summary);
    Ok(ExitCode::from(code))
}

/// Returns the warnings of `run` about the identity that the environment gives the ranks of a run.
pub(crate) fn identity_warnings(variable: impl Fn(&str) -> Option<String>) -> Vec<Problem> {
    let identity = Identity::new(None, variable, identity::new_id);
    identity.warnings().collect()
}

/// Returns the configuration from the command line, or the default.
fn load(arguments: &RunArguments) -> Result<Config, Failure> {
    match &arguments.config {
        Some(path) => config::load(path, &config::environment()).map_err(Failure::usage),
        None => Ok(Config::default()),
    }
}

/// Returns the source of the GPUs of this machine. One rank per machine watches them, and reports on the page, not on the
/// trainer's terminal.
fn gpus(
    arguments: &RunArguments,
    config: &Config,
    options: &RunOptions,
    identity: &Identity,
) -> Option<Box<dyn Source>> {
    let wanted = config.gpu.enabled && !arguments.no_gpu && identity::is_first_here(variable);
    let ours = Workload::of_run(&identity.id, variable);
    wanted.then(|| -> Box<dyn Source> {
        Box::new(topology::gpus(
            &config.gpu,
            options.resource.clone(),
            Some(ours),
            |_, _| {},
        ))
    })
}

/// Starts the pipeline to the targets of `--to` or of the configuration.
async fn start_pipeline(
    arguments: &RunArguments,
    config: &Config,
    recorders: &Recorders,
) -> Result<(Pipeline, Ingress), Failure> {
    let mut pages = Vec::new();
    let mut sinks = if arguments.config.is_some() && arguments.to.is_empty() {
        configured_sinks(config, recorders, &mut pages).await
    } else if page::is_only_target(arguments, variable_names()) {
        Vec::new()
    } else {
        let left_out = |why: &str| {
            log::warn(
                Subject::Program,
                format_args!("continues without a target: {why}"),
            );
        };
        let sinks = topology::sinks_of_trainer(&arguments.to, left_out)?;
        sinks
            .into_iter()
            .map(|sink| (sink, Requirement::Required, config.limits.task_config()))
            .collect()
    };
    if let Some(address) = arguments.listen {
        match page::open(address, config).await {
            Ok(page) => {
                let message = format_args!("serving the page at http://{}/", page.address);
                log::info(Subject::Program, message);
                let with_task_config = |(sink, requirement)| (sink, requirement, config.limits.task_config());
                sinks.extend(page.sinks.into_iter().map(with_task_config));
                pages.extend(page.store);
            }
            Err(error) => log::warn(
                Subject::Program,
                format_args!("continues without the page: {error}"),
            ),
        }
    }
    if sinks.is_empty() && arguments.to.is_empty() && arguments.listen.is_none() {
        let message = format_args!("sends nothing: {}", topology::ALL_OFF);
        log::warn(Subject::Program, message);
    }
    if arguments.step_line {
        let line = (
            topology::step_line(),
            Requirement::BestEffort,
            config.limits.task_config(),
        );
        sinks.push(line);
    }
    let builder = Pipeline::builder().config(config.limits.task_config());
    let builder = topology::derived(builder, &config.derive, &Checkpointer::in_memory(), |_| {})?;
    let add = |builder: PipelineBuilder, (sink, requirement, task_config)| {
        builder.sink_with(sink, requirement, task_config)
    };
    let (pipeline, ingress) = sinks.into_iter().fold(builder, add).start();
    for page in pages {
        page.show_telemetry(Box::new(LedgerView(pipeline.ledger().clone())));
    }
    Ok((pipeline, ingress))
}

/// Returns the sinks of the configuration. A sink that cannot be opened is reported and left out: the trainer is more
/// important, and if several ranks share a machine only one of them can bind the port.
async fn configured_sinks(
    config: &Config,
    recorders: &Recorders,
    pages: &mut Vec<PageStore>,
) -> Vec<(Box<dyn Sink>, Requirement, SinkTaskConfig)> {
    let mut sinks = Vec::new();
    for (name, section) in config.sinks.iter() {
        section.warn_sources_ignored(name);
        topology::report_notices(name, section);
        match topology::build_sink(
            name,
            section,
            &config.perfetto,
            &Checkpointer::in_memory(),
            RetainedStores::default(),
            CancellationToken::new(),
        )
        .await
        {
            Ok(BuiltSink {
                sinks: built,
                server,
                recorder,
                page,
                ..
            }) => {
                pages.extend(page);
                let task_config = || section.task_config(&config.limits);
                sinks.extend(
                    built
                        .into_iter()
                        .map(|sink| (sink, section.requirement(), task_config())),
                );
                server.map(tokio::spawn);
                if let Some(recorder) = recorder {
                    recorders.insert(name, recorder);
                }
            }
            Err(error) => {
                let owner = port_owner_of(section).map_or(String::new(), |who| format!("; {who} has it"));
                log::error(
                    Subject::Program,
                    format_args!("continues without the sink {name}: {error}{owner}"),
                );
            }
        }
    }
    recording::serve(config, recorders);
    sinks
}

/// Returns the program that already listens on the port of a sink.
fn port_owner_of(sink: &SinkConfig) -> Option<String> {
    match sink {
        SinkConfig::Prometheus(page) => page.listen.0.tcp().and_then(config::port_owner),
        _ => None,
    }
}

fn options(arguments: &RunArguments) -> Result<RunOptions, Failure> {
    let resource = resource::on_this_machine(resource::from_env_or_without(variable, |message| {
        log::warn(Subject::Program, message);
    }));
    let (service, resource) = resource::in_slurm_job(resource, variable);
    let (format, mapping) = mapping::read(arguments.format, arguments.mapping.as_deref())?;
    Ok(RunOptions {
        format,
        mapping,
        run_name: arguments.run_name.clone(),
        service,
        resource,
        rank: arguments.rank.map_or(RankSource::Inferred, RankSource::Fixed),
        timezone: arguments.timezone.clone(),
        ..RunOptions::default()
    })
}

/// The sources that read the output and the logs of the trainer.
struct Reading {
    stop: CancellationToken,
    sources: JoinHandle<()>,
    reports: Arc<Mutex<Vec<ImportReport>>>,
}

impl Reading {
    fn start(
        runtime: &Runtime,
        arguments: &RunArguments,
        chunks: Chunks,
        identity: Identity,
        options: RunOptions,
        gpus: Option<Box<dyn Source>>,
        ingress: Ingress,
    ) -> Self {
        let (stop, reports) = (
            CancellationToken::new(),
            Arc::<Mutex<Vec<ImportReport>>>::default(),
        );
        let kept = Arc::clone(&reports);
        let on_end = move |report| kept.lock().unwrap_or_else(PoisonError::into_inner).push(report);
        let program = arguments.command[0].to_string_lossy();
        let kept = Arc::clone(&reports);
        // Events of followed files are reported at the end and not on the trainer's terminal.
        let on_event = move |event| {
            match event {
                TailEvent::Ended(report) => {
                    kept.lock().unwrap_or_else(PoisonError::into_inner).push(*report);
                }
                // The trainer has ended by the time of this event.
                TailEvent::Problem(error @ TailError::Unread { .. }) => log::error(Subject::Program, error),
                _ => {}
            }
        };
        let followed_options = RunOptions {
            format: None,
            run_id: Some(identity.id.clone()),
            member: identity.member,
            ..options.clone()
        };
        let followed = topology::followed(&arguments.follow, followed_options, on_event);
        let source: Box<dyn Source> =
            Box::new(StreamSource::new(&program, chunks, identity, options, on_end));
        let sources = [source].into_iter().chain(followed).chain(gpus).collect();
        let stopped = stop.clone();
        let sources = runtime.spawn(async move {
            run_sources(sources, &ingress, &stopped).await;
        });
        Self {
            stop,
            sources,
            reports,
        }
    }

    /// Lets the sources read the remaining data within the time limit, so that a hanging file system does not delay the
    /// exit.
    async fn end(self, within: Duration) -> Inputs {
        self.stop.cancel();
        let is_whole = tokio::time::timeout(within, self.sources).await.is_ok();
        let mut reports = self.reports.lock().unwrap_or_else(PoisonError::into_inner);
        Inputs {
            reports: std::mem::take(&mut *reports),
            is_whole,
        }
    }
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

fn variable_names() -> impl Iterator<Item = OsString> {
    std::env::vars_os().map(|(name, _)| name)
}

fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok()
}
