//! How far everything is read and delivered, in an order that a restart can rely on.
//!
//! What is read goes through the door in one order, for all files together, and each flush is an entry in that order. An
//! entry counts when every sink is done with its batches and with all before it. So the positions that are written are
//! those of one moment, and the number of the first entry that does not count says what is read again: the receipts of its
//! batches have that number. An output that holds nothing of it and of later ones holds exactly what the positions cover.

mod outputs;

use std::{
    collections::{BTreeMap, HashSet, VecDeque},
    fmt,
    fs::{self, File, TryLockError},
    io,
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
};

use pulsetrain_pipeline::{Batch, Door, PipelineError, Receipt, Reservation, Settlement};

pub use self::outputs::OutputStart;
use self::outputs::OutputSync;
use super::{
    identity::FileIdentity,
    notice::PositionsNotice,
    saved::{self, FilePosition, Saved},
};
use crate::TailError;

/// How many files that were read to their end are remembered.
const FINISHED_LIMIT: usize = 1000;

/// The positions of everything that is followed; a clone is the same ones.
///
/// In a folder they outlive the program: opened again, they say where to go on. A position is written only when every sink
/// has delivered what was read up to it, or dropped and counted it. From an output file that is to hold every item once must
/// be cut, when the program begins, what it holds of receipts that are not [`settled`](Self::settled). An OTLP receiver that was sent items after
/// the last written position is sent them again, with the same ids, times and values.
#[derive(Clone)]
pub struct Positions(Arc<Shared>);

struct Shared {
    folder: Option<Folder>,
    /// Locked while an entry is made and its batches go through the door, so that both have the same order.
    order: Mutex<()>,
    table: Mutex<Table>,
    saving: Mutex<()>,
    /// Whether the positions could not be written the last time.
    is_failing: AtomicBool,
}

struct Folder {
    path: PathBuf,
    notice: Option<PositionsNotice>,
    /// Locked as long as it is open.
    lock: Mutex<File>,
}

#[derive(Default)]
struct Table {
    saved: Saved,
    is_changed: bool,
    /// The first entry that does not count by what was written last, and by what was written before that: where the last
    /// is lost, that before counts.
    written: [u64; 2],
    /// Outputs whose journals lack notes, and why.
    behind: BTreeMap<String, io::Error>,
    /// Outputs that this program has opened.
    opened_outputs: HashSet<String>,
    /// Outputs that are synced before positions are written.
    syncs: BTreeMap<String, OutputSync>,
    /// Entries that do not count yet, the first with this number.
    entries: VecDeque<Entry>,
    first: u64,
    unsettled_bytes: usize,
    /// The pipeline came to its end before a batch was delivered: nothing after it counts.
    is_cut_off: bool,
}

struct Entry {
    bytes: usize,
    update: Option<Update>,
    settlement: Option<Settlement>,
}

/// What becomes true when an entry counts.
#[derive(Clone, Debug)]
pub(super) enum Update {
    /// A file is read so far.
    Read(PathBuf, Box<FilePosition>),
    /// A file was read to its end, and its name may belong to another one.
    Finished(PathBuf, Box<FilePosition>),
}

impl Folder {
    /// Locks a folder that was deleted while it was in use: the lock was on the deleted file.
    fn lock_again_if_deleted(&self) -> Result<(), TailError> {
        let mut lock = lock(&self.lock);
        if is_deleted(&lock) {
            *lock = lock_folder(&self.path)?;
        }
        Ok(())
    }
}

/// Locks a folder, and creates it where it is missing.
fn lock_folder(folder: &Path) -> Result<File, TailError> {
    let error = |source| TailError::positions(folder, source);
    fs::create_dir_all(folder).map_err(error)?;
    let lock = File::create(folder.join("lock")).map_err(error)?;
    match lock.try_lock() {
        Ok(()) => Ok(lock),
        Err(TryLockError::WouldBlock) => Err(TailError::PositionsInUse {
            folder: folder.to_owned(),
        }),
        Err(TryLockError::Error(source)) => Err(error(source)),
    }
}

/// Whether an open file was deleted. Elsewhere than on Unix an open file cannot be.
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

