//! The output of a conversion: a Perfetto trace, which is written when all is read, or OTLP, message by message.

use std::{
    fs::File,
    io::{BufWriter, Write},
    path::{Path, PathBuf},
};

use flate2::{Compression, write::GzEncoder};
use pulsetrain_otlp::{Signal, frames};
use pulsetrain_sinks::{FileFormat, PerfettoConfig, PerfettoMapper, PerfettoSummary};

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
        gzip: bool,
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
    pub(super) bytes: u64,
    /// What a Perfetto trace shows.
    pub(super) mapped: Option<PerfettoSummary>,
}

impl Output {
    /// The output that a name asks for.
    pub(super) fn of(path: &Path, config: PerfettoConfig) -> Result<Self, Failure> {
        let name = path.to_string_lossy().to_lowercase();
        let gzip = name.ends_with(".gz");
        let kind = if name.trim_end_matches(".gz").ends_with(".pftrace") {
            Kind::Perfetto {
                mapper: Box::new(PerfettoMapper::new(config)),
                gzip,
            }
        } else {
            let format = FileFormat::of(path).map_err(|_| {
                Failure::usage(format!(
                    "cannot write {}: name it .pftrace or .pftrace.gz for Perfetto, .jsonl or .binpb for OTLP",
                    path.display()
                ))
            })?;
            let file = BufWriter::new(create(path)?);
            Kind::Otlp { file, format }
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

    /// Writes what is left.
    pub(super) fn finish(self) -> Result<Written, Failure> {
        let path = self.path;
        let mapped = match self.kind {
            Kind::Perfetto { mapper, gzip } => {
                let file = create(&path)?;
                Some(write_trace(*mapper, file, gzip, &path)?)
            }
            Kind::Otlp { mut file, .. } => {
                file.flush().map_err(|error| cannot_write(&path, &error))?;
                None
            }
        };
        let bytes = std::fs::metadata(&path).map_or(0, |file| file.len());
        Ok(Written {
            messages: self.messages,
            bytes,
            mapped,
        })
    }
}

fn write_trace(
    mapper: PerfettoMapper,
    file: File,
    gzip: bool,
    path: &Path,
) -> Result<PerfettoSummary, Failure> {
    if !gzip {
        return Ok(mapper.write(file).map_err(Failure::failed)?.1);
    }
    let encoder = GzEncoder::new(BufWriter::new(file), Compression::fast());
    let (encoder, summary) = mapper.write(encoder).map_err(Failure::failed)?;
    let finished = encoder.finish().and_then(|mut file| file.flush());
    finished.map_err(|error| cannot_write(path, &error))?;
    Ok(summary)
}

fn create(path: &Path) -> Result<File, Failure> {
    File::create(path).map_err(|error| cannot_write(path, &error))
}

fn cannot_write(path: &Path, error: &std::io::Error) -> Failure {
    Failure::failed(format!("cannot write {}: {error}", path.display()))
}
