//! `pulsetrain show`: shows finished runs on the live page, served to a browser or as one HTML file, or as text.
//!
//! `inputs` finds the files to read, `plan` orders them by their `contents`, `recorded` reads OTLP and Perfetto files and
//! `derive` adds the signals that they lack. `arguments` is the command line.

mod arguments;
mod browser;
mod contents;
mod derive;
mod inputs;
mod plan;
mod recorded;

use std::{
    io::{self, IsTerminal, Write},
    net::SocketAddr,
    path::{Path, PathBuf},
    process::ExitCode,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use pulsetrain_page::{PageConfig, PageRejection, PageSink, PageStore, TextStyle};
use pulsetrain_pipeline::{
    CancellationToken, GiveUp, Pipeline, QueueConfig, RetryConfig, SinkReport, SinkTaskConfig, Source,
    run_sources,
};
use pulsetrain_prometheus::{PrometheusConfig, PrometheusSink};
use pulsetrain_sinks::{SinkError, UnfinishedFile};
use pulsetrain_tail::{ImportReport, LogInput, LogSource, RunOptions};
use tokio::signal::unix::{SignalKind, signal};

pub(crate) use self::arguments::ShowArguments;
use self::{
    contents::Contents,
    derive::Derivation,
    inputs::{Input, InputKind},
    plan::Step,
    recorded::{RecordedFile, RecordedReport},
};
use crate::{
    failure::{Failure, INCOMPLETE},
    import::summary::Summary,
    input_guard,
    log::{self, Subject},
    runtime, terminal, topology,
};

/// The limits of the page, which are higher than those of an agent: the process has no other purpose.
const LIMITS: PageConfig = PageConfig {
    runs: 1_000,
    series_per_run: 20_000,
    points: 4_096,
    steps: 240,
    events: 2_000,
    gpus: 4_096,
    bytes: 1 << 30,
    clients: 64,
};

/// The limits of the queue in front of the page.
const QUEUE: QueueConfig = QueueConfig {
    max_batches: 64,
    max_bytes: 64 << 20,
};

/// The deadline of the drain, which is never reached, because the page accepts every batch at once.
const DRAIN: Duration = Duration::from_secs(24 * 60 * 60);

/// Runs the command.
pub(crate) fn run(arguments: &ShowArguments) -> Result<ExitCode, Failure> {
    runtime::run_on(2, |runtime| runtime.block_on(show(arguments)))
}

async fn show(arguments: &ShowArguments) -> Result<ExitCode, Failure> {
    let options = arguments.reading.run_options()?;
    let found = inputs::find(&arguments.paths, options.format)?;
    let notice = found.notice();
    let inputs = found.inputs;
    if let Some(path) = &arguments.html {
        input_guard::refuse_input(path, inputs.iter().map(|input| input.path.as_path()))?;
    }
    let page = PageStore::recorded(PageConfig {
        series_per_run: arguments.series_limit,
        ..LIMITS
    });
    let is_read = read(inputs, options, &page).await?;
    let notices: Vec<String> = notice.into_iter().chain(losses(&page)).collect();
    for notice in &notices {
        log::warn(Subject::Program, notice);
    }
    if page.is_empty() {
        return Err(Failure::failed(
            "no run found in the input: no training step, no metric of a run, no GPU; name the log or the OTLP file of a run",
        ));
    }
    if let Some(path) = &arguments.html {
        write_html(path, &page)?;
    } else if arguments.text {
        write_text(&page)?;
    } else {
        serve(arguments, page).await?;
    }
    Ok(if is_read && notices.is_empty() {
        ExitCode::SUCCESS
    } else {
        ExitCode::from(INCOMPLETE)
    })
}

/// Reads all inputs into the page, and returns whether all of them were understood completely.
async fn read(inputs: Vec<Input>, options: RunOptions, page: &PageStore) -> Result<bool, Failure> {
    let of_runs = options.clone();
    let steps = tokio::task::spawn_blocking(move || ordered(inputs, &of_runs))
        .await
        .map_err(|error| Failure::failed(format!("cannot read the files: {error}")))?;
    let derivation = Derivation::default();
    let builder = Pipeline::builder()
        .config(SinkTaskConfig {
            queue: QUEUE,
            retry: RetryConfig {
                give_up: GiveUp::Never,
                ..RetryConfig::default()
            },
            ..SinkTaskConfig::default()
        })
        .sink(Box::new(PageSink::new(page.clone())))
        .stage(derivation.stage());
    let (pipeline, ingress) = builder.start();
    let logs = Arc::<Mutex<Vec<ImportReport>>>::default();
    let recorded = Arc::<Mutex<Vec<RecordedReport>>>::default();
    let stop = CancellationToken::new();
    // The steps run sequentially: the page rejects points that are older than the newest one of their series.
    for Step {
        input,
        derivation: group,
    } in steps
    {
        derivation.set(group);
        let source: Box<dyn Source> = match input.kind {
            InputKind::Log => {
                let log = LogInput::Path(input.path);
                let options = topology::options_of(&log, &options);
                let logs = Arc::clone(&logs);
                Box::new(LogSource::new(log, options, move |report| push(&logs, report)))
            }
            InputKind::Recorded => {
                let recorded = Arc::clone(&recorded);
                Box::new(RecordedFile::new(input.path, move |report| {
                    push(&recorded, report);
                }))
            }
        };
        run_sources(vec![source], &ingress, &stop).await;
    }
    drop(ingress);
    let sinks = pipeline.drain(DRAIN).await;
    let are_recorded_complete = take(&recorded)
        .iter()
        .map(RecordedReport::print)
        .fold(true, |all, one| all & one);
    Ok(report(take(&logs), sinks)? && are_recorded_complete)
}

fn ordered(inputs: Vec<Input>, options: &RunOptions) -> Vec<Step> {
    let run_of_log = |path: &PathBuf| topology::options_of(&LogInput::Path(path.clone()), options).run_id;
    plan::order(inputs, run_of_log, |path| Contents::from_path(path))
}

/// Prints the notices about the logs, and returns whether all of them were understood.
fn report(logs: Vec<ImportReport>, sinks: Vec<SinkReport>) -> Result<bool, Failure> {
    let summary = Summary::new(logs, sinks);
    let mut out = terminal::stderr();
    let is_complete = summary.is_complete();
    let printed = if is_complete {
        summary.write_notices(&mut out)
    } else {
        summary.write_text(&mut out)
    };
    printed.map_err(|error| Failure::failed(format!("cannot print the summary: {error}")))?;
    Ok(is_complete)
}

/// Describes the data that was read but is not shown, with the reason and the remedy.
fn losses(page: &PageStore) -> Vec<String> {
    let refused = page.rejected_items();
    let describe = |(refusal, items)| {
        let reason = match refusal {
            PageRejection::SeriesOfRun => format!(
                "more than {} series in a run; set --series-limit to a higher number",
                page.config().series_per_run
            ),
            PageRejection::Runs | PageRejection::Gpus => {
                format!("{}; show fewer files at once", refusal.describe(page.config()))
            }
            PageRejection::Late => format!(
                "{}; show the files of the run one at a time",
                refusal.describe(page.config())
            ),
            _ => refusal.describe(page.config()),
        };
        format!("{items} points are not shown: {reason}")
    };
    let replaced = page.counts().runs_replaced;
    let forgotten = (replaced > 0).then(|| {
        format!(
            "{replaced} runs are not shown: more than {} runs or {} MiB; show fewer files at once",
            page.config().runs,
            page.config().bytes >> 20
        )
    });
    refused.by_reason().map(describe).chain(forgotten).collect()
}

fn push<T>(list: &Mutex<Vec<T>>, item: T) {
    list.lock().unwrap_or_else(PoisonError::into_inner).push(item);
}

fn take<T>(list: &Mutex<Vec<T>>) -> Vec<T> {
    std::mem::take(&mut *list.lock().unwrap_or_else(PoisonError::into_inner))
}

/// Writes the page with its data as one file. A failure leaves an existing file as it was.
fn write_html(path: &Path, page: &PageStore) -> Result<(), Failure> {
    let html = page.standalone();
    let write = || {
        let mut file = UnfinishedFile::create(path)?;
        file.write_all(html.as_bytes())?;
        file.finish()
    };
    write().map_err(|error: io::Error| {
        Failure::failed(format!(
            "cannot write {}: {error}; name another file with --html",
            path.display()
        ))
    })?;
    log::info(
        Subject::Program,
        format_args!("wrote {} ({} KiB)", path.display(), html.len().div_ceil(1024)),
    );
    Ok(())
}

fn write_text(page: &PageStore) -> Result<(), Failure> {
    let style = TextStyle {
        has_color: io::stdout().is_terminal()
            && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty()),
    };
    terminal::print_colored(&page.text(style))
}

