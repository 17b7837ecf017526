//! Which sources and sinks there are: the only file that names them.

use std::path::{Path, PathBuf};

use pulsetrain_pipeline::Sink;
use pulsetrain_sinks::{FileSink, OtlpConfig, OtlpSink, SinkError};
use pulsetrain_sources::logs::LogInput;

use crate::failure::Failure;

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
