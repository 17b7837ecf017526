//! The output of a conversion: a Perfetto trace or OpenMetrics text, which are written at the end, or OTLP, which is
//! written message by message. A file appears under its name only when it is complete.

use std::{
    collections::{BTreeMap, HashSet},
    io::Write,
    path::{Path, PathBuf},
};

use pulsetrain_derive::SignalsStage;
use pulsetrain_otlp::{
    Signal, frames,
    limits::{Limits, check},
    walk,
};
use pulsetrain_pipeline::{Batch, Delivery, Stage, clock, spill::MemoryBudget};
use pulsetrain_prometheus::{OpenMetricsHistory, PrometheusConfig};
use pulsetrain_sinks::{FileFormat, UnfinishedFile};
use pulsetrain_to_perfetto::{AttributePolicy, PerfettoConfig, PerfettoMapper, PerfettoSummary};

use super::trace::{self, TraceFiles};
use crate::{failure::Failure, topology};

const NO_TELEMETRY: &str = "the inputs have no spans, metrics or log records";

/// Writes messages, and the signals that are derived from them.
pub(super) struct Output {
    path: PathBuf,
    kind: OutputKind,
    derivation: Option<SignalsStage>,
    /// The number of written messages, including derived ones.
    messages: u64,
}

enum OutputKind {
    Perfetto {
        mapper: Box<PerfettoMapper>,
        split: Option<u64>,
        /// The drawing by trace, until there are too many traces for it.
        few: Option<Box<FewTraces>>,
    },
    Otlp {
        file: UnfinishedFile,
        format: FileFormat,
        items: BTreeMap<Signal, u64>,
        bytes: u64,
    },
    OpenMetrics {
        history: Box<OpenMetricsHistory>,
        file: UnfinishedFile,
        problems: Vec<String>,
        left_out: u64,
    },
}

/// A second drawing, with a row for each trace, while there are few traces.
struct FewTraces {
    mapper: PerfettoMapper,
    ids: HashSet<Vec<u8>>,
    most: usize,
}

/// The report about the output.
#[derive(Debug, Default)]
pub(super) struct WriteReport {
    pub(super) messages: u64,
    pub(super) files: Vec<PathBuf>,
    pub(super) bytes: u64,
    /// The files that exceed the requested size of a part, because a span cannot be split.
    pub(super) over_size: Vec<PathBuf>,
    /// The summary of a Perfetto trace.
    pub(super) mapped: Option<PerfettoSummary>,
    /// Whether each trace has its own row because the traces turned out to be few.
    pub(super) is_by_trace: bool,
    /// The number of spans, points and log records in an OTLP output.
    pub(super) items: BTreeMap<Signal, u64>,
    /// The number of spans and log records, which OpenMetrics text does not have.
    pub(super) left_out: u64,
    /// The problems of the output.
    pub(super) problems: Vec<String>,
}

impl Output {
    /// Returns the output for a file name.
    pub(super) fn for_path(path: &Path, config: PerfettoConfig, split: Option<u64>) -> Result<Self, Failure> {
        let kind = if trace::is_name(path) {
            OutputKind::Perfetto {
                mapper: Box::new(PerfettoMapper::new(config)),
                split,
                few: None,
            }
        } else if let Some(path) = topology::open_metrics_path(&path.to_string_lossy()) {
            let room = MemoryBudget {
                bytes: config.memory_bytes,
                folder: config.temporary,
            };
            OutputKind::OpenMetrics {
                history: Box::new(OpenMetricsHistory::new(&PrometheusConfig::default(), room)),
                file: UnfinishedFile::create(&path).map_err(|error| cannot_write(&path, &error))?,
                problems: Vec::new(),
                left_out: 0,
            }
        } else if split.is_some() {
            return Err(Failure::usage(
                "only a Perfetto trace can be split; name the output .pftrace",
            ));
        } else {
            let is_standard_output = path.as_os_str() == "-";
            let format = match is_standard_output {
                true => Ok(FileFormat::JsonLines),
                false => FileFormat::from_path(path),
            };
            let format = format.map_err(|_| {
                Failure::usage(format!(
                    "cannot write {}: name it .pftrace or .pftrace.gz for Perfetto, .jsonl or .binpb for OTLP, - for \
                     OTLP/JSON lines on the standard output, or openmetrics:FILE",
                    path.display()
                ))
            })?;
            let file = match is_standard_output {
                true => UnfinishedFile::standard_output(),
                false => UnfinishedFile::create(path),
            };
            OutputKind::Otlp {
                file: file.map_err(|error| cannot_write(path, &error))?,
                format,
                items: BTreeMap::new(),
                bytes: 0,
            }
        };
        Ok(Self {
            path: path.to_owned(),
            kind,
            derivation: None,
            messages: 0,
        })
    }

