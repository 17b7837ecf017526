//! `pulsetrain demo`: runs a simulated job through the real pipeline, to show the telemetry without a GPU or a cluster.
//!
//! `arguments` is the command line, `targets` opens the sinks, `sent_counter` counts the sent telemetry, `report` prints.

mod arguments;
mod report;
mod sent_counter;
mod targets;

use std::{io::Write, process::ExitCode, sync::Arc, time::Duration};

use pulsetrain_demo::{DemoConfig, DemoProgress, DemoSource};
use pulsetrain_pipeline::{
    CancellationToken, Ingress, Pipeline, PipelineBuilder, Requirement, SinkReport, Source,
    clock::{self, Instant},
    run_sources,
};
use pulsetrain_prometheus::PrometheusStore;
use pulsetrain_semconv::{metric, prometheus_name};
use pulsetrain_sinks::{ConsoleSink, ConsoleStyle};
use pulsetrain_tail::Checkpointer;
use tokio::{sync::watch, time::sleep};

pub(crate) use self::arguments::DemoArguments;
use self::{report::Report, sent_counter::SentCounter, targets::Targets};
use crate::{
    config::{self, Config},
    failure::{Failure, INCOMPLETE},
    import,
    ledger_view::LedgerView,
    log::{self, Level, Subject},
    runtime, terminal, topology,
};

/// The duration of a step at the rate 1.
const STEP_SECONDS: f64 = 0.5;
/// The rate of a job with a history: steps of two seconds, so that hours of history have a manageable size.
const HISTORY_RATE: f64 = 0.25;
/// The number of steps of a job, not counting those of its history.
const STEPS: u64 = 5_000;
/// The interval of GPU readings, and that of a job with a history.
const GPU_INTERVAL: Duration = Duration::from_secs(1);
const HISTORY_GPU_INTERVAL: Duration = Duration::from_secs(5);
/// The deadline of the drain after the job has ended by itself.
const DRAIN: Duration = Duration::from_secs(30);
/// How long the page stays up for a scraper that has not fetched the last points.
const LAST_SCRAPE: Duration = Duration::from_secs(20);
/// The poll interval of the page until it shows the first step.
const SHORT_POLL_INTERVAL: Duration = Duration::from_millis(10);

/// Runs the command.
pub(crate) fn run(arguments: &DemoArguments) -> Result<ExitCode, Failure> {
    let started = clock::now();
    log::start(arguments.log);
    let config = match &arguments.config {
        Some(path) => config::load(path, &config::environment()).map_err(Failure::usage)?,
        None => Config::default(),
    };
    log::configure(config.log.level, config.log.format);
    let job = job(arguments);
    job.check().map_err(Failure::usage)?;
    runtime::run_on(2, |runtime| {
        runtime.block_on(demonstrate(arguments, &config, job, started))
    })
}

/// Returns the job that the command line describes.
fn job(arguments: &DemoArguments) -> DemoConfig {
    let history = arguments.history;
    let rate = arguments
        .rate
        .unwrap_or(if history.is_some() { HISTORY_RATE } else { 1.0 });
    // The check of the job rejects a rate without a valid duration.
    let step_time = Duration::try_from_secs_f64(STEP_SECONDS / rate).unwrap_or_default();
    let past = history.unwrap_or_default();
    let past_steps = (past.as_secs_f64() / step_time.as_secs_f64().max(f64::MIN_POSITIVE)) as u64;
    DemoConfig {
        workload: arguments.workload,
        ranks: arguments.ranks,
        steps: arguments.steps.unwrap_or(STEPS.saturating_add(past_steps)),
        seed: arguments.seed,
        start_unix_nanos: clock::unix_nanos().saturating_sub(past),
        step_time,
        gpu_interval: if history.is_some() {
            HISTORY_GPU_INTERVAL
        } else {
            GPU_INTERVAL
        },
        faults: arguments.fault.clone(),
    }
}

