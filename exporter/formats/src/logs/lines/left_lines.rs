//! The lines that a format leaves: those that are no records and have no other use for it.

use std::{collections::BTreeMap, fmt};

use super::{KeyUse, Line};
use pulsetrain_record::Recorder;

/// Reads the lines that a format leaves.
pub(in crate::logs) trait LeftLines: Send {
    /// Records the values of a line and returns whether it was a record.
    fn line(&mut self, line: &Line<'_>, recorder: &mut Recorder<'_>) -> bool;

    /// Returns the use of each key so far.
    fn key_uses(&mut self) -> Vec<KeyUse> {
        Vec::new()
    }
}

/// Creates a reader of left lines.
pub(in crate::logs) type BeginLeftLines = Box<dyn Fn() -> Box<dyn LeftLines> + Send>;

/// Creates the readers of the lines that a format leaves, one for each rank.
pub struct LeftLineReaders(pub(in crate::logs) BeginLeftLines);

impl fmt::Debug for LeftLineReaders {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("LeftLineReaders")
    }
}

/// The readers of the left lines of a log, by rank.
#[derive(Default)]
pub(super) struct RankedLeftLines {
    begin: Option<LeftLineReaders>,
    of_ranks: BTreeMap<Option<i64>, Box<dyn LeftLines>>,
}

impl RankedLeftLines {
    pub(super) fn new(readers: LeftLineReaders) -> Self {
        Self {
            begin: Some(readers),
            of_ranks: BTreeMap::new(),
        }
    }

    /// Reads a line of a rank, and returns whether it was a record.
    pub(super) fn line(&mut self, rank: Option<i64>, line: &Line<'_>, recorder: &mut Recorder<'_>) -> bool {
        let Some(LeftLineReaders(begin)) = &self.begin else {
            return false;
        };
        let reader = self.of_ranks.entry(rank).or_insert_with(begin);
        reader.line(line, recorder)
    }

    pub(super) fn key_uses(&mut self) -> impl Iterator<Item = KeyUse> + '_ {
        self.of_ranks.values_mut().flat_map(|reader| reader.key_uses())
    }
}