    /// Enables the derived signals of the steps, as in `import --derive`.
    pub(super) fn deriving(mut self) -> Self {
        self.derivation = Some(topology::imported_signals(false));
        self
    }

    /// Writes one message and the signals derived from it.
    pub(super) fn deliver(&mut self, signal: Signal, bytes: Vec<u8>) -> Result<(), Failure> {
        let message = Batch::new(signal, 1, bytes);
        let Some(stage) = &mut self.derivation else {
            return self.write(&message);
        };
        let mut passed = Vec::new();
        stage.pass(message, clock::now(), &mut passed);
        passed.iter().try_for_each(|message| self.write(message))
    }

    fn write(&mut self, message: &Batch) -> Result<(), Failure> {
        let (signal, bytes) = (message.signal(), message.bytes());
        self.messages += 1;
        match &mut self.kind {
            OutputKind::Perfetto { mapper, few, .. } => {
                let has_too_many = match few {
                    Some(few) => !few.add(message)?,
                    None => false,
                };
                if has_too_many {
                    *few = None;
                }
                mapper.add(signal, bytes.clone()).map_err(Failure::failed)
            }
            OutputKind::Otlp {
                file,
                format,
                items,
                bytes: written,
            } => {
                *items.entry(signal).or_default() += count(signal, bytes);
                let mut frame = Vec::with_capacity(bytes.len() + 4);
                match format {
                    FileFormat::JsonLines => {
                        frames::append_json_line(signal, bytes, &mut frame).map_err(Failure::failed)?;
                    }
                    FileFormat::LengthPrefixed => {
                        frames::append_binary(bytes, &mut frame).map_err(Failure::failed)?;
                    }
                }
                *written += frame.len() as u64;
                file.write_all(&frame)
                    .map_err(|error| cannot_write(&self.path, &error))
            }
            OutputKind::OpenMetrics {
                history,
                problems,
                left_out,
                ..
            } => {
                if signal == Signal::Metrics {
                    if let Delivery::Partial { problem, .. } = history.add(bytes).map_err(Failure::failed)?
                        && let message = problem.to_string()
                        && !problems.contains(&message)
                    {
                        problems.push(message);
                    }
                } else {
                    *left_out += count(signal, bytes);
                }
                Ok(())
            }
        }
    }

    /// Draws each trace on its own row and returns `true`, unless the output is not a trace or must be convertible back.
    /// Must be called before the first delivery.
    pub(super) fn draw_by_trace(&mut self) -> bool {
        if let OutputKind::Perfetto { mapper, .. } = &mut self.kind
            && mapper.config().attributes != AttributePolicy::Full
        {
            let config = PerfettoConfig {
                by_trace: true,
                ..mapper.config().clone()
            };
            **mapper = PerfettoMapper::new(config);
            return true;
        }
        false
    }

    /// Draws each trace on its own row if at most `most` traces are delivered. Until then, both drawings share the memory.
    /// Must be called before the first delivery.
    pub(super) fn draw_few_by_trace(&mut self, most: usize) {
        if let OutputKind::Perfetto { mapper, few, .. } = &mut self.kind
            && mapper.config().attributes != AttributePolicy::Full
        {
            let config = PerfettoConfig {
                memory_bytes: mapper.config().memory_bytes / 2,
                ..mapper.config().clone()
            };
            let by_trace = PerfettoConfig {
                by_trace: true,
                ..config.clone()
            };
            **mapper = PerfettoMapper::new(config);
            *few = Some(Box::new(FewTraces {
                mapper: PerfettoMapper::new(by_trace),
                ids: HashSet::new(),
                most,
            }));
        }
    }

    /// Returns whether no message was delivered.
    pub(super) fn is_empty(&self) -> bool {
        self.messages == 0
    }

