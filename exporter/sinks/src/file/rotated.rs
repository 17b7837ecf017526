//! Rotated files: compressed in the background when their records are acknowledged, and removed beyond the
//! limit.

use std::{
    fs::{self, File, TryLockError},
    io::{self, Write},
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    thread,
};

use flate2::{Compression, write::GzEncoder};

use super::{
    config::{FileCompression, FileRotation},
    identity::FileIdentity,
};
use crate::file_series::FileSeries;

/// The rotated files of one output, to compress or to remove.
///
/// The files are listed at construction. A file that is rotated afterwards has unacknowledged records.
pub(super) struct RotatedFiles {
    removed: Vec<PathBuf>,
    compressed: Vec<PathBuf>,
    compression: FileCompression,
}

/// Processes rotated files on its own thread. A large file takes seconds, and records continue to arrive.
#[derive(Clone, Default)]
pub(super) struct RotatedFileWorker(Arc<Mutex<RotationState>>);

#[derive(Default)]
struct RotationState {
    /// The next files to process.
    next: Option<RotatedFiles>,
    is_running: bool,
    fault: Option<RotatedFileError>,
}

/// The reason why a rotated file is not removed or compressed.
#[derive(Debug, thiserror::Error)]
pub(super) enum RotatedFileError {
    #[error(
        "cannot {action} the rotated file {}: {source}; it is tried again after the next rotation", path.display()
    )]
    Process {
        action: &'static str,
        path: PathBuf,
        source: io::Error,
    },
    #[error("cannot start a thread for rotated files: {0}")]
    Thread(#[source] io::Error),
}

impl RotatedFileWorker {
    /// Processes `files` soon. It replaces a list that has not started, because a later list contains the
    /// files of an earlier one.
    pub(super) fn start(&self, files: Result<RotatedFiles, RotatedFileError>) {
        let mut state = self.lock();
        match files {
            Ok(files) if files.removed.is_empty() && files.compressed.is_empty() => return,
            Ok(files) => state.next = Some(files),
            Err(fault) => {
                state.fault = Some(fault);
                return;
            }
        }
        if state.is_running {
            return;
        }
        let this = self.clone();
        let started = thread::Builder::new()
            .name("rotated files".to_owned())
            .spawn(move || this.run());
        match started {
            Ok(_) => state.is_running = true,
            Err(error) => state.fault = Some(RotatedFileError::Thread(error)),
        }
    }

    /// Removes and returns the last error.
    pub(super) fn take_fault(&self) -> Option<RotatedFileError> {
        self.lock().fault.take()
    }

    fn run(&self) {
        while let Some(files) = self.next() {
            if let Err(fault) = files.process_rotated() {
                self.lock().fault = Some(fault);
            }
        }
    }

    fn next(&self) -> Option<RotatedFiles> {
        let mut state = self.lock();
        let next = state.next.take();
        state.is_running = next.is_some();
        next
    }

    fn lock(&self) -> MutexGuard<'_, RotationState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl RotatedFiles {
    /// Lists the oldest files beyond the limit, and those to compress. Files in `unacked` stay, because a
    /// restart may truncate them.
    ///
    /// # Errors
    /// A folder that cannot be listed.
    pub(super) fn list(
        series: &FileSeries,
        rotation: &FileRotation,
        unacked: &[FileIdentity],
    ) -> Result<Self, RotatedFileError> {
        let mut removed = series
            .oldest_first()
            .map_err(|source| failed("list", series.folder(), source))?;
        let kept = match rotation.keep {
            0 => std::mem::take(&mut removed),
            keep => removed.split_off(removed.len().saturating_sub(keep)),
        };
        let is_left = |path: &PathBuf| {
            let is_acked = || matches!(FileIdentity::at(path), Ok(Some(file)) if !unacked.contains(&file));
            rotation.compression != FileCompression::None && !is_compressed(path) && is_acked()
        };
        Ok(Self {
            removed,
            compressed: kept.into_iter().filter(is_left).collect(),
            compression: rotation.compression,
        })
    }

    /// Removes and compresses the files.
    ///
    /// # Errors
    /// The file that cannot be removed or compressed, and why. It stays and is processed after the next
    /// rotation.
    fn process_rotated(&self) -> Result<(), RotatedFileError> {
        for path in &self.removed {
            match fs::remove_file(path) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                removed => removed.map_err(|source| failed("remove", path, source))?,
            }
        }
        for path in &self.compressed {
            match self.compress(path) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                compressed => compressed.map_err(|source| failed("compress", path, source))?,
            }
        }
        Ok(())
    }

    fn compress(&self, path: &Path) -> io::Result<()> {
        let Some(ending) = self.compression.ending() else {
            return Ok(());
        };
        let mut file = File::open(path)?;
        let compressed = with_ending(path, ending);
        // After a kill, this file is written again from the start.
        let partial = with_ending(&compressed, ".partial");
        let mut target = File::options()
            .write(true)
            .create(true)
            .truncate(false)
            .open(&partial)?;
        if matches!(target.try_lock(), Err(TryLockError::WouldBlock)) {
            // The sink from before a reload still compresses it.
            return Ok(());
        }
        target.set_len(0)?;
        target.set_permissions(file.metadata()?.permissions())?;
        let done = match self.compression {
            FileCompression::Gzip => gzip(&mut file, &mut target),
            _ => zstd::stream::copy_encode(&mut file, &mut target, 0),
        };
        let done = done.and_then(|()| target.sync_all());
        if let Err(error) = done.and_then(|()| fs::rename(&partial, &compressed)) {
            // The disk may be full.
            let _ = fs::remove_file(partial);
            return Err(error);
        }
        fs::remove_file(path)
    }
}

fn is_compressed(path: &Path) -> bool {
    let name = path.as_os_str().as_encoded_bytes();
    (FileCompression::ENDINGS.iter()).any(|ending| name.ends_with(ending.as_bytes()))
}

fn gzip(file: &mut File, target: &mut File) -> io::Result<()> {
    let mut encoder = GzEncoder::new(target, Compression::default());
    io::copy(file, &mut encoder)?;
    encoder.finish()?.flush()
}

fn with_ending(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(ending);
    name.into()
}

fn failed(action: &'static str, path: &Path, source: io::Error) -> RotatedFileError {
    RotatedFileError::Process {
        action,
        path: path.to_owned(),
        source,
    }
}
