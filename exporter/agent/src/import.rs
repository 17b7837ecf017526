//! `pulsetrain import`: logs in, OpenTelemetry out, and a sum of it all.

mod progress;
mod resource;
mod summary;

use std::{
    process::ExitCode,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use pulsetrain_pipeline::{
    Pipeline, PipelineConfig, QueueConfig, RetryConfig, Source, StopRaiser, run_sources,
};
use pulsetrain_sources::logs::{ImportReport, LogInput, LogSource, RunOptions};

use self::{progress::Progress, summary::Summary};
use crate::{cli::ImportArguments, failure::Failure, topology};

/// How much may wait in front of a target: enough to keep it busy, little enough to forget about.
const QUEUE: QueueConfig = QueueConfig {
    max_batches: 64,
    max_bytes: 64 << 20,
};

/// How long targets have after an interruption.
const INTERRUPTED_DRAIN: Duration = Duration::from_secs(10);

/// How long targets have that answer: the retry policy gives up those that do not.
const DRAIN: Duration = Duration::from_secs(24 * 60 * 60);

/// Runs the command.
pub(crate) fn run(arguments: ImportArguments) -> Result<ExitCode, Failure> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .map_err(|error| Failure::failed(format!("cannot start: {error}")))?;
    let outcome = runtime.block_on(import(arguments));
    // A thread that waits for a pipe must not hold up the end.
    runtime.shutdown_background();
    outcome
}

async fn import(arguments: ImportArguments) -> Result<ExitCode, Failure> {
    let inputs: Vec<LogInput> = arguments.paths.iter().cloned().map(topology::input).collect();
    let options = options(&arguments)?;
    let mut builder = Pipeline::builder().config(PipelineConfig {
        queue: QUEUE,
        retry: RetryConfig {
            give_up: arguments.give_up_after,
            ..RetryConfig::default()
        },
        ..PipelineConfig::default()
    });
    for sink in topology::sinks(&arguments.to, &inputs)? {
        builder = builder.sink(sink);
    }
    let (pipeline, door) = builder.start();
    let stop = StopRaiser::new();
    let interrupted = tokio::spawn(raise_on_interrupt(stop.clone()));
    let reports = Arc::new(Mutex::new(Vec::new()));
    let progress = Progress::of(&inputs, arguments.json);
    let sources = inputs
        .into_iter()
        .map(|input| source(input, &options, &reports, &progress))
        .collect();
    run_sources(sources, &door, &stop.stop()).await;
    progress.finish();
    drop(door);
    let deadline = if stop.stop().is_raised() {
        INTERRUPTED_DRAIN
    } else {
        DRAIN
    };
    let sinks = pipeline.drain(deadline).await;
    interrupted.abort();
    let reports = std::mem::take(&mut *reports.lock().unwrap_or_else(PoisonError::into_inner));
    Summary::new(reports, sinks).print(arguments.json)
}

fn options(arguments: &ImportArguments) -> Result<RunOptions, Failure> {
    let (service, resource) = resource::from_env(|name| std::env::var(name).ok())?;
    Ok(RunOptions {
        format: arguments.format.0,
        run_id: arguments.run_id.clone(),
        run_name: arguments.run_name.clone(),
        start_unix_nanos: arguments.start_time,
        service,
        resource,
    })
}

fn source(
    input: LogInput,
    options: &RunOptions,
    reports: &Arc<Mutex<Vec<ImportReport>>>,
    progress: &Progress,
) -> Box<dyn Source> {
    let reports = Arc::clone(reports);
    let on_end = move |report| {
        reports
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(report);
    };
    let source = LogSource::new(input, options.clone(), on_end);
    progress.watch(source.bytes_read());
    Box::new(source)
}

/// The first Ctrl-C ends the reading: what was read is delivered and summed up. The second ends the program.
async fn raise_on_interrupt(stop: StopRaiser) {
    if tokio::signal::ctrl_c().await.is_ok() {
        stop.raise();
    }
    if tokio::signal::ctrl_c().await.is_ok() {
        std::process::exit(130);
    }
}
