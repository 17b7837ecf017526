//! `pulsetrain import`: converts logs to OpenTelemetry, and prints a summary.

pub(crate) mod folders;
mod follow;
pub(crate) mod mapping;
mod progress;
mod readings;
pub(crate) mod resource;
pub(crate) mod summary;

use std::{
    path::PathBuf,
    process::ExitCode,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use pulsetrain_pipeline::{
    CancellationToken, GiveUp, Pipeline, QueueConfig, RetryConfig, SinkTaskConfig, Source, run_sources,
};
use pulsetrain_tail::{ImportReport, LogInput, LogSource, Member, RunOptions};

use tokio::signal::unix::{SignalKind, signal};

use self::{progress::ImportProgress, summary::Summary};
use crate::{cli::ImportArguments, failure::Failure, runtime, topology};

/// The reports of the inputs so far.
type Reports = Arc<Mutex<Vec<ImportReport>>>;

/// The limits of the queue in front of a target: enough to keep the target busy, with a small memory footprint.
const QUEUE: QueueConfig = QueueConfig {
    max_batches: 64,
    max_bytes: 64 << 20,
};

/// The deadline of the drain after an interruption.
const INTERRUPTED_DRAIN: Duration = Duration::from_secs(10);

/// The deadline of the drain otherwise; the retry policy gives up targets that do not respond.
const DRAIN: Duration = Duration::from_secs(24 * 60 * 60);

/// Runs the command.
pub(crate) fn run(arguments: ImportArguments) -> Result<ExitCode, Failure> {
    if let Some(log) = &arguments.suggest_mapping {
        return mapping::suggest(log);
    }
    runtime::run_on(2, |runtime| runtime.block_on(import(arguments)))
}

async fn import(arguments: ImportArguments) -> Result<ExitCode, Failure> {
    let options = options(&arguments)?;
    let inputs: Vec<LogInput> = arguments
        .paths
        .iter()
        .cloned()
        .flat_map(|path| topology::inputs(path, arguments.follow, options.format))
        .collect();
    let checkpointer = follow::checkpointer(&arguments)?;
    let (followed, read) = follow::divide(inputs.clone(), arguments.follow);
    let mut builder = Pipeline::builder().config(SinkTaskConfig {
        queue: queue(&arguments),
        retry: RetryConfig {
            give_up: give_up(&arguments, &followed),
            ..RetryConfig::default()
        },
        ..SinkTaskConfig::default()
    });
    let output_checkpoints = arguments.follow.then_some(&checkpointer);
    let sinks = topology::sinks(&arguments.to, &inputs, output_checkpoints)?;
    if sinks.is_empty() {
        return Err(Failure::usage(format!(
            "nothing to send to: {}; set one of them to otlp, or name a target with --to",
            topology::ALL_OFF
        )));
    }
    for sink in sinks {
        builder = builder.sink(sink);
    }
    if arguments.derive {
        builder = builder.stage(Box::new(topology::imported_signals(arguments.follow)));
    }
    if !arguments.gpu_readings.is_empty() {
        builder = builder.stage(readings::stage(
            arguments.gpu_readings.iter().map(PathBuf::as_path),
        )?);
    }
    let (pipeline, ingress) = builder.start();
    let stop = CancellationToken::new();
    let interrupted = tokio::spawn(raise_on_interrupt(stop.clone()));
    let reports = Reports::default();
    let progress = ImportProgress::for_inputs(&read, arguments.json || arguments.follow);
    let mut sources: Vec<_> = read
        .into_iter()
        .map(|input| source(input, &options, &reports, &progress))
        .collect();
    sources.extend(follow::source(
        followed,
        &arguments,
        &options,
        &checkpointer,
        &reports,
    ));
    run_sources(sources, &ingress, &stop.clone()).await;
    progress.finish();
    drop(ingress);
    let deadline = if stop.clone().is_cancelled() {
        INTERRUPTED_DRAIN
    } else {
        DRAIN
    };
    let sinks = pipeline.drain(deadline).await;
    interrupted.abort();
    checkpointer.save().map_err(Failure::failed)?;
    let reports = std::mem::take(&mut *reports.lock().unwrap_or_else(PoisonError::into_inner));
    let folders: Vec<PathBuf> = arguments.paths.into_iter().filter(|path| path.is_dir()).collect();
    let notices = match arguments.reading.run_id {
        Some(_) => Vec::new(),
        None => folders::notices(&folders, &reports),
    };
    Summary::new(reports, sinks)
        .with_notices(notices)
        .print(arguments.json)
}

/// Returns the policy for unreachable targets. The import of a finished log gives up, so that the command ends. A
/// followed log continues when a target is back.
fn give_up(arguments: &ImportArguments, followed: &[PathBuf]) -> GiveUp {
    if followed.is_empty() {
        GiveUp::AfterOutage(arguments.give_up_after)
    } else {
        GiveUp::Never
    }
}

/// Returns the queue limits. An import waits for room; followed logs do not wait and need larger queues.
fn queue(arguments: &ImportArguments) -> QueueConfig {
    if arguments.follow {
        QueueConfig::default()
    } else {
        QUEUE
    }
}

fn options(arguments: &ImportArguments) -> Result<RunOptions, Failure> {
    let (service, resource) = resource::from_env(|name| std::env::var(name).ok())?;
    Ok(RunOptions {
        service,
        resource,
        member: Member::of_environment(|name| std::env::var(name).ok()),
        ..arguments.reading.run_options()?
    })
}

fn source(
    input: LogInput,
    options: &RunOptions,
    reports: &Reports,
    progress: &ImportProgress,
) -> Box<dyn Source> {
    let reports = Arc::clone(reports);
    let on_end = move |report| add(&reports, report);
    let options = topology::options_of(&input, options);
    let source = LogSource::new(input, options, on_end);
    progress.watch(source.bytes_read());
    Box::new(source)
}

fn add(reports: &Reports, report: ImportReport) {
    reports
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .push(report);
}

/// Raises `stop` at the first Ctrl-C or SIGTERM, which ends the reading: the read data is delivered and summarized. The
/// second signal ends the program.
pub(crate) async fn raise_on_interrupt(stop: CancellationToken) -> std::io::Result<()> {
    let mut terminated = signal(SignalKind::terminate())?;
    tokio::select! {
        interrupted = tokio::signal::ctrl_c() => interrupted?,
        _ = terminated.recv() => {}
    }
    stop.cancel();
    tokio::select! {
        interrupted = tokio::signal::ctrl_c() => interrupted?,
        _ = terminated.recv() => {}
    }
    std::process::exit(130);
}
