//! The sink that writes a history to a file after its sources have ended.

use std::{
    io,
    path::Path,
    sync::{Arc, Mutex},
};

use pulsetrain_otlp::{Signal, Signals};
use pulsetrain_pipeline::{Batch, BoxFuture, Delivery, Problem, Sink, spill::MemoryBudget};
use pulsetrain_prometheus::{HistorySummary, OpenMetricsHistory, PrometheusConfig};

use crate::{SinkError, UnfinishedFile, blocking, file::cannot_open};

/// The memory budget for samples that are not spilled.
const MEMORY_BYTES: usize = 64 << 20;

/// Writes every point of its batches as OpenMetrics text, with its time.
///
/// The file gets its name when the sink finishes. Without points, no file is created.
pub struct OpenMetricsSink {
    name: String,
    parts: Arc<Mutex<Option<Parts>>>,
}

struct Parts {
    history: OpenMetricsHistory,
    file: UnfinishedFile,
}

impl OpenMetricsSink {
    /// Returns a sink that writes `path`, with the names and labels of `config`.
    ///
    /// # Errors
    /// A path that cannot be written.
    pub fn create(path: &Path, config: &PrometheusConfig) -> Result<Self, SinkError> {
        let file = UnfinishedFile::create(path).map_err(|source| cannot_open(path, source))?;
        let room = MemoryBudget {
            bytes: MEMORY_BYTES,
            folder: None,
        };
        let parts = Parts {
            history: OpenMetricsHistory::new(config, room),
            file,
        };
        Ok(Self {
            name: format!("openmetrics {}", path.display()),
            parts: Arc::new(Mutex::new(Some(parts))),
        })
    }
}

impl Sink for OpenMetricsSink {
    fn name(&self) -> &str {
        &self.name
    }

    fn signals(&self) -> Signals {
        Signals::from_iter([Signal::Metrics])
    }

    fn deliver<'a>(&'a mut self, batch: &'a Batch) -> BoxFuture<'a, Delivery> {
        let bytes = batch.bytes().clone();
        Box::pin(async move {
            let added = blocking(&self.parts, move |parts| match parts {
                Some(parts) => {
                    let added = parts.history.add(&bytes);
                    added.map_err(|error| Problem::new(error.to_string()))
                }
                None => Err("the file is finished".into()),
            });
            let added = added.await.map_err(Problem::from).flatten();
            added.unwrap_or_else(|problem| Delivery::Refused(problem.about(&self.name)))
        })
    }

    fn finish(&mut self) -> BoxFuture<'_, Result<(), Problem>> {
        Box::pin(async {
            let finished = blocking(&self.parts, |parts| parts.take().map(Parts::finish)).await;
            let problem = match finished {
                Ok(Some(Ok(summary))) => summary.problem().map(Problem::new),
                Ok(Some(Err(error))) => {
                    let problem = Problem::new(format!("cannot be written: {error}"));
                    Some(problem.with_remedy("make room on the disk"))
                }
                Ok(None) => None,
                Err(stopped) => Some(stopped.into()),
            };
            problem.map_or(Ok(()), |problem| Err(problem.about(&self.name)))
        })
    }
}

impl Parts {
    fn finish(mut self) -> io::Result<HistorySummary> {
        if self.history.is_empty() {
            return Ok(HistorySummary::default());
        }
        let summary = self.history.write(&mut self.file)?;
        self.file.finish()?;
        Ok(summary)
    }
}