async fn demonstrate(
    arguments: &DemoArguments,
    config: &Config,
    job: DemoConfig,
    started: Instant,
) -> Result<ExitCode, Failure> {
    let stop = CancellationToken::new();
    let served = CancellationToken::new();
    let mut targets = Targets::open(arguments, config, job.start_unix_nanos, &served).await?;
    let derived = SentCounter::default();
    let (mut pipeline, ingress) = start_pipeline(config, &mut targets, derived.clone())?;
    if !arguments.json {
        let step_seconds = job.step_time.as_secs_f64();
        let start = report::start(arguments, step_seconds, &targets);
        log::write_lines(Level::Info, &start);
    }
    let (report, progress) = watch::channel(Arc::new(DemoProgress::default()));
    let source = DemoSource::new(job, move |progress| {
        report.send_replace(Arc::new(progress));
    });
    let interrupted = tokio::spawn(import::raise_on_interrupt(stop.clone()));
    let (sources, ended) = ([Box::new(source) as Box<dyn Source>], stop.clone());
    let running = tokio::spawn(async move { run_sources(sources.into(), &ingress, &ended).await });
    let first_curve = first_curve(targets.series.as_ref(), progress.clone(), started).await;
    if let Some(seconds) = first_curve.filter(|_| !arguments.json) {
        log::info(Subject::Place, format_args!("first curve after {seconds:.1} s"));
    }
    if !arguments.json && !log::is_json() {
        // The console sink comes last, because its line is updated in place and nothing may be printed below it.
        let line = ConsoleSink::stderr(ConsoleStyle::InPlace);
        pipeline.add_sink(Box::new(line), Requirement::BestEffort);
    }
    let reports = running
        .await
        .map_err(|error| Failure::failed(format!("the demo stopped before its end: {error}")))?;
    let sinks = drain(pipeline, targets.series.as_ref(), config, &stop).await;
    interrupted.abort();
    served.cancel();
    targets.end().await;
    let (progress, counted) = (Arc::clone(&progress.borrow()), derived.lock());
    let report = Report {
        progress: &progress,
        derived: &counted,
        sinks: &sinks,
        first_curve_seconds: first_curve,
    };
    print(&report, arguments.json)?;
    if let Some(error) = reports.into_iter().find_map(|report| report.ended.err()) {
        return Err(Failure::Failed(error));
    }
    Ok(if report.is_complete() {
        ExitCode::SUCCESS
    } else {
        ExitCode::from(INCOMPLETE)
    })
}

/// Starts the pipeline with the sinks of the targets. Derived signals are counted.
fn start_pipeline(
    config: &Config,
    targets: &mut Targets,
    derived: SentCounter,
) -> Result<(Pipeline, Ingress), Failure> {
    let builder = Pipeline::builder().config(config.limits.task_config());
    let (builder, _) = topology::derived(
        builder,
        &config.derive,
        &Checkpointer::in_memory(),
        move |batch| derived.add(batch),
    )?;
    let add = |builder: PipelineBuilder, (sink, requirement, task_config)| {
        builder.sink_with(sink, requirement, task_config)
    };
    let sinks = std::mem::take(&mut targets.sinks);
    let (pipeline, ingress) = sinks.into_iter().fold(builder, add).start();
    for page in &targets.live_pages {
        page.show_telemetry(Box::new(LedgerView(pipeline.ledger().clone())));
    }
    Ok((pipeline, ingress))
}

/// Drains the pipeline, and waits until the last points of the page are scraped.
async fn drain(
    pipeline: Pipeline,
    page: Option<&PrometheusStore>,
    config: &Config,
    stop: &CancellationToken,
) -> Vec<SinkReport> {
    let deadline = if stop.is_cancelled() {
        config.limits.drain.0
    } else {
        DRAIN
    };
    let sinks = pipeline.drain(deadline).await;
    if let Some(page) = page {
        tokio::select! {
            biased;
            () = stop.cancelled() => {}
            () = page.wait_for_scrape(LAST_SCRAPE) => {}
        }
    }
    sinks
}

/// Waits until the page shows the first step. Returns the seconds since the start of the process, or `None` if there is
/// no page or the job ended first.
async fn first_curve(
    page: Option<&PrometheusStore>,
    mut progress: watch::Receiver<Arc<DemoProgress>>,
    started: Instant,
) -> Option<f64> {
    let page = page?;
    let first = progress.wait_for(|progress| progress.is_over || progress.counts.steps > 0);
    if first.await.ok()?.counts.steps == 0 {
        return None;
    }
    let loss = &metric::TRAIN_LOSS;
    let name = prometheus_name(loss.name, loss.unit, loss.instrument);
    loop {
        let mut text = Vec::new();
        page.write_text(&mut text);
        if text.windows(name.len()).any(|window| window == name.as_bytes()) {
            return Some((clock::now() - started).as_secs_f64());
        }
        if progress.borrow().is_over {
            return None;
        }
        sleep(SHORT_POLL_INTERVAL).await;
    }
}

fn print(report: &Report<'_>, as_json: bool) -> Result<(), Failure> {
    if as_json {
        return terminal::stderr()
            .write_all(terminal::json_line(&report.to_json()).as_bytes())
            .map_err(|error| Failure::failed(format!("cannot print: {error}")));
    }
    let level = if report.is_complete() {
        Level::Info
    } else {
        Level::Error
    };
    log::write_lines(level, &report.text());
    Ok(())
}
