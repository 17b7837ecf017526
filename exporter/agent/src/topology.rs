//! Creates all sources and sinks of a pipeline; no other file does. `convert`, which has no pipeline, creates its own.

mod files;
mod prometheus;
pub(crate) mod state_folder;

use std::{
    fmt::Display,
    path::{Path, PathBuf},
    sync::Arc,
};

use pulsetrain_derive::{EnergyConfig, EnergyStage, SignalsConfig, SignalsStage};
use pulsetrain_formats::LogFormat;
use pulsetrain_gpu::{
    GpuConfig, GpuNotice, GpuSource,
    workload::{ProcessAttribution, Workload, WorkloadConfig},
};
use pulsetrain_otlp::Signals;
use pulsetrain_page::PageStore;
use pulsetrain_pipeline::{
    Batch, BoxFuture, CancellationToken, MemoryUse, PipelineBuilder, Problem, Sink, Source, ThrottledLog,
};
use pulsetrain_prometheus::{PrometheusConfig, PrometheusStore};
use pulsetrain_receiver::ReceiverSource;
use pulsetrain_sinks::{
    ConsoleSink, ConsoleStyle, FileConfig, FileControl, FileSink, FlightRecorder, OpenMetricsSink,
    OtlpConfig, PerfettoFilesSink, RemoteWriteSink, SinkError,
};
use pulsetrain_tail::{
    AtStop, Checkpointer, Claims, LogInput, PollReport, RunOptions, TailConfig, TailEvent, TailSource,
    TailStatus, logs_in, options_of_file,
};
use pulsetrain_translate::TunixTranslation;

mod otlp;

use self::otlp::{client_failure, otlp};
pub(crate) use self::otlp::{otlp_config, otlp_target, report_notices};
use crate::{
    config::{
        DeriveConfig, DrawingSection, GpuSection, Location, LogsSection, ReceiverSection, SinkConfig,
        SourceConfig,
    },
    convert::trace,
    descriptors,
    failure::{Failure, net_problem},
    import::resource::Resource,
    input_guard::refuse_input,
    log::{self, Level, Subject},
    signal_selection::{self, SelectedSink},
    trace_sink::TraceSink,
};

/// The message if the environment sets the endpoint but disables every signal.
pub(crate) const ALL_OFF: &str =
    "OTEL_TRACES_EXPORTER, OTEL_METRICS_EXPORTER and OTEL_LOGS_EXPORTER are none";

/// Returns the inputs of a path on the command line: for a folder that is not followed, the logs in it.
pub(crate) fn inputs(path: PathBuf, is_followed: bool, format: Option<&LogFormat>) -> Vec<LogInput> {
    if path.as_os_str() == "-" {
        return vec![LogInput::Stdin];
    }
    let logs = if path.is_dir() && !is_followed {
        logs_in(&path, format)
    } else {
        Vec::new()
    };
    if logs.is_empty() {
        return vec![LogInput::Path(path)];
    }
    logs.into_iter().map(LogInput::Path).collect()
}

/// Returns the options for one input, because several files may belong to one run.
pub(crate) fn options_of(input: &LogInput, options: &RunOptions) -> RunOptions {
    match input {
        LogInput::Path(path) => options_of_file(path, options),
        LogInput::Stdin => options.clone(),
    }
}

/// Returns the sinks of the command line, or else of the environment; none if the environment disables every signal.
///
/// `checkpointer` has the checkpoints of the followed inputs: a file is truncated to them and appended to. Without a
/// checkpointer, the file is replaced.
///
/// # Errors
/// Returns an error for an invalid target, an inconsistent environment, or a file that cannot be opened.
pub(crate) fn sinks(
    targets: &[String],
    inputs: &[LogInput],
    checkpointer: Option<&Checkpointer>,
) -> Result<Vec<Box<dyn Sink>>, Failure> {
    if targets.is_empty() {
        return otlp::receivers_of_environment()?.iter().map(otlp::sink).collect();
    }
    let targets = parsed(targets)?;
    targets
        .iter()
        .map(|target| target.open(inputs, checkpointer))
        .collect()
}

/// A sink of a trainer.
pub(crate) struct TrainerSink {
    pub(crate) sink: Box<dyn Sink>,
    /// The receiver of an OTLP sink.
    pub(crate) receiver: Option<OtlpConfig>,
}

