//! Perfetto traces in files that follow each other: one while there is room in it, then the next.
//!
//! What one file shows is held in memory until it is full. The file on the disk is rewritten every so often under another name
//! and put in place by a rename, so that it can be opened at any moment, and after a kill is as it was a few seconds before.

use std::{
    fs::{self, File},
    io,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use pulsetrain_convert::{PerfettoConfig, PerfettoError};
use pulsetrain_pipeline::{
    Batch, BoxFuture, CancellationToken, Delivery, Sink,
    clock::{self, Instant},
};
use tokio::{task::JoinError, time};

use super::{batch_ring::BatchRing, replace::replace, trace_series};
use crate::{SinkError, file_series::FileSeries};

/// Writing may take this share of the time, so that large files are rewritten less often.
const SHARE: u32 = 10;

/// Where the files are and how large they become.
#[derive(Clone, Debug, PartialEq)]
pub struct PerfettoFilesConfig {
    /// A path that ends in `.pftrace`; every file has the time of its begin before the ending.
    pub path: PathBuf,
    /// How many bytes of telemetry one file shows, which are held in memory; then the next file begins.
    pub bytes: usize,
    /// How long one file is written to.
    pub age: Duration,
    /// How many files are kept, the one that is written included.
    pub keep: usize,
    /// How often the file on the disk catches up.
    pub flush_every: Duration,
    /// What a file shows.
    pub perfetto: PerfettoConfig,
}

impl PerfettoFilesConfig {
    /// Whether the settings make sense, without touching the world.
    ///
    /// # Errors
    ///
    /// A path that does not end in `.pftrace`.
    pub fn check(&self) -> Result<(), SinkError> {
        trace_series(&self.path).map(drop)
    }
}

/// The sink that fills the files.
#[derive(Debug)]
pub struct PerfettoFilesSink {
    name: String,
    shared: Arc<Shared>,
}

/// What writes the files as time goes by.
#[derive(Debug)]
pub struct PerfettoFiles {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    config: PerfettoFilesConfig,
    state: Mutex<State>,
    /// One write at a time, in order.
    writing: tokio::sync::Mutex<()>,
}

#[derive(Debug)]
struct State {
    ring: BatchRing,
    series: FileSeries,
    /// The file that is written, with when it began; none before its first batch.
    file: Option<(PathBuf, Instant)>,
    /// Whether the disk lacks something.
    is_behind: bool,
    /// Why the disk could not be written, until the next delivery reports it.
    fault: Option<String>,
}

impl PerfettoFilesSink {
    /// Opens the folder of the files, which is made where it is not there; returns the sink, and what has to run beside it.
    ///
    /// # Errors
    ///
    /// A path that does not end in `.pftrace`, a folder that cannot be made or written.
    pub fn open(config: PerfettoFilesConfig) -> Result<(Self, PerfettoFiles), SinkError> {
        let series = trace_series(&config.path)?;
        let usable = fs::create_dir_all(series.folder()).and_then(|()| tempfile_in(series.folder()));
        usable.map_err(|source| SinkError::OpenFile {
            path: series.folder().to_owned(),
            advice: "name a folder that this user may write",
            source,
        })?;
        let shared = Arc::new(Shared {
            state: Mutex::new(State {
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

/// Whether a folder can be written, found out by writing.
fn tempfile_in(folder: &Path) -> io::Result<()> {
    let probe = folder.join(format!(".pulsetrain-{}", std::process::id()));
    File::create(&probe)?;
    fs::remove_file(probe)
}

impl PerfettoFiles {
    /// Writes until it is stopped; what is held then is written by the sink's end.
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

    fn finish(&mut self) -> BoxFuture<'_, Result<(), String>> {
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
            let message = self.lock().fault.take().unwrap_or_default();
            return Delivery::Retry {
                after: Some(self.config.flush_every),
                message,
            };
        }
        if let Err(error) = self.name_file().await {
            return Delivery::Retry {
                after: Some(self.config.flush_every),
                message: error.to_string(),
            };
        }
        let mut state = self.lock();
        state.ring.push(batch, clock::now());
        state.is_behind = true;
        match state.fault.take() {
            // The batch is kept; the disk may take it later.
            Some(message) => Delivery::Partial { rejected: 0, message },
            None => Delivery::Delivered,
        }
    }

    /// Gives the file of the batches that follow a name that no other file has. A folder that hangs delays no other sink.
    async fn name_file(&self) -> Result<(), JoinError> {
        if self.lock().file.is_some() {
            return Ok(());
        }
        let series = self.lock().series.clone();
        let path = tokio::task::spawn_blocking(move || series.next(clock::unix_now())).await?;
        let mut state = self.lock();
        state.series.note_created(&path);
        state.file = Some((path, clock::now()));
        Ok(())
    }

    /// Whether the file has no room or no time for another batch.
    fn is_full(&self, batch: &Batch) -> bool {
        let state = self.lock();
        let Some((_, began)) = &state.file else {
            return false;
        };
        let is_old = clock::now() - *began >= self.config.age;
        let has_no_room = state.ring.bytes() + BatchRing::size_of(batch) > self.config.bytes;
        !state.ring.is_empty() && (is_old || has_no_room)
    }

    /// Writes the file to its end and lets go of what it shows; false where the disk does not take it.
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

    /// Brings the file on the disk up to date. What goes wrong is kept for the next delivery to report.
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
            state.fault = Some(format!(
                "cannot write a trace beside {}: {error}; what it shows is held in memory and tried again",
                self.config.path.display()
            ));
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
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
