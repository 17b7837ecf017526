//! How long looks at files take and what comes of them, for whoever measures a follower.

use std::{collections::BTreeMap, error::Error, io, time::Duration};

use crate::TailError;
use pulsetrain_record::{SkipReason, Skipped};

/// One look at a file that had changed, or that could not be read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct TailReading {
    /// How long it took, with the parsing.
    pub duration: Duration,
    /// What kind of trouble there was.
    pub error: Option<io::ErrorKind>,
    /// What was not understood, by reason.
    pub skipped: Vec<(SkipReason, u64)>,
}

/// Gathers what is measured until a look is over.
pub(super) struct Measuring {
    listener: Box<dyn FnMut(TailReading) + Send>,
    has_read: bool,
    skipped: BTreeMap<SkipReason, u64>,
}

impl Measuring {
    pub(super) fn new(listener: Box<dyn FnMut(TailReading) + Send>) -> Self {
        Self {
            listener,
            has_read: false,
            skipped: BTreeMap::new(),
        }
    }

    /// Notes that a file is being read.
    pub(super) fn note_reading(&mut self) {
        self.has_read = true;
    }

    /// Notes what was skipped besides what was `told` before.
    pub(super) fn note_skipped(&mut self, now: &Skipped, told: &mut BTreeMap<SkipReason, u64>) {
        for (reason, count) in now.counts() {
            let before = told.insert(reason, count).unwrap_or_default();
            if count > before {
                *self.skipped.entry(reason).or_default() += count - before;
            }
        }
    }

    /// Ends a look, and tells of it where there is something to tell.
    pub(super) fn end_look(&mut self, duration: Duration, error: Option<&TailError>) {
        let has_read = std::mem::take(&mut self.has_read);
        let skipped = std::mem::take(&mut self.skipped);
        if has_read || error.is_some() || !skipped.is_empty() {
            (self.listener)(TailReading {
                duration,
                error: error.map(kind),
                skipped: skipped.into_iter().collect(),
            });
        }
    }
}

fn kind(error: &TailError) -> io::ErrorKind {
    let source = error
        .source()
        .and_then(|source| source.downcast_ref::<io::Error>());
    source.map_or(io::ErrorKind::Other, io::Error::kind)
}
