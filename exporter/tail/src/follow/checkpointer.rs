//! Checkpoints of all followed files, in an order that a restart can rely on.
//!
//! All files send their batches in one order, and each group of flushes is a numbered entry in it. An entry is acknowledged when every
//! sink has acknowledged its batches and those of all entries before it. Checkpoints are therefore consistent with each other, and
//! the number of the first unacknowledged entry determines which batches are sent again: their acks carry that number. An output
//! without batches of that number and above holds exactly the data before the checkpoints.

mod outputs;

use std::{
    collections::{BTreeMap, HashSet, VecDeque},
    fmt,
    fs::{File, TryLockError},
    io,
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
};

use pulsetrain_pipeline::{Ack, AckOutcome, Batch, Ingress, PipelineError, Reservation, private_files};

pub use self::outputs::OpenMode;
use self::outputs::OutputSync;
use super::{
    checkpoint_notice::CheckpointNotice,
    checkpoint_store::{self, CheckpointFile, FileCheckpoint},
    identity::FileIdentity,
};
use crate::TailError;

/// The number of files that are remembered as read to their end.
const FINISHED_LIMIT: usize = 1000;

/// The checkpoints of all followed files. Clones share them.
///
/// In a state folder, checkpoints survive a restart. A checkpoint is written only after every sink has delivered the batches
/// before it, or has dropped and counted them. On start, an exactly-once output file is truncated to the last acknowledged
/// batch ([`first_unacked`](Self::first_unacked)). An OTLP receiver may get items after the last checkpoint twice, with the
/// same ids, times and values.
#[derive(Clone)]
pub struct Checkpointer(Arc<Shared>);

struct Shared {
    folder: Option<StateFolder>,
    /// Locked while an entry is added and its batches are sent, so that both have the same order.
    order: Mutex<()>,
    table: Mutex<Table>,
    saving: Mutex<()>,
    /// Whether the last write of the checkpoint file failed.
    is_failing: AtomicBool,
}

struct StateFolder {
    path: PathBuf,
    notice: Option<CheckpointNotice>,
    /// The lock file, which is locked as long as it is open.
    lock: Mutex<File>,
}

#[derive(Default)]
struct Table {
    acked: CheckpointFile,
    is_changed: bool,
    /// The first unacknowledged entry of the last written checkpoint file and of the one before it, which replaces a lost
    /// last one.
    written: [u64; 2],
    /// Outputs with an incomplete journal, and why.
    journal_errors: BTreeMap<String, io::Error>,
    /// Outputs that this process has opened.
    opened_outputs: HashSet<String>,
    /// Outputs that are synced before checkpoints are written.
    syncs: BTreeMap<String, OutputSync>,
    /// Unacknowledged entries.
    entries: VecDeque<Entry>,
    /// The number of the first unacknowledged entry.
    first_unacked: u64,
    in_flight_bytes: usize,
    /// Whether the pipeline ended before a batch was delivered: no later entry is acknowledged.
    is_cut_off: bool,
}

struct Entry {
    bytes: usize,
    updates: Vec<CheckpointUpdate>,
    outcome: Option<AckOutcome>,
}

/// The change of a checkpoint when an entry is acknowledged.
#[derive(Clone, Debug)]
pub(super) enum CheckpointUpdate {
    /// A file is read up to this checkpoint.
    Read(PathBuf, Box<FileCheckpoint>),
    /// A file was read to its end, and its name may belong to another file.
    Finished(PathBuf, Box<FileCheckpoint>),
}

impl StateFolder {
    /// Locks the folder again if its lock file was deleted.
    fn lock_again_if_deleted(&self) -> Result<(), TailError> {
        let mut lock = lock(&self.lock);
        if is_deleted(&lock) {
            *lock = lock_folder(&self.path)?;
        }
        Ok(())
    }
}

/// Locks a folder, and creates it if it is missing.
fn lock_folder(folder: &Path) -> Result<File, TailError> {
    let error = |source| TailError::checkpoints(folder, source);
    private_files::create_folder(folder).map_err(error)?;
    let lock = private_files::create_file(&folder.join("lock")).map_err(error)?;
    match lock.try_lock() {
        Ok(()) => Ok(lock),
        Err(TryLockError::WouldBlock) => Err(TailError::StateFolderInUse {
            folder: folder.to_owned(),
        }),
        Err(TryLockError::Error(source)) => Err(error(source)),
    }
}

/// Returns whether an open file was deleted, which only Unix allows.
fn is_deleted(file: &File) -> bool {
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt;
        file.metadata().is_ok_and(|file| file.nlink() == 0)
    }
    #[cfg(not(unix))]
    {
        let _ = file;
        false
    }
}