/// Like [`sinks`], for a trainer that must run in any case: a target that is invalid or cannot be opened, such as a file
/// that another rank writes, is left out and passed to `report`.
pub(crate) fn sinks_of_trainer(targets: &[String], report: impl Fn(&Problem)) -> Vec<TrainerSink> {
    let left_out = |failure: Failure| report(&failure.into_problem());
    if targets.is_empty() {
        let open = |receiver: OtlpConfig| {
            let sink = otlp::sink(&receiver)?;
            let receiver = Some(receiver);
            Ok(TrainerSink { sink, receiver })
        };
        let receivers = otlp::receivers_of_environment();
        let opened = receivers.and_then(|receivers| receivers.into_iter().map(open).collect());
        return opened.map_err(left_out).unwrap_or_default();
    }
    let checkpointer = Checkpointer::in_memory();
    let open = |target: &String| {
        let target = SinkTarget::parse(target)?;
        let sink = target.open(&[], Some(&checkpointer))?;
        let receiver = match target.place {
            Destination::Otlp(receiver) => Some(*receiver),
            _ => None,
        };
        Ok(TrainerSink { sink, receiver })
    };
    let opened = targets.iter().map(|target| open(target).map_err(left_out).ok());
    opened.flatten().collect()
}

/// Parses every target before the first file is opened.
fn parsed(targets: &[String]) -> Result<Vec<SinkTarget>, Failure> {
    targets.iter().map(|target| SinkTarget::parse(target)).collect()
}

/// A fault of a sink of the configuration.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct SinkFault {
    pub(crate) location: Location,
    pub(crate) problem: Problem,
    /// Whether a file does not exist yet, for which a starting agent waits.
    pub(crate) is_awaited: bool,
}

impl From<(Location, Problem)> for SinkFault {
    fn from((location, problem): (Location, Problem)) -> Self {
        Self {
            location,
            problem,
            is_awaited: false,
        }
    }
}

/// Checks a sink of the configuration without side effects.
///
/// # Errors
/// Returns the fault.
pub(crate) fn check_sink(sink: &SinkConfig) -> Result<(), SinkFault> {
    let (location, outcome) = match sink {
        SinkConfig::Prometheus(page) => (
            page.listen.location,
            page.settings().check().map_err(SinkError::from),
        ),
        SinkConfig::Otlp(otlp) => (otlp.location(), otlp::check(otlp)?),
        SinkConfig::File(file) => {
            file.settings()?;
            (
                file.path.location,
                pulsetrain_sinks::FileFormat::from_path(Path::new(&file.path.value)).map(drop),
            )
        }
        SinkConfig::Console(console) => (console.location, Ok(())),
        SinkConfig::Perfetto(files) => (
            files.path.location,
            files.settings(&DrawingSection::default()).check(),
        ),
        SinkConfig::FlightRecorder(recorder) => (
            recorder.path.location,
            FlightRecorder::new(recorder.settings(&DrawingSection::default())).map(drop),
        ),
    };
    match sink.signals() {
        Some(list) if list.0.is_empty() => Err((
            list.location,
            Problem::new("signals is an empty list").with_remedy("name traces, metrics or logs"),
        )
            .into()),
        _ => outcome.map_err(|error| SinkFault {
            location,
            problem: error.problem(),
            is_awaited: error.is_missing_file(),
        }),
    }
}

/// A sink of the configuration, with its background task.
#[derive(Default)]
pub(crate) struct BuiltSink {
    /// The sinks: for OTLP one for each receiver, or none if the environment disables every signal.
    pub(crate) sinks: Vec<Box<dyn Sink>>,
    /// The server of a sink that clients fetch from; runs until it is stopped.
    pub(crate) server: Option<BoxFuture<'static, ()>>,
    /// The series of the sink.
    pub(crate) series: Option<PrometheusStore>,
    /// The history of the live page.
    pub(crate) page: Option<PageStore>,
    /// The flight recorder that the sink fills.
    pub(crate) recorder: Option<FlightRecorder>,
    /// The control handle of the file that the sink writes.
    pub(crate) file: Option<FileControl>,
}

impl BuiltSink {
    /// Returns a sink without a background task.
    fn alone(sink: Box<dyn Sink>) -> Self {
        Self {
            sinks: vec![sink],
            ..Self::default()
        }
    }
}

/// The stores of a Prometheus sink that its successor continues in a reload.
#[derive(Clone, Default)]
pub(crate) struct RetainedStores {
    pub(crate) series: Option<PrometheusStore>,
    pub(crate) page: Option<PageStore>,
}