impl Positions {
    /// Positions that end with the program.
    pub fn in_memory() -> Self {
        Self::new(None, Saved::default())
    }

    /// Opens the positions in a folder, which is made where it is missing.
    ///
    /// # Errors
    /// [`TailError::Positions`] where the folder cannot be used, [`TailError::PositionsInUse`] where another program
    /// uses it.
    pub fn open(folder: &Path) -> Result<Self, TailError> {
        let lock = lock_folder(folder)?;
        let (saved, notice) = saved::load(folder)?;
        let folder = Folder {
            path: folder.to_owned(),
            notice,
            lock: Mutex::new(lock),
        };
        Ok(Self::new(Some(folder), saved))
    }

    fn new(folder: Option<Folder>, saved: Saved) -> Self {
        Self(Arc::new(Shared {
            folder,
            order: Mutex::default(),
            table: Mutex::new(Table {
                written: [saved.entries; 2],
                first: saved.entries,
                saved,
                ..Table::default()
            }),
            saving: Mutex::default(),
            is_failing: AtomicBool::default(),
        }))
    }

    /// What is to be told of positions that made no sense.
    pub fn notice(&self) -> Option<&PositionsNotice> {
        self.0.folder.as_ref()?.notice.as_ref()
    }

    /// Writes what counts by now, where there is a folder, after the outputs are on the disk. Called last when the pipeline is drained: what a sink took in
    /// the drain counts too.
    ///
    /// # Errors
    /// [`TailError::Positions`] where it, or the journal of an output, cannot be written, or an output cannot be synced; what
    /// was written before is still whole. [`TailError::PositionsInUse`] where another program uses the folder after it was
    /// deleted.
    pub fn save(&self) -> Result<(), TailError> {
        let Some(folder) = &self.0.folder else {
            return Ok(());
        };
        let _saving = lock(&self.0.saving);
        let saved = {
            let mut table = lock(&self.0.table);
            if !table.is_changed {
                return Ok(());
            }
            if let Some(error) = table.behind.values().next() {
                return Err(TailError::positions(&folder.path, outputs::same(error)));
            }
            table.is_changed = false;
            table.saved.clone()
        };
        if let Err(error) = folder.lock_again_if_deleted() {
            lock(&self.0.table).is_changed = true;
            return Err(error);
        }
        // What is synced now includes everything that these positions cover.
        let synced = self.sync_outputs();
        let stored = synced.and_then(|()| saved::store(&folder.path, &saved));
        let mut table = lock(&self.0.table);
        match stored {
            Ok(()) => table.written = [saved.entries, table.written[0]],
            Err(_) => table.is_changed = true,
        }
        stored.map_err(|source| TailError::positions(&folder.path, source))
    }

    /// As [`save`](Self::save), for whoever does so again and again: trouble that goes on is told once, to one of them.
    pub(super) fn keep_saved(&self) -> Result<(), TailError> {
        let saved = self.save();
        let was_failing = self.0.is_failing.swap(saved.is_err(), Ordering::Relaxed);
        if was_failing { Ok(()) } else { saved }
    }

    /// How far a path was read: what is on its way counts for a follower that takes over from another one in the same
    /// program, but nothing of it for the next program.
    pub(super) fn of(&self, path: &Path) -> Option<FilePosition> {
        let table = lock(&self.0.table);
        let on_its_way = table
            .entries
            .iter()
            .rev()
            .find_map(|entry| entry.position_of(path));
        on_its_way.or_else(|| table.saved.files.get(path)).cloned()
    }

    /// The position in the file of a run that was written last, of those that are read or on their way.
    pub(super) fn newest_of_run(&self, format: &str, run: &str, attempt: i64) -> Option<FilePosition> {
        let table = lock(&self.0.table);
        let on_their_way = table.entries.iter().filter_map(|entry| match &entry.update {
            Some(Update::Read(_, position)) => Some(&**position),
            _ => None,
        });
        let of_run = |position: &&FilePosition| {
            position.format == format && position.run.id == run && position.run.attempt == attempt
        };
        let read = table.saved.files.values().chain(on_their_way).filter(of_run);
        read.max_by_key(|position| position.modified_unix_nanos).cloned()
    }

