//! The sink that writes one Perfetto trace when its sources have ended: `import --to run.pftrace`.

use std::{
    path::Path,
    sync::{Arc, Mutex},
};

use pulsetrain_pipeline::{Batch, BoxFuture, Delivery, Problem, Sink};
use pulsetrain_sinks::blocking;
use pulsetrain_to_perfetto::{PerfettoConfig, PerfettoError, PerfettoMapper};

use crate::{convert::trace::TraceFile, failure::Failure};

/// Collects batches, in temporary files if they exceed the memory budget, and draws them at the end.
///
/// The file gets its name when the sink finishes. Without a batch, no file is created.
pub(crate) struct TraceSink {
    name: String,
    parts: Arc<Mutex<Option<Parts>>>,
}

struct Parts {
    mapper: PerfettoMapper,
    file: TraceFile,
    is_empty: bool,
}

impl TraceSink {
    /// Creates a sink that will write `path`.
    ///
    /// # Errors
    /// Returns an error if the path cannot be written.
    pub(crate) fn create(path: &Path) -> Result<Self, Failure> {
        let file = TraceFile::create(path).map_err(|error| {
            Failure::failed(format!(
                "cannot write {}: {error}; check that its folder exists and that you may write there",
                path.display()
            ))
        })?;
        let parts = Parts {
            mapper: PerfettoMapper::new(PerfettoConfig::default()),
            file,
            is_empty: true,
        };
        Ok(Self {
            name: format!("perfetto {}", path.display()),
            parts: Arc::new(Mutex::new(Some(parts))),
        })
    }
}

impl Sink for TraceSink {
    fn name(&self) -> &str {
        &self.name
    }

    fn deliver<'a>(&'a mut self, batch: &'a Batch) -> BoxFuture<'a, Delivery> {
        let batch = batch.clone();
        Box::pin(async move {
            let added = blocking(&self.parts, move |parts| match parts {
                Some(parts) => {
                    let added = parts.add(&batch);
                    added.map_err(|error| Problem::new(error.to_string()))
                }
                None => Err("the file is finished".into()),
            });
            match added.await.map_err(Problem::from).flatten() {
                Ok(()) => Delivery::Delivered,
                Err(problem) => Delivery::Refused(problem.about(&self.name)),
            }
        })
    }

    fn finish(&mut self) -> BoxFuture<'_, Result<(), Problem>> {
        Box::pin(async {
            let finish = |parts: &mut Option<Parts>| parts.take().map_or(Ok(()), Parts::finish);
            let finished = blocking(&self.parts, finish).await;
            let finished = finished.map_err(Problem::from).flatten();
            finished.map_err(|problem| problem.about(&self.name))
        })
    }
}

impl Parts {
    fn add(&mut self, batch: &Batch) -> Result<(), PerfettoError> {
        self.is_empty = false;
        self.mapper.add(batch.signal(), batch.bytes().clone())
    }

    fn finish(self) -> Result<(), Problem> {
        if self.is_empty {
            return Err("there is no file, because nothing arrived".into());
        }
        let written = self.mapper.write(self.file);
        let (file, _) = written.map_err(|error| Problem::new(error.to_string()))?;
        file.finish().map_err(|error| {
            Problem::new(format!("cannot write: {error}"))
                .with_remedy("make room on the disk or write to another one")
        })
    }
}
