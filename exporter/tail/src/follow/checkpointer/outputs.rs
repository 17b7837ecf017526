//! Exactly-once outputs: which batches an output file may hold after a restart, and its sync before checkpoints are written.

use std::{io, path::PathBuf, sync::Arc};

use xxhash_rust::xxh3::xxh3_64;

use super::{Checkpointer, lock};

/// The way to open an output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpenMode {
    /// The first open in this process: batches that were not acknowledged are delivered again.
    Recover,
    /// A later open: the file keeps all that it holds.
    Append,
}

/// Waits until an output is on disk.
pub(super) type OutputSync = Arc<dyn Fn() -> io::Result<()> + Send + Sync>;

impl Checkpointer {
    /// Calls `sync` before each write of the checkpoint file, until the output is opened again. `sync` waits until everything
    /// that was delivered to the output is on disk, so that checkpoints never cover data that a power failure can take.
    pub fn sync_before_saving(
        &self,
        output: &str,
        sync: impl Fn() -> io::Result<()> + Send + Sync + 'static,
    ) {
        let mut table = lock(&self.0.table);
        table.syncs.insert(output.to_owned(), Arc::new(sync));
    }

    /// Waits until all outputs are on disk.
    ///
    /// # Errors
    /// The output, and why it cannot be synced.
    pub(super) fn sync_outputs(&self) -> io::Result<()> {
        let syncs = lock(&self.0.table).syncs.clone();
        syncs.iter().try_for_each(|(output, sync)| {
            sync().map_err(|error| {
                let message = format!("the output {output} cannot be synced to its disk: {error}");
                io::Error::new(error.kind(), message)
            })
        })
    }

    /// Returns the number of the first ack that the last but one checkpoint file does not cover. An output is truncated
    /// to the batches before it, because later ones are delivered again even if the last checkpoint file is lost.
    pub fn first_unacked(&self) -> u64 {
        lock(&self.0.table).written[1]
    }

    /// Returns the way to open an output.
    pub fn open_mode(&self, output: &str) -> OpenMode {
        match lock(&self.0.table).opened_outputs.contains(output) {
            false => OpenMode::Recover,
            true => OpenMode::Append,
        }
    }

    /// Records that an output is open.
    pub fn record_opened(&self, output: &str) {
        let mut table = lock(&self.0.table);
        table.opened_outputs.insert(output.to_owned());
    }

    /// Records why the journal of an output is incomplete, or `None` when it is complete again. While a journal is incomplete,
    /// no checkpoints are written.
    pub fn report_journal_error(&self, output: &str, error: Option<io::Error>) {
        let errors = &mut lock(&self.0.table).journal_errors;
        match error {
            Some(error) => errors.insert(output.to_owned(), error),
            None => errors.remove(output),
        };
    }

    /// Returns the path of an output's journal, or `None` if checkpoints are in memory.
    pub fn output_journal(&self, output: &str) -> Option<PathBuf> {
        self.state_file(&format!("{:016x}.journal", xxh3_64(output.as_bytes())))
    }

    /// Returns the path of a file in the state folder, or `None` if checkpoints are in memory.
    pub fn state_file(&self, name: &str) -> Option<PathBuf> {
        Some(self.0.folder.as_ref()?.path.join(name))
    }
}

/// Returns a copy of an error.
pub(super) fn copied(error: &io::Error) -> io::Error {
    let of_system = error.raw_os_error().map(io::Error::from_raw_os_error);
    of_system.unwrap_or_else(|| io::Error::new(error.kind(), error.to_string()))
}
