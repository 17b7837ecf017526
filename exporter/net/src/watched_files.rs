//! A value that is read from files, and reloaded when one of the files changes.

use std::{
    fs, io,
    os::unix::fs::MetadataExt,
    path::PathBuf,
    sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock},
};

use crate::NetError;

/// The value, and the files that it is read from.
pub(crate) struct WatchedFiles<T, E = NetError> {
    paths: Vec<PathBuf>,
    read: Box<Read<T, E>>,
    current: RwLock<Arc<T>>,
    state: Mutex<WatchState>,
}

type Read<T, E> = dyn Fn() -> Result<T, E> + Send + Sync;

#[derive(Debug)]
struct WatchState {
    stamps: Vec<Option<Stamp>>,
    /// The number of consecutive reloads that failed.
    failures: u32,
    /// The error of the last reload.
    error: Option<String>,
}

/// An error that describes itself with its remedy.
pub(crate) trait Described {
    /// Returns the cause and the remedy.
    fn described(&self) -> String;
}

impl Described for NetError {
    fn described(&self) -> String {
        format!("{self}; {}", self.remedy())
    }
}

impl Described for io::Error {
    fn described(&self) -> String {
        self.to_string()
    }
}

/// The metadata of a file that changes when the file is written, replaced, or renamed over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stamp {
    inode: u64,
    bytes: u64,
    modified: (i64, i64),
}

/// The number of consecutive failures at which a file is reported. A certificate and its key are replaced one after the
/// other, so the first failure can be transient.
const REPORTED_FAILURE: u32 = 2;

impl<T, E: Described> WatchedFiles<T, E> {
    /// Reads the value with `read`, which opens `paths`.
    ///
    /// # Errors
    /// The error of `read`.
    pub(crate) fn open(
        paths: Vec<PathBuf>,
        read: impl Fn() -> Result<T, E> + Send + Sync + 'static,
    ) -> Result<Self, E> {
        // The stamps are taken before the files are read, so that a write during the read causes another reload.
        let stamps = stamps(&paths);
        let current = read()?;
        Ok(Self {
            paths,
            read: Box::new(read),
            current: RwLock::new(Arc::new(current)),
            state: Mutex::new(WatchState {
                stamps,
                failures: 0,
                error: None,
            }),
        })
    }

    /// Returns the value of the last successful read.
    pub(crate) fn current(&self) -> Arc<T> {
        Arc::clone(&self.current.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Reloads the value if one of the files changed. If the reload fails, the last value remains in use.
    ///
    /// Blocks on the disk. Returns the message for the operator, or `None` if there is nothing new.
    pub(crate) fn refresh(&self) -> Option<String> {
        let mut state = self.state();
        let stamps = stamps(&self.paths);
        if stamps == state.stamps && state.failures == 0 {
            return None;
        }
        state.stamps = stamps;
        match (self.read)() {
            Ok(value) => {
                *self.current.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(value);
                state.failures = 0;
                state.error = None;
                Some(format!("read {} again, which changed", self.names()))
            }
            Err(error) => {
                state.failures = state.failures.saturating_add(1);
                let message = error.described();
                state.error = Some(message.clone());
                (state.failures == REPORTED_FAILURE)
                    .then(|| format!("{message}. The content before the change remains in use"))
            }
        }
    }

    fn state(&self) -> MutexGuard<'_, WatchState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the paths, for messages.
    pub(crate) fn names(&self) -> String {
        let names = self.paths.iter().map(|path| path.display().to_string());
        names.collect::<Vec<_>>().join(", ")
    }
}

#[cfg(feature = "client")]
impl<T, E: Described> WatchedFiles<T, E> {
    /// Returns whether there are files to read.
    pub(crate) fn has_files(&self) -> bool {
        !self.paths.is_empty()
    }

    /// Returns the error of the last reload.
    pub(crate) fn error(&self) -> Option<String> {
        self.state().error.clone()
    }

    /// Makes the next [`refresh`](Self::refresh) read the files even if they have not changed.
    pub(crate) fn invalidate(&self) {
        self.state().stamps.clear();
    }
}

/// Returns the stamp of each file, or `None` for a file that does not exist.
fn stamps(paths: &[PathBuf]) -> Vec<Option<Stamp>> {
    let stamp = |path: &PathBuf| {
        let file = fs::metadata(path).ok()?;
        Some(Stamp {
            inode: file.ino(),
            bytes: file.len(),
            modified: (file.mtime(), file.mtime_nsec()),
        })
    };
    paths.iter().map(stamp).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn number(path: &PathBuf) -> Result<u32, NetError> {
        let text = fs::read_to_string(path).unwrap_or_default();
        text.parse().map_err(|_| NetError::Credentials {
            path: path.clone(),
            content: "number",
            problem: format!("{text:?} is not a number"),
        })
    }

    #[test]
    fn changed_files_are_reloaded_and_invalid_ones_are_reported_once() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("number");
        fs::write(&path, "1").unwrap();
        let file = path.clone();
        let watched = WatchedFiles::open(vec![path.clone()], move || number(&file)).unwrap();
        assert_eq!((*watched.current(), watched.refresh()), (1, None));
        fs::write(&path, "22").unwrap();
        assert!(watched.refresh().unwrap().contains("number again"));
        assert_eq!((*watched.current(), watched.refresh()), (22, None));
        fs::write(&path, "no").unwrap();
        let reported: Vec<_> = (0..4).filter_map(|_| watched.refresh()).collect();
        assert_eq!(reported.len(), 1, "{reported:?}");
        assert!(reported[0].contains("\"no\" is not a number"), "{reported:?}");
        assert_eq!(*watched.current(), 22);
        fs::remove_file(&path).unwrap();
        assert_eq!((watched.refresh(), *watched.current()), (None, 22));
        fs::write(&path, "333").unwrap();
        assert!(watched.refresh().is_some());
        assert_eq!(*watched.current(), 333);
    }
}
