//! What the outputs of a program have to know of positions, so that they hold every item once.

use std::{io, path::PathBuf, sync::Arc};

use xxhash_rust::xxh3::xxh3_64;

use super::{Positions, lock};

/// How an output is to be opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OutputStart {
    /// For the first time in this program: what was not settled is delivered again.
    Recover,
    /// For another time: what is in it counts in this program, whatever is settled.
    GoOn,
}

/// Waits until an output is on the disk.
pub(super) type OutputSync = Arc<dyn Fn() -> io::Result<()> + Send + Sync>;

impl Positions {
    /// Calls `sync` before positions are written, until the output is opened again: it waits until everything that was
    /// delivered to the output is on the disk. After a power failure the positions then cover nothing that is not there.
    pub fn sync_before_saving(
        &self,
        output: &str,
        sync: impl Fn() -> io::Result<()> + Send + Sync + 'static,
    ) {
        let mut table = lock(&self.0.table);
        table.syncs.insert(output.to_owned(), Arc::new(sync));
    }

    /// Waits until all outputs are on the disk.
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

    /// The number of the first receipt that was not settled when the program began: what an output holds of it and of later
    /// ones comes again. Later those count that are settled in any case, also where the last written position is lost.
    pub fn settled(&self) -> u64 {
        lock(&self.0.table).written[1]
    }

    /// Says how an output is to be opened.
    pub fn output_start(&self, output: &str) -> OutputStart {
        match lock(&self.0.table).opened_outputs.contains(output) {
            false => OutputStart::Recover,
            true => OutputStart::GoOn,
        }
    }

    /// Notes that an output is open.
    pub fn note_opened(&self, output: &str) {
        let mut table = lock(&self.0.table);
        table.opened_outputs.insert(output.to_owned());
    }

    /// Notes why the journal of an output lacks notes, or that it lacks none: while one does, no positions are written that
    /// would cover what it does not know of.
    pub fn note_behind(&self, output: &str, error: Option<io::Error>) {
        let behind = &mut lock(&self.0.table).behind;
        match error {
            Some(error) => behind.insert(output.to_owned(), error),
            None => behind.remove(output),
        };
    }

    /// A file beside the positions that is this output's alone; none where positions end with the program.
    pub fn output_journal(&self, output: &str) -> Option<PathBuf> {
        self.beside(&format!("{:016x}.journal", xxh3_64(output.as_bytes())))
    }

    /// A file of this name beside the positions; none where positions end with the program.
    pub fn beside(&self, name: &str) -> Option<PathBuf> {
        Some(self.0.folder.as_ref()?.path.join(name))
    }
}

/// The same error once more.
pub(super) fn same(error: &io::Error) -> io::Error {
    let of_system = error.raw_os_error().map(io::Error::from_raw_os_error);
    of_system.unwrap_or_else(|| io::Error::new(error.kind(), error.to_string()))
}