/// Creates the sink `name` of the configuration, with the trace layout of `drawing`; `stop` ends its background task. On
/// start, a file is truncated to the checkpoints of `checkpointer`, so that it holds every item once. A page is restored
/// from `kept`.
///
/// # Errors
/// Returns an error if the sink cannot be opened, cannot listen or is invalid.
pub(crate) async fn build_sink(
    name: &str,
    config: &SinkConfig,
    drawing: &DrawingSection,
    checkpointer: &Checkpointer,
    kept: RetainedStores,
    stop: CancellationToken,
) -> Result<BuiltSink, SinkError> {
    let built = open_sink(name, config, drawing, checkpointer, kept, stop).await?;
    let signals = config.signals().map(|list| list.0);
    let narrow = |sink| SelectedSink::narrow(sink, signals);
    Ok(BuiltSink {
        sinks: built.sinks.into_iter().map(narrow).collect(),
        ..built
    })
}

async fn open_sink(
    name: &str,
    config: &SinkConfig,
    drawing: &DrawingSection,
    checkpointer: &Checkpointer,
    kept: RetainedStores,
    stop: CancellationToken,
) -> Result<BuiltSink, SinkError> {
    let sink: Box<dyn Sink> = match config {
        SinkConfig::Prometheus(section) => {
            return prometheus::open(name, &section.settings(), section.has_page(), kept, stop).await;
        }
        SinkConfig::Otlp(otlp) => {
            return Ok(BuiltSink {
                sinks: otlp::open(otlp)?,
                ..BuiltSink::default()
            });
        }
        SinkConfig::File(section) => return files::build(name, section, checkpointer),
        SinkConfig::Console(_) => Box::new(ConsoleSink::stderr(ConsoleStyle::InPlace)),
        SinkConfig::Perfetto(files) => {
            let (sink, files) = PerfettoFilesSink::open(files.settings(drawing))?;
            return Ok(BuiltSink {
                server: Some(Box::pin(files.run(stop))),
                ..BuiltSink::alone(Box::new(sink))
            });
        }
        SinkConfig::FlightRecorder(recorder) => {
            let recorder = FlightRecorder::new(recorder.settings(drawing))?;
            return Ok(BuiltSink {
                recorder: Some(recorder.clone()),
                ..BuiltSink::alone(Box::new(recorder.sink()))
            });
        }
    };
    Ok(BuiltSink::alone(sink))
}

/// Adds the stages that derive signals between the sources and the sinks. The state folder of `checkpointer` preserves
/// their state over a restart; `watch` is called with every derived batch.
///
/// # Errors
/// Returns an error if a state file cannot be used.
pub(crate) fn derived(
    builder: PipelineBuilder,
    config: &DeriveConfig,
    checkpointer: &Checkpointer,
    watch: impl Fn(&Batch) + Clone + Send + 'static,
) -> Result<(PipelineBuilder, Option<MemoryUse>), Failure> {
    // This stage precedes the energy of steps, which holds their spans.
    let signals = config
        .signals
        .enabled
        .then(|| SignalsStage::new(config.signals.settings()));
    let memory = signals.as_ref().map(SignalsStage::memory);
    let builder = match signals {
        Some(stage) => builder.stage(Box::new(stage.watched(watch.clone()))),
        None => builder,
    };
    if !config.energy.enabled {
        return Ok((builder, memory));
    }
    let stage = EnergyStage::new(config.energy.settings()).watched(watch);
    let Some(path) = checkpointer.state_file("gpu-readings.binpb") else {
        return Ok((builder.stage(Box::new(stage)), memory));
    };
    let stage = stage.with_reading_log(&path).map_err(|error| {
        Failure::failed(format!(
            "cannot keep the readings of GPUs in {}: {error}; make it readable and writable, or name another state_folder",
            path.display()
        ))
    })?;
    Ok((builder.stage(Box::new(stage)), memory))
}

/// Returns the stage that derives the signals of an imported log: one that is followed, or a finished one.
pub(crate) fn imported_signals(is_followed: bool) -> SignalsStage {
    SignalsStage::new(if is_followed {
        SignalsConfig::default()
    } else {
        SignalsConfig::offline()
    })
}

/// Returns the stage that computes the energy of the steps of a recording from recorded GPU readings.
pub(crate) fn recorded_energy() -> EnergyStage {
    EnergyStage::new(EnergyConfig::offline())
}