    /// Whether a file was read to its end before, under whatever name. What is still on its way was read too.
    pub(super) fn is_finished(&self, file: &File) -> io::Result<bool> {
        let finished = lock(&self.0.table).finished();
        for identity in finished {
            if identity.is_of(file)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// How many bytes are on their way to the sinks, and in how many flushes.
    pub(super) fn unsettled(&self) -> (usize, usize) {
        let table = lock(&self.0.table);
        (table.unsettled_bytes, table.entries.len())
    }

    /// Sends batches with the room that is reserved for them; when they and all before them are settled, the update counts.
    pub(super) fn send(
        &self,
        door: &Door,
        batches: Vec<Batch>,
        mut reserved: Reservation,
        update: Option<Update>,
    ) -> Result<(), PipelineError> {
        if batches.is_empty() && update.is_none() {
            return Ok(());
        }
        let _order = lock(&self.0.order);
        let bytes = batches.iter().map(|batch| batch.bytes().len()).sum();
        let number = lock(&self.0.table).enter(bytes, update);
        let shared = Arc::clone(&self.0);
        let receipt = Receipt::new(move |settlement| lock(&shared.table).settle(number, settlement));
        let receipt = Arc::new(receipt.numbered(number));
        let sent = batches
            .into_iter()
            .map(|batch| door.send_reserved(batch.with_receipt(Arc::clone(&receipt)), &mut reserved));
        // All are sent, so that all are counted.
        sent.fold(Ok(()), Result::and)
    }
}

impl fmt::Debug for Positions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let folder = self.0.folder.as_ref().map(|folder| &folder.path);
        f.debug_struct("Positions")
            .field("folder", &folder)
            .finish_non_exhaustive()
    }
}

impl Entry {
    fn position_of(&self, path: &Path) -> Option<&FilePosition> {
        match &self.update {
            Some(Update::Read(of, position) | Update::Finished(of, position)) if of == path => Some(position),
            _ => None,
        }
    }
}

impl Table {
    fn finished(&self) -> Vec<FileIdentity> {
        let on_the_way = self.entries.iter().filter_map(|entry| match &entry.update {
            Some(Update::Finished(_, position)) => Some(&position.identity),
            _ => None,
        });
        let on_the_way = on_the_way.filter(|identity| identity.has_bytes());
        self.saved.finished.iter().chain(on_the_way).cloned().collect()
    }

    fn enter(&mut self, bytes: usize, update: Option<Update>) -> u64 {
        self.unsettled_bytes += bytes;
        self.entries.push_back(Entry {
            bytes,
            update,
            settlement: None,
        });
        self.first + self.entries.len() as u64 - 1
    }

    /// Notes how an entry ended, and lets count what follows from it.
    fn settle(&mut self, number: u64, settlement: Settlement) {
        let entry = usize::try_from(number - self.first)
            .ok()
            .and_then(|place| self.entries.get_mut(place));
        let Some(entry) = entry else { return };
        entry.settlement = Some(settlement);
        self.unsettled_bytes -= entry.bytes;
        while let Some(settlement) = self.entries.front_mut().and_then(|entry| entry.settlement.take()) {
            let entry = self
                .entries
                .pop_front()
                .expect("invariant: it was there to be looked at");
            self.first += 1;
            self.is_cut_off |= settlement.is_cut_off;
            if !self.is_cut_off {
                self.count(entry.update);
            }
        }
    }

    fn count(&mut self, update: Option<Update>) {
        self.is_changed = true;
        self.saved.entries = self.first;
        match update {
            None => {}
            Some(Update::Read(path, position)) => {
                self.saved.files.insert(path, *position);
            }
            Some(Update::Finished(path, position)) => {
                self.saved
                    .finished
                    .extend(Some(position.identity).filter(FileIdentity::has_bytes));
                self.saved.files.insert(path, *position);
                let excess = self.saved.finished.len().saturating_sub(FINISHED_LIMIT);
                self.saved.finished.drain(..excess);
            }
        }
    }
}

/// Locks; numbers and positions stay true even if something panicked meanwhile.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