/// Serves the page until an interrupt.
async fn serve(arguments: &ShowArguments, page: PageStore) -> Result<(), Failure> {
    let config = PrometheusConfig {
        listen: arguments.listen.into(),
        ..PrometheusConfig::default()
    };
    // The server also serves `/metrics`, from a store without history.
    let store = PrometheusSink::new(&config).store();
    let server = config
        .bind(store, Vec::new())
        .map_err(|error| cannot_listen(&error.into()))?
        .with_routes(page);
    let address = server.local_addr().unwrap_or(arguments.listen);
    let stop = CancellationToken::new();
    let served = tokio::spawn(server.run(stop.clone()));
    open(arguments, address);
    let mut terminated = signal(SignalKind::terminate())
        .map_err(|error| Failure::failed(format!("cannot receive signals: {error}")))?;
    tokio::select! {
        _ = tokio::signal::ctrl_c() => {}
        _ = terminated.recv() => {}
    }
    stop.cancel();
    // Browsers keep their connections open; the exit does not wait for them.
    let _ = tokio::time::timeout(Duration::from_secs(1), served).await;
    Ok(())
}

fn open(arguments: &ShowArguments, address: SocketAddr) {
    let url = format!("http://{address}/");
    log::info(
        Subject::Program,
        format_args!("serving the page at {url}; press Ctrl-C to stop"),
    );
    if !arguments.no_open
        && let Err(why) = browser::open(&url)
    {
        log::warn(
            Subject::Program,
            format_args!(
                "cannot open a browser: {why}; open {url} in a browser, or write a file with --html"
            ),
        );
    }
}

fn cannot_listen(error: &SinkError) -> Failure {
    Failure::failed(format!(
        "{error}; choose another port with --listen, or 127.0.0.1:0 for a free one"
    ))
}