/// A source of the configuration.
pub(crate) struct BuiltSource {
    pub(crate) source: Box<dyn Source>,
    /// The status of its logs; `None` for a receiver.
    pub(crate) logs: Option<Arc<TailStatus>>,
}

/// Creates a source of the configuration by its name, with this service and these attributes for its logs. `on_reading`
/// is called with every reading.
///
/// # Errors
/// Returns an error if a port cannot be listened on.
pub(crate) fn build_source(
    (name, config): (&str, &SourceConfig),
    (service, resource): Resource,
    (checkpointer, claims): (&Checkpointer, &Claims),
    on_reading: impl FnMut(PollReport) + Send + 'static,
) -> Result<BuiltSource, Failure> {
    let name = name.to_owned();
    let logs = match config {
        SourceConfig::Logs(logs) => logs,
        SourceConfig::Otlp(receiver) => {
            let report = move |event: &dyn Display| log::warn(Subject::Source(&name), event);
            let source = receiver_source(receiver, report)?;
            return Ok(BuiltSource { source, logs: None });
        }
    };
    let mut tail = TailConfig::new(logs.paths.iter().map(|path| PathBuf::from(&path.value)));
    tail.poll_interval = logs.poll_interval.0;
    tail.follow_links = logs.follow_links;
    tail.open_files = descriptors::open_logs();
    tail.options = RunOptions {
        service,
        resource,
        ..run_options(logs, claims)
    };
    let on_event = move |event: TailEvent| {
        log::write(level(&event), Subject::Source(&name), event);
    };
    let source = TailSource::new(tail, checkpointer.clone(), on_event).measured(on_reading);
    Ok(BuiltSource {
        logs: Some(source.status()),
        source: Box::new(source),
    })
}

/// Returns the options for the logs of a source. Faults in the options are reported by the check of the configuration.
pub(crate) fn run_options(logs: &LogsSection, claims: &Claims) -> RunOptions {
    RunOptions {
        format: logs.log_format(),
        mapping: logs.built_mapping().unwrap_or_default(),
        run_id: logs.run_id.clone(),
        run_name: logs.run_name.clone(),
        timezone: logs.timezone().unwrap_or_default(),
        rank: (logs.rank.as_ref())
            .and_then(|rank| rank.build().ok())
            .unwrap_or_default(),
        claims: claims.clone(),
        without_messages: !logs.messages,
        ..RunOptions::default()
    }
}

/// Creates a receiver, with the translation of Tunix's names if the configuration enables it.
fn receiver_source(
    config: &ReceiverSection,
    report: impl Fn(&dyn Display) + Clone + Send + Sync + 'static,
) -> Result<Box<dyn Source>, Failure> {
    let receiver = ReceiverSource::bind(config.settings(), report.clone())
        .map_err(|error| Failure::Failed(net_problem(&error)))?;
    if !config.rename_tunix {
        return Ok(Box::new(receiver));
    }
    let translation = TunixTranslation::start(ThrottledLog::new(report))
        .map_err(|error| Failure::failed(format!("cannot start a thread: {error}")))?;
    Ok(Box::new(receiver.through(Box::new(translation))))
}

/// Returns the level of the message about an event of a followed log.
pub(crate) fn level(event: &TailEvent) -> Level {
    match event {
        TailEvent::Problem(_) => Level::Warn,
        _ => Level::Info,
    }
}

/// Returns the source of the GPUs of this machine. A GPU without a visible process belongs to the run `ours`. `report`
/// receives messages for the operator. Must be called inside a runtime.
pub(crate) fn gpus(
    config: &GpuSection,
    resource: Vec<(String, String)>,
    ours: Option<Workload>,
    report: impl Fn(Level, &dyn Display) + Clone + Send + Sync + 'static,
) -> GpuSource {
    let of_workloads = report.clone();
    let workload_config = WorkloadConfig {
        ours,
        ..WorkloadConfig::default()
    };
    let workloads =
        ProcessAttribution::start(workload_config, move |notice| of_workloads(Level::Warn, &notice));
    let settings = GpuConfig {
        resource,
        ..config.settings()
    };
    GpuSource::new(settings, Box::new(workloads), move |notice| {
        let level = match &notice {
            GpuNotice::Trouble { .. } | GpuNotice::Silent { .. } | GpuNotice::Imex { .. } => Level::Warn,
            _ => Level::Info,
        };
        report(level, &notice);
    })
}