impl Checkpointer {
    /// Keeps checkpoints in memory.
    pub fn in_memory() -> Self {
        Self::new(None, CheckpointFile::default())
    }

    /// Opens the checkpoints in a folder, which is created if it is missing.
    ///
    /// # Errors
    /// [`TailError::Checkpoints`] if the folder cannot be used, [`TailError::StateFolderInUse`] if another process uses it.
    pub fn open(folder: &Path) -> Result<Self, TailError> {
        let lock = lock_folder(folder)?;
        let (acked, notice) = checkpoint_store::load(folder)?;
        let folder = StateFolder {
            path: folder.to_owned(),
            notice,
            lock: Mutex::new(lock),
        };
        Ok(Self::new(Some(folder), acked))
    }

    fn new(folder: Option<StateFolder>, acked: CheckpointFile) -> Self {
        Self(Arc::new(Shared {
            folder,
            order: Mutex::default(),
            table: Mutex::new(Table {
                written: [acked.first_unacked; 2],
                first_unacked: acked.first_unacked,
                acked,
                ..Table::default()
            }),
            saving: Mutex::default(),
            is_failing: AtomicBool::default(),
        }))
    }

    /// Returns the notice about a checkpoint file that could not be parsed, or `None`.
    pub fn notice(&self) -> Option<&CheckpointNotice> {
        self.0.folder.as_ref()?.notice.as_ref()
    }

    /// Syncs the outputs and writes the acknowledged checkpoints to the state folder, if there is one. The last call follows
    /// the drain of the pipeline, so that batches that are delivered in the drain are covered.
    ///
    /// # Errors
    /// [`TailError::Checkpoints`] if the checkpoint file or the journal of an output cannot be written, or an output cannot be
    /// synced. The previous checkpoint file is intact. [`TailError::StateFolderInUse`] if the folder was deleted and another
    /// process uses it now.
    pub fn save(&self) -> Result<(), TailError> {
        let Some(folder) = &self.0.folder else {
            return Ok(());
        };
        let _saving = lock(&self.0.saving);
        let acked = {
            let mut table = lock(&self.0.table);
            if !table.is_changed {
                return Ok(());
            }
            if let Some(error) = table.journal_errors.values().next() {
                return Err(TailError::checkpoints(&folder.path, outputs::copied(error)));
            }
            table.is_changed = false;
            table.acked.clone()
        };
        if let Err(error) = folder.lock_again_if_deleted() {
            lock(&self.0.table).is_changed = true;
            return Err(error);
        }
        // The sync covers everything before these checkpoints.
        let synced = self.sync_outputs();
        let stored = synced.and_then(|()| checkpoint_store::store(&folder.path, &acked));
        let mut table = lock(&self.0.table);
        match stored {
            Ok(()) => table.written = [acked.first_unacked, table.written[0]],
            Err(_) => table.is_changed = true,
        }
        stored.map_err(|source| TailError::checkpoints(&folder.path, source))
    }

    /// Returns whether [`save`](Self::save) would write checkpoints.
    pub(super) fn is_changed(&self) -> bool {
        self.0.folder.is_some() && lock(&self.0.table).is_changed
    }

    /// Does the same as [`save`](Self::save), but returns a persistent error to one caller only.
    pub(super) fn save_reporting_once(&self) -> Result<(), TailError> {
        let saved = self.save();
        let was_failing = self.0.is_failing.swap(saved.is_err(), Ordering::Relaxed);
        if was_failing { Ok(()) } else { saved }
    }

    /// Returns the checkpoint of a path, or `None` for a new file. Checkpoints in flight count for a follower that takes over
    /// within the process, and not after a restart.
    pub(super) fn checkpoint_of(&self, path: &Path) -> Option<FileCheckpoint> {
        let table = lock(&self.0.table);
        let in_flight = table
            .updates()
            .rev()
            .find_map(|update| update.checkpoint_of(path));
        in_flight.or_else(|| table.acked.files.get(path)).cloned()
    }

    /// Returns the checkpoint of the run's file with the latest modification time, in flight or acknowledged. Of files with equal
    /// times, the one that is read furthest has the longest history.
    pub(super) fn newest_of_run(&self, format: &str, run: &str, attempt: i64) -> Option<FileCheckpoint> {
        let table = lock(&self.0.table);
        let in_flight = table.updates().filter_map(|update| match update {
            CheckpointUpdate::Read(_, checkpoint) => Some(&**checkpoint),
            CheckpointUpdate::Finished(..) => None,
        });
        let of_run = |checkpoint: &&FileCheckpoint| {
            checkpoint.format == format && checkpoint.run.id == run && checkpoint.run.attempt == attempt
        };
        let all = table.acked.files.values().chain(in_flight).filter(of_run);
        all.max_by_key(|checkpoint| (checkpoint.modified_unix_nanos, checkpoint.offset))
            .cloned()
    }