    /// Leaves the existing file unchanged, and reports a reason unless the problems of the inputs explain it.
    pub(super) fn abandon(self, has_problems: bool) -> WriteReport {
        WriteReport {
            problems: Vec::from_iter((!has_problems).then(|| NO_TELEMETRY.to_owned())),
            ..WriteReport::default()
        }
    }

    /// Writes the remaining data. No trace overwrites one of the inputs.
    pub(super) fn finish(mut self, inputs: &[PathBuf]) -> Result<WriteReport, Failure> {
        if let Some(mut stage) = self.derivation.take() {
            let mut rest = Vec::new();
            stage.finish(&mut rest);
            rest.iter().try_for_each(|message| self.write(message))?;
        }
        let path = self.path;
        let mut written = WriteReport {
            messages: self.messages,
            ..WriteReport::default()
        };
        let mut most = u64::MAX;
        match self.kind {
            OutputKind::Perfetto { mapper, split, few } => {
                let few = few.filter(|few| !few.ids.is_empty());
                written.is_by_trace = few.is_some();
                let mapper = few.map_or(*mapper, |few| few.mapper);
                // A part ends with the span that fills it.
                most = split.map_or(most, |split| split.saturating_add(split / 10));
                let mut files = TraceFiles::new(&path, split.is_some(), inputs);
                let summary = mapper.write_parts(&mut files, split).map_err(Failure::failed)?;
                written.files = files.publish().map_err(|error| cannot_write(&path, &error))?;
                if written.files.is_empty() {
                    written.problems.push(nothing_drawn(&summary));
                }
                written.mapped = Some(summary);
            }
            OutputKind::Otlp {
                file, items, bytes, ..
            } => {
                (written.items, written.bytes) = (items, bytes);
                file.finish().map_err(|error| cannot_write(&path, &error))?;
                written.files = vec![path];
            }
            OutputKind::OpenMetrics {
                history,
                mut file,
                problems,
                left_out,
            } => {
                written.left_out = left_out;
                let summary = history.write(&mut file);
                let summary = summary.map_err(|error| cannot_write(&path, &error))?;
                written.problems = problems.into_iter().chain(summary.problem()).collect();
                if summary.points > 0 {
                    file.finish().map_err(|error| cannot_write(&path, &error))?;
                    written
                        .files
                        .extend(topology::open_metrics_path(&path.to_string_lossy()));
                }
            }
        }
        let size = |path: &PathBuf| std::fs::metadata(path).map_or(0, |file| file.len());
        written.bytes = written.bytes.max(written.files.iter().map(size).sum());
        written.over_size = written
            .files
            .iter()
            .filter(|path| size(path) > most)
            .cloned()
            .collect();
        Ok(written)
    }
}

impl FewTraces {
    /// Adds a message, or returns `false` if there are more traces than the limit.
    fn add(&mut self, message: &Batch) -> Result<bool, Failure> {
        if message.signal() == Signal::Traces {
            self.count(message.bytes());
        }
        if self.ids.len() > self.most {
            return Ok(false);
        }
        let added = self.mapper.add(message.signal(), message.bytes().clone());
        added.map(|()| true).map_err(Failure::failed)
    }

    /// Adds the ids of the traces of a message. Invalid messages are reported by the drawing.
    fn count(&mut self, message: &[u8]) {
        let spans = walk::spans(message)
            .flatten()
            .flat_map(|resource| resource.items());
        self.ids
            .extend(spans.flatten().map(|span| span.trace_id.to_vec()));
    }
}

/// Returns the reason for an empty trace.
fn nothing_drawn(summary: &PerfettoSummary) -> String {
    match summary.filtered {
        0 => NO_TELEMETRY.to_owned(),
        filtered => format!(
            "--window, --step and --rank leave out all {filtered} spans, points and log records; widen or remove them"
        ),
    }
}

/// Returns the number of spans, points or log records of a message, which was within all limits when it was read.
fn count(signal: Signal, message: &[u8]) -> u64 {
    let limits = Limits {
        bytes: usize::MAX,
        items: usize::MAX,
        attributes: usize::MAX,
        ..Limits::default()
    };
    check(signal, message, &limits).map_or(0, |counts| counts.items)
}

fn cannot_write(path: &Path, error: &std::io::Error) -> Failure {
    Failure::failed(format!("cannot write {}: {error}", path.display()))
}