/// Returns the source of the logs that a trainer writes in addition to its output, which are read to their end after it
/// has ended.
pub(crate) fn followed(
    paths: &[PathBuf],
    options: RunOptions,
    on_event: impl FnMut(TailEvent) + Send + 'static,
) -> Option<Box<dyn Source>> {
    let config = TailConfig {
        options,
        // The user names the logs, and reads with his own rights.
        follow_links: true,
        at_stop: AtStop::Finish,
        ..TailConfig::new(paths.iter().cloned())
    };
    (!paths.is_empty())
        .then(|| Box::new(TailSource::new(config, Checkpointer::in_memory(), on_event)) as Box<dyn Source>)
}

/// Returns the sink that prints the line of a step on the trainer's terminal.
pub(crate) fn step_line() -> Box<dyn Sink> {
    Box::new(ConsoleSink::stderr(ConsoleStyle::Scrolling))
}

/// A target, and the signals that it receives.
struct SinkTarget {
    signals: Option<Signals>,
    place: Destination,
}

enum Destination {
    Stdout,
    File(PathBuf),
    /// One Perfetto trace, written at the end.
    Trace(PathBuf),
    /// OpenMetrics text, written at the end.
    OpenMetrics(PathBuf),
    /// The address of a remote-write endpoint.
    RemoteWrite(String),
    Otlp(Box<OtlpConfig>),
}

impl SinkTarget {
    fn parse(target: &str) -> Result<Self, Failure> {
        let (signals, place) = signal_selection::split(target)?;
        let place = if place == "-" {
            Destination::Stdout
        } else if let Some(path) = open_metrics_path(place) {
            Destination::OpenMetrics(path)
        } else if let Some(url) = place.strip_prefix("remote-write:") {
            remote_write(url)?;
            Destination::RemoteWrite(url.to_owned())
        } else if place.contains("://") {
            Destination::Otlp(Box::new(otlp_target(target)?))
        } else if trace::is_name(Path::new(place)) {
            Destination::Trace(place.into())
        } else {
            pulsetrain_sinks::FileFormat::from_path(Path::new(place)).map_err(|_| {
                Failure::usage(format!(
                    "cannot write {place}: name it .jsonl or .binpb for OTLP, .pftrace or .pftrace.gz for Perfetto, or write \
                     openmetrics:{place} for `promtool tsdb create-blocks-from openmetrics`"
                ))
            })?;
            Destination::File(place.into())
        };
        Ok(Self { signals, place })
    }

    fn open(
        &self,
        inputs: &[LogInput],
        checkpointer: Option<&Checkpointer>,
    ) -> Result<Box<dyn Sink>, Failure> {
        let sink: Box<dyn Sink> = match &self.place {
            Destination::Stdout => Box::new(FileSink::stdout().map_err(Failure::failed)?),
            Destination::Otlp(config) => otlp(config)?,
            Destination::Trace(path) => {
                refuse_input(path, inputs.iter().filter_map(path_of))?;
                Box::new(TraceSink::create(path)?)
            }
            Destination::RemoteWrite(url) => Box::new(remote_write(url)?),
            Destination::OpenMetrics(path) => {
                refuse_input(path, inputs.iter().filter_map(path_of))?;
                let sink = OpenMetricsSink::create(path, &PrometheusConfig::default());
                Box::new(sink.map_err(Failure::failed)?)
            }
            Destination::File(path) => {
                refuse_input(path, inputs.iter().filter_map(path_of))?;
                let file = match checkpointer {
                    Some(checkpointer) => {
                        files::open(Subject::Program, path, checkpointer, &FileConfig::default())
                    }
                    None => FileSink::create(path),
                };
                Box::new(file.map_err(Failure::failed)?)
            }
        };
        Ok(SelectedSink::narrow(sink, self.signals))
    }
}

/// Returns the path of a target `openmetrics:FILE`.
pub(crate) fn open_metrics_path(target: &str) -> Option<PathBuf> {
    let path = target.strip_prefix("openmetrics:")?;
    (!path.is_empty()).then(|| path.into())
}

fn remote_write(url: &str) -> Result<RemoteWriteSink, Failure> {
    RemoteWriteSink::new(url, &PrometheusConfig::default(), variable).map_err(client_failure)
}

fn path_of(input: &LogInput) -> Option<&Path> {
    match input {
        LogInput::Path(path) => Some(path),
        LogInput::Stdin => None,
    }
}

fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok()
}
