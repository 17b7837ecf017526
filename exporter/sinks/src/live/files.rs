//! Perfetto traces in a series of files, each limited in size and age.
//!
//! The batches of the current file are buffered in memory until it is full. At an interval the trace is
//! written under a temporary name and renamed, so that the file can be opened at any time. A kill loses at
//! most the last interval.

use std::{
    fs::{self, File},
    io,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use pulsetrain_pipeline::{
    Batch, BoxFuture, CancellationToken, Delivery, Problem, Sink,
    clock::{self, Instant},
};
use pulsetrain_to_perfetto::{PerfettoConfig, PerfettoError};
use tokio::{task::JoinError, time};

use super::{batch_ring::BatchRing, replace::replace, trace_series};
use crate::{SinkError, file_series::FileSeries};

/// The fraction of time spent on writing, so that large files are rewritten less often.
const SHARE: u32 = 10;

/// The location and limits of the files.
#[derive(Clone, Debug, PartialEq)]
pub struct PerfettoFilesConfig {
    /// A path that ends in `.pftrace`. Each file has its creation time before the extension.
    pub path: PathBuf,
    /// The maximum telemetry of one file in bytes, which is buffered in memory.
    pub bytes: usize,
    /// The maximum age of a file.
    pub age: Duration,
    /// The number of files to keep, the current one included.
    pub keep: usize,
    /// The interval of writes to the disk.
    pub flush_every: Duration,
    /// The settings of the conversion.
    pub perfetto: PerfettoConfig,
}

impl PerfettoFilesConfig {
    /// Validates the settings without access to the file system.
    ///
    /// # Errors
    ///
    /// A path that does not end in `.pftrace`.
    pub fn check(&self) -> Result<(), SinkError> {
        trace_series(&self.path).map(drop)
    }
}

/// The sink that buffers batches for the files.
#[derive(Debug)]
pub struct PerfettoFilesSink {
    name: String,
    shared: Arc<Shared>,
}

/// The task that writes the files.
#[derive(Debug)]
pub struct PerfettoFiles {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    config: PerfettoFilesConfig,
    state: Mutex<FilesState>,
    /// Serializes writes.
    writing: tokio::sync::Mutex<()>,
}

#[derive(Debug)]
struct FilesState {
    ring: BatchRing,
    series: FileSeries,
    /// The current file and its creation time, or `None` before its first batch.
    file: Option<(PathBuf, Instant)>,
    /// Whether the buffer holds batches that are not on the disk.
    is_behind: bool,
    /// The last write error, until the next delivery reports it.
    fault: Option<Problem>,
}

impl PerfettoFilesSink {
    /// Creates the folder of the files if it does not exist. Returns the sink and the task that writes the
    /// files.
    ///
    /// # Errors
    ///
    /// A path that does not end in `.pftrace`, or a folder that cannot be created or written.
    pub fn open(config: PerfettoFilesConfig) -> Result<(Self, PerfettoFiles), SinkError> {
        let series = trace_series(&config.path)?;
        let usable = fs::create_dir_all(series.folder()).and_then(|()| tempfile_in(series.folder()));
        usable.map_err(|source| SinkError::OpenFile {
            path: series.folder().to_owned(),
            remedy: "name a folder that this user may write to",
            source,
        })?;
        let shared = Arc::new(Shared {
            state: Mutex::new(FilesState {
                ring: BatchRing::default(),
                series,
                file: None,
                is_behind: false,
                fault: None,
            }),
            writing: tokio::sync::Mutex::new(()),
            config,
        });
        let sink = Self {
            name: format!("perfetto {}", shared.config.path.display()),
            shared: Arc::clone(&shared),
        };
        Ok((sink, PerfettoFiles { shared }))
    }
}

/// Checks that a folder is writable, by writing to it.
fn tempfile_in(folder: &Path) -> io::Result<()> {
    let probe = folder.join(format!(".pulsetrain-{}", std::process::id()));
    File::create(&probe)?;
    fs::remove_file(probe)
}

impl PerfettoFiles {
    /// Writes at the interval until `stop`. The sink's `finish` writes the rest.
    pub async fn run(self, stop: CancellationToken) {
        let mut pause = self.shared.config.flush_every;
        loop {
            tokio::select! {
                () = time::sleep(pause) => {}
                () = stop.cancelled() => return,
            }
            let start = clock::now();
            self.shared.flush().await;
            pause = self.shared.config.flush_every.max((clock::now() - start) * SHARE);
        }
    }
}

impl Sink for PerfettoFilesSink {
    fn name(&self) -> &str {
        &self.name
    }

    fn deliver<'a>(&'a mut self, batch: &'a Batch) -> BoxFuture<'a, Delivery> {
        Box::pin(self.shared.take(batch))
    }

    fn finish(&mut self) -> BoxFuture<'_, Result<(), Problem>> {
        Box::pin(async {
            self.shared.flush().await;
            match self.shared.lock().fault.take() {
                Some(fault) => Err(fault),
                None => Ok(()),
            }
        })
    }
}

