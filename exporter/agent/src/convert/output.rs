//! The output of a conversion: a Perfetto trace, which is written when all is read, or OTLP, message by message.

use std::{
    fs::File,
    io::{BufWriter, Write},
    path::{Path, PathBuf},
};

use pulsetrain_otlp::{Signal, frames};
use pulsetrain_sinks::{FileFormat, PerfettoConfig, PerfettoMapper, PerfettoSummary};

use super::trace::{self, TraceFiles};
use crate::failure::Failure;

/// Where messages go.
pub(super) struct Output {
    path: PathBuf,
    kind: Kind,
    messages: u64,
}

enum Kind {
    Perfetto {
        mapper: Box<PerfettoMapper>,
        split: Option<u64>,
    },
    Otlp {
        file: BufWriter<File>,
        format: FileFormat,
    },
}

/// What became of the messages.
#[derive(Debug)]
pub(super) struct Written {
    pub(super) messages: u64,
    pub(super) files: Vec<PathBuf>,
    pub(super) bytes: u64,
    /// Those of them that are larger than the parts that were asked for: a span cannot be cut.
    pub(super) over_size: Vec<PathBuf>,
    /// What a Perfetto trace shows.
    pub(super) mapped: Option<PerfettoSummary>,
}

impl Output {
    /// The output that a name asks for.
    pub(super) fn of(path: &Path, config: PerfettoConfig, split: Option<u64>) -> Result<Self, Failure> {
        let kind = if trace::is_name(path) {
            Kind::Perfetto {
                mapper: Box::new(PerfettoMapper::new(config)),
                split,
            }
        } else if split.is_some() {
            return Err(Failure::usage(
                "only a Perfetto trace can be split; name the output .pftrace",
            ));
        } else {
            let format = FileFormat::of(path).map_err(|_| {
                Failure::usage(format!(
                    "cannot write {}: name it .pftrace or .pftrace.gz for Perfetto, .jsonl or .binpb for OTLP",
                    path.display()
                ))
            })?;
            let file = File::create(path).map_err(|error| cannot_write(path, &error))?;
            Kind::Otlp {
                file: BufWriter::new(file),
                format,
            }
        };
        Ok(Self {
            path: path.to_owned(),
            kind,
            messages: 0,
        })
    }

    /// Takes one message.
    pub(super) fn deliver(&mut self, signal: Signal, bytes: Vec<u8>) -> Result<(), Failure> {
        self.messages += 1;
        match &mut self.kind {
            Kind::Perfetto { mapper, .. } => mapper.add(signal, bytes).map_err(Failure::failed),
            Kind::Otlp { file, format } => {
                let mut frame = Vec::with_capacity(bytes.len() + 4);
                match format {
                    FileFormat::JsonLines => {
                        frames::append_json_line(signal, &bytes, &mut frame).map_err(Failure::failed)?;
                    }
                    FileFormat::LengthPrefixed => {
                        frames::append_binary(&bytes, &mut frame).map_err(Failure::failed)?;
                    }
                }
                file.write_all(&frame)
                    .map_err(|error| cannot_write(&self.path, &error))
            }
        }
    }

    /// Writes what is left. No trace is written over one of the inputs.
    pub(super) fn finish(self, inputs: &[PathBuf]) -> Result<Written, Failure> {
        let path = self.path;
        let mut most = u64::MAX;
        let (mapped, files) = match self.kind {
            Kind::Perfetto { mapper, split } => {
                // A part ends with the span that fills it.
                most = split.map_or(most, |split| split.saturating_add(split / 10));
                let mut files = TraceFiles::new(&path, split.is_some(), inputs);
                let summary = mapper.write_parts(&mut files, split).map_err(Failure::failed)?;
                (Some(summary), files.into_paths())
            }
            Kind::Otlp { mut file, .. } => {
                file.flush().map_err(|error| cannot_write(&path, &error))?;
                (None, vec![path])
            }
        };
        let size = |path: &PathBuf| std::fs::metadata(path).map_or(0, |file| file.len());
        Ok(Written {
            messages: self.messages,
            bytes: files.iter().map(size).sum(),
            over_size: files.iter().filter(|path| size(path) > most).cloned().collect(),
            files,
            mapped,
        })
    }
}

fn cannot_write(path: &Path, error: &std::io::Error) -> Failure {
    Failure::failed(format!("cannot write {}: {error}", path.display()))
}
