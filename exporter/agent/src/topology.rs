//! Which sources and sinks there are: the only file that names them.

use std::path::{Path, PathBuf};

use pulsetrain_pipeline::{BoxFuture, Sink, Stop};
use pulsetrain_sinks::{
    ConsoleSink, ConsoleStyle, FileSink, OtlpConfig, OtlpSink, PrometheusConfig, PrometheusServer,
    PrometheusSink, SinkError,
};
use pulsetrain_sources::logs::LogInput;

use crate::{
    config::{OtlpSection, SinkConfig, Spot},
    failure::Failure,
};

/// The input that a path on the command line names.
pub(crate) fn input(path: PathBuf) -> LogInput {
    if path.as_os_str() == "-" {
        LogInput::Stdin
    } else {
        LogInput::Path(path)
    }
}

/// The sinks that the command line names, or the one that the environment names.
///
/// # Errors
/// A target that is none, an environment that makes no sense, a file that cannot be opened.
pub(crate) fn sinks(targets: &[String], inputs: &[LogInput]) -> Result<Vec<Box<dyn Sink>>, Failure> {
    sinks_after(targets, inputs, &pulsetrain_sources::logs::Positions::in_memory())
}

/// As [`sinks`], for inputs that are followed from `positions` on: a file goes on from where it ended then.
pub(crate) fn sinks_after(
    targets: &[String],
    inputs: &[LogInput],
    positions: &pulsetrain_sources::logs::Positions,
) -> Result<Vec<Box<dyn Sink>>, Failure> {
    if targets.is_empty() {
        let config = OtlpConfig::from_env(variable).map_err(Failure::usage)?;
        return Ok(vec![otlp(&config)?]);
    }
    // Every target is understood before the first file is touched.
    let targets: Vec<Target> = targets
        .iter()
        .map(|target| Target::parse(target))
        .collect::<Result<_, _>>()?;
    targets
        .iter()
        .map(|target| target.open(inputs, positions))
        .collect()
}

/// Whether a sink of the configuration makes sense, without touching the world.
///
/// # Errors
/// The place and what is wrong there.
pub(crate) fn check_sink(sink: &SinkConfig) -> Result<(), (Spot, String)> {
    let (spot, outcome) = match sink {
        SinkConfig::Prometheus(page) => (page.listen.spot, page.settings().check()),
        SinkConfig::Otlp(otlp) => (otlp.endpoint.spot, otlp_config(otlp).map(drop)),
        SinkConfig::File(file) => (
            file.path.spot,
            pulsetrain_sinks::FileFormat::of(Path::new(&file.path.value)).map(drop),
        ),
        SinkConfig::Console(console) => (console.spot, Ok(())),
    };
    outcome.map_err(|error| (spot, error.to_string()))
}

/// A sink of the configuration, with what has to run beside it.
pub(crate) struct BuiltSink {
    /// The sink.
    pub(crate) sink: Box<dyn Sink>,
    /// The server of a sink that others fetch from; runs until it is stopped.
    pub(crate) server: Option<BoxFuture<'static, ()>>,
}

/// Makes a sink of the configuration; `stop` ends what runs beside it.
///
/// # Errors
/// What cannot be opened, listened on or understood.
pub(crate) async fn build_sink(config: &SinkConfig, stop: Stop) -> Result<BuiltSink, SinkError> {
    let sink: Box<dyn Sink> = match config {
        SinkConfig::Prometheus(page) => return prometheus(&page.settings(), stop).await,
        SinkConfig::Otlp(otlp) => Box::new(OtlpSink::new(&otlp_config(otlp)?)?),
        SinkConfig::File(file) => Box::new(FileSink::create(Path::new(&file.path.value))?),
        SinkConfig::Console(_) => Box::new(ConsoleSink::stderr(ConsoleStyle::InPlace)),
    };
    Ok(BuiltSink { sink, server: None })
}

async fn prometheus(config: &PrometheusConfig, stop: Stop) -> Result<BuiltSink, SinkError> {
    let sink = PrometheusSink::new(config);
    let server = PrometheusServer::bind(config, sink.store(), Vec::new()).await?;
    Ok(BuiltSink {
        sink: Box::new(sink),
        server: Some(Box::pin(server.run(stop))),
    })
}

/// The line of a step on a terminal that belongs to the trainer.
pub(crate) fn step_line() -> Box<dyn Sink> {
    Box::new(ConsoleSink::stderr(ConsoleStyle::Scrolling))
}

/// The settings of an OTLP sink: what the section says goes before what the variables say.
fn otlp_config(section: &OtlpSection) -> Result<OtlpConfig, SinkError> {
    OtlpConfig::from_url(&section.endpoint, |name| {
        section.variable(name).or_else(|| variable(name))
    })
}

/// Where telemetry is to go.
enum Target {
    Stdout,
    File(PathBuf),
    Otlp(Box<OtlpConfig>),
}

impl Target {
    fn parse(target: &str) -> Result<Self, Failure> {
        if target == "-" {
            return Ok(Self::Stdout);
        }
        if target.contains("://") {
            let config = OtlpConfig::from_url(target, variable).map_err(Failure::usage)?;
            return Ok(Self::Otlp(Box::new(config)));
        }
        pulsetrain_sinks::FileFormat::of(Path::new(target)).map_err(Failure::usage)?;
        Ok(Self::File(target.into()))
    }

    fn open(
        &self,
        inputs: &[LogInput],
        positions: &pulsetrain_sources::logs::Positions,
    ) -> Result<Box<dyn Sink>, Failure> {
        match self {
            Self::Stdout => Ok(Box::new(FileSink::stdout().map_err(Failure::failed)?)),
            Self::Otlp(config) => otlp(config),
            Self::File(path) => {
                refuse_input(path, inputs)?;
                Ok(Box::new(file_after(path, positions).map_err(Failure::failed)?))
            }
        }
    }
}

/// A file that holds what was delivered before `positions`, and nothing after.
fn file_after(path: &Path, positions: &pulsetrain_sources::logs::Positions) -> Result<FileSink, SinkError> {
    match positions.output_end(&FileSink::output_name(path)) {
        Some(end) => FileSink::resume(path, end),
        None => FileSink::create(path),
    }
}

fn otlp(config: &OtlpConfig) -> Result<Box<dyn Sink>, Failure> {
    let sink = OtlpSink::new(config).map_err(|error| match error {
        SinkError::Tls { .. } | SinkError::NoAuthorities { .. } => Failure::failed(error),
        other => Failure::usage(other),
    })?;
    Ok(Box::new(sink))
}

/// An output that is an input would be emptied before it is read.
fn refuse_input(output: &Path, inputs: &[LogInput]) -> Result<(), Failure> {
    let Ok(output) = output.canonicalize() else {
        return Ok(());
    };
    for input in inputs {
        if let LogInput::Path(path) = input
            && path.canonicalize().is_ok_and(|path| path == output)
        {
            return Err(Failure::usage(format!(
                "{} is both input and output; name another output",
                path.display()
            )));
        }
    }
    Ok(())
}

fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok()
}