impl Shared {
    async fn take(&self, batch: &Batch) -> Delivery {
        if self.is_full(batch) && !self.begin_next().await {
            let problem = self.lock().fault.take().unwrap_or_default();
            return Delivery::Retry {
                after: Some(self.config.flush_every),
                problem,
            };
        }
        if let Err(error) = self.name_file().await {
            return Delivery::Retry {
                after: Some(self.config.flush_every),
                problem: Problem::new(error.to_string()),
            };
        }
        let mut state = self.lock();
        state.ring.push(batch, clock::now());
        state.is_behind = true;
        match state.fault.take() {
            // The batch is buffered, and a later write may succeed.
            Some(problem) => Delivery::Partial { rejected: 0, problem },
            None => Delivery::Delivered,
        }
    }

    /// Creates the file name of the next batches. A folder that hangs delays no other sink.
    async fn name_file(&self) -> Result<(), JoinError> {
        if self.lock().file.is_some() {
            return Ok(());
        }
        let series = self.lock().series.clone();
        let path = tokio::task::spawn_blocking(move || series.next(clock::unix_now())).await?;
        let mut state = self.lock();
        state.series.record_created(&path);
        state.file = Some((path, clock::now()));
        Ok(())
    }

    /// Returns whether the file is too large or too old for another batch.
    fn is_full(&self, batch: &Batch) -> bool {
        let state = self.lock();
        let Some((_, began)) = &state.file else {
            return false;
        };
        let is_old = clock::now() - *began >= self.config.age;
        let has_no_room = state.ring.bytes() + BatchRing::size_of(batch) > self.config.bytes;
        !state.ring.is_empty() && (is_old || has_no_room)
    }

    /// Completes the file and clears the buffer. Returns `false` if the disk cannot be written.
    async fn begin_next(&self) -> bool {
        self.flush().await;
        let mut state = self.lock();
        if state.is_behind {
            return false;
        }
        state.ring = BatchRing::default();
        state.file = None;
        true
    }

    /// Writes the buffer to the disk. An error is kept for the next delivery.
    async fn flush(&self) {
        let _one_at_a_time = self.writing.lock().await;
        let (path, snapshot, series) = {
            let mut state = self.lock();
            let Some((path, _)) = state.file.clone().filter(|_| state.is_behind) else {
                return;
            };
            state.is_behind = false;
            (path, state.ring.since(None), state.series.clone())
        };
        let (config, keep) = (self.config.perfetto.clone(), self.config.keep);
        let written = tokio::task::spawn_blocking(move || {
            replace(&path, |file| snapshot.draw(config, file).map(drop).map_err(as_io))?;
            remove_oldest(&series, keep, &path)
        });
        let outcome = written.await.unwrap_or_else(|error| Err(io::Error::other(error)));
        if let Err(error) = outcome {
            let mut state = self.lock();
            state.is_behind = true;
            let what = format!(
                "cannot write the trace of {}: {error}; its data is kept in memory and written again",
                self.config.path.display()
            );
            state.fault = Some(Problem::new(what).with_remedy("free disk space or check the folder"));
        }
    }

    fn lock(&self) -> MutexGuard<'_, FilesState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn as_io(error: PerfettoError) -> io::Error {
    match error {
        PerfettoError::Write(error) => error,
        other => io::Error::other(other),
    }
}

/// Removes the oldest files beyond `keep`, but never the `current` one.
fn remove_oldest(series: &FileSeries, keep: usize, current: &Path) -> io::Result<()> {
    let files = series.oldest_first()?;
    let excess = files.len().saturating_sub(keep.max(1));
    let mut others = files.iter().filter(|path| *path != current);
    others.by_ref().take(excess).try_for_each(fs::remove_file)
}

#[cfg(test)]
mod tests;