    /// Returns whether a file was read to its end before, under any name. Checkpoints in flight count.
    pub(super) fn is_finished(&self, file: &File) -> io::Result<bool> {
        let finished = lock(&self.0.table).finished();
        for identity in finished {
            if identity.is_of(file)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Returns the number of bytes and of groups in flight.
    pub(super) fn in_flight(&self) -> (usize, usize) {
        let table = lock(&self.0.table);
        (table.in_flight_bytes, table.entries.len())
    }

    /// Sends batches with the room that is reserved for them. The updates take effect when they and all batches before them are
    /// acknowledged.
    pub(super) fn send(
        &self,
        ingress: &Ingress,
        batches: Vec<Batch>,
        mut reserved: Reservation,
        updates: Vec<CheckpointUpdate>,
    ) -> Result<(), PipelineError> {
        let _order = lock(&self.0.order);
        let bytes = batches.iter().map(|batch| batch.bytes().len()).sum();
        let number = lock(&self.0.table).push(bytes, updates);
        let shared = Arc::clone(&self.0);
        let ack = Ack::new(move |outcome| lock(&shared.table).acknowledge(number, outcome));
        let ack = Arc::new(ack.numbered(number));
        let sent = batches
            .into_iter()
            .map(|batch| ingress.send_reserved(batch.with_ack(Arc::clone(&ack)), &mut reserved));
        // All are sent, so that all are counted.
        sent.fold(Ok(()), Result::and)
    }
}

impl fmt::Debug for Checkpointer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let folder = self.0.folder.as_ref().map(|folder| &folder.path);
        f.debug_struct("Checkpointer")
            .field("folder", &folder)
            .finish_non_exhaustive()
    }
}

impl CheckpointUpdate {
    fn checkpoint_of(&self, path: &Path) -> Option<&FileCheckpoint> {
        match self {
            // Bytes, because a comparison by components is slow for thousands of files.
            Self::Read(of, checkpoint) | Self::Finished(of, checkpoint)
                if of.as_os_str() == path.as_os_str() =>
            {
                Some(checkpoint)
            }
            _ => None,
        }
    }
}

impl Table {
    fn finished(&self) -> Vec<FileIdentity> {
        let in_flight = self.updates().filter_map(|update| match update {
            CheckpointUpdate::Finished(_, checkpoint) => Some(&checkpoint.identity),
            CheckpointUpdate::Read(..) => None,
        });
        let in_flight = in_flight.filter(|identity| identity.has_bytes());
        self.acked.finished.iter().chain(in_flight).cloned().collect()
    }

    /// Returns the updates in flight, in order.
    fn updates(&self) -> impl DoubleEndedIterator<Item = &CheckpointUpdate> {
        self.entries.iter().flat_map(|entry| &entry.updates)
    }

    /// Adds an entry and returns its number.
    fn push(&mut self, bytes: usize, updates: Vec<CheckpointUpdate>) -> u64 {
        self.in_flight_bytes += bytes;
        self.entries.push_back(Entry {
            bytes,
            updates,
            outcome: None,
        });
        self.first_unacked + self.entries.len() as u64 - 1
    }

    /// Records the outcome of an entry, and applies the updates of all leading entries with an outcome.
    fn acknowledge(&mut self, number: u64, outcome: AckOutcome) {
        let entry = usize::try_from(number - self.first_unacked)
            .ok()
            .and_then(|place| self.entries.get_mut(place));
        let Some(entry) = entry else { return };
        entry.outcome = Some(outcome);
        self.in_flight_bytes -= entry.bytes;
        while let Some(outcome) = self.entries.front_mut().and_then(|entry| entry.outcome.take()) {
            let entry = self
                .entries
                .pop_front()
                .expect("invariant: the condition of the loop has read it");
            self.first_unacked += 1;
            self.is_cut_off |= outcome.is_cut_off;
            if !self.is_cut_off {
                entry.updates.into_iter().for_each(|update| self.apply(update));
            }
        }
    }

    fn apply(&mut self, update: CheckpointUpdate) {
        self.is_changed = true;
        self.acked.first_unacked = self.first_unacked;
        match update {
            CheckpointUpdate::Read(path, checkpoint) => {
                self.acked.files.insert(path, *checkpoint);
            }
            CheckpointUpdate::Finished(path, checkpoint) => {
                self.acked
                    .finished
                    .extend(Some(checkpoint.identity).filter(FileIdentity::has_bytes));
                self.acked.files.insert(path, *checkpoint);
                let excess = self.acked.finished.len().saturating_sub(FINISHED_LIMIT);
                self.acked.finished.drain(..excess);
            }
        }
    }
}

/// Locks a mutex. Its data is valid even if another thread panicked while it held the lock.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
