//! An OTLP file or a Perfetto trace, as a source of the pipeline.

use std::{io::Write, path::PathBuf};

use pulsetrain_pipeline::{
    Batch, BoxFuture, CancellationToken, Ingress, Problem, Source, spill::MemoryBudget,
};
use pulsetrain_tail::RunOptions;
use pulsetrain_trace_inputs::{InputReport, ReadOptions, read_input};
use tokio::runtime::Handle;

use crate::{failure::Failure, terminal};

/// The memory limit for a Perfetto trace.
pub(super) const MEMORY: usize = 128 << 20;

/// Reads a file to its end.
pub(super) struct RecordedFile {
    path: PathBuf,
    name: String,
    on_end: Box<dyn FnOnce(RecordedReport) + Send>,
}

/// The report about a file.
pub(super) struct RecordedReport {
    name: String,
    read: Result<InputReport, Failure>,
}

impl RecordedFile {
    pub(super) fn new(path: PathBuf, on_end: impl FnOnce(RecordedReport) + Send + 'static) -> Self {
        Self {
            name: path.display().to_string(),
            path,
            on_end: Box::new(on_end),
        }
    }
}

impl Source for RecordedFile {
    fn name(&self) -> &str {
        &self.name
    }

    fn run(
        self: Box<Self>,
        ingress: Ingress,
        stop: CancellationToken,
    ) -> BoxFuture<'static, Result<(), Problem>> {
        Box::pin(async move {
            let runtime = Handle::current();
            let reading = tokio::task::spawn_blocking(move || {
                let options = RunOptions::default();
                let room = MemoryBudget {
                    bytes: MEMORY,
                    folder: None,
                };
                let options = ReadOptions {
                    run: &options,
                    room: &room,
                };
                let mut deliver = |signal, bytes: Vec<u8>| {
                    if stop.is_cancelled() {
                        return Err(Failure::failed("interrupted"));
                    }
                    runtime
                        .block_on(ingress.send(Batch::new(signal, 1, bytes)))
                        .map_err(Failure::failed)
                };
                let read = read_input(&self.path, options, |input| input, &mut deliver);
                (self.on_end)(RecordedReport {
                    name: self.name,
                    read,
                });
            });
            reading.await.map_err(|error| Problem::new(error.to_string()))
        })
    }
}

impl RecordedReport {
    /// Prints the errors of the file, and returns whether there were none.
    pub(super) fn print(&self) -> bool {
        let mut out = terminal::stderr();
        // An error of the standard error cannot be reported.
        let _ = match &self.read {
            Ok(report) => report
                .problems
                .iter()
                .try_for_each(|problem| writeln!(out, "{}: {problem}", self.name)),
            Err(failure) => writeln!(out, "{}: {failure}", self.name),
        };
        self.read.as_ref().is_ok_and(|report| report.lost == 0)
    }
}
