//! Where the outputs of a program ended when positions were written last, so that they hold every item once.

use std::path::PathBuf;

use xxhash_rust::xxh3::xxh3_64;

use super::{Positions, lock};

/// How an output is to be opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OutputStart {
    /// For the first time in this program: what came after the committed end is delivered again.
    Recover,
    /// For another time: what is in it counts in this program, whatever is committed.
    GoOn,
}

impl Positions {
    /// Where an output ended at the last written position; none where it was not written to before.
    pub fn output_end(&self, output: &str) -> Option<u64> {
        lock(&self.0.table).written_outputs.get(output).copied()
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
        table.farthest.remove(output);
        table.opened_outputs.insert(output.to_owned());
    }

    /// A file beside the positions that is this output's alone; none where positions end with the program.
    pub fn output_journal(&self, output: &str) -> Option<PathBuf> {
        let folder = &self.0.folder.as_ref()?.path;
        Some(folder.join(format!("{:016x}.journal", xxh3_64(output.as_bytes()))))
    }
}
