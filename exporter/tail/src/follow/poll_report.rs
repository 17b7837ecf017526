//! Reports of polls, for the telemetry of a follower: duration, error, skipped records.

use std::{collections::BTreeMap, error::Error, io, time::Duration};

use pulsetrain_record::{ParseReport, SkipReason};

use crate::TailError;

/// The report of a poll that found a changed file or failed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct PollReport {
    /// The duration, with parsing.
    pub duration: Duration,
    /// The kind of its error.
    pub error: Option<io::ErrorKind>,
    /// The skipped records by reason.
    pub skipped: Vec<(SkipReason, u64)>,
}

/// Collects the report of a poll.
pub(super) struct PollMeter {
    listener: Box<dyn FnMut(PollReport) + Send>,
    has_read: bool,
    skipped: BTreeMap<SkipReason, u64>,
}

impl PollMeter {
    pub(super) fn new(listener: Box<dyn FnMut(PollReport) + Send>) -> Self {
        Self {
            listener,
            has_read: false,
            skipped: BTreeMap::new(),
        }
    }

    /// Records that a file is read.
    pub(super) fn record_read(&mut self) {
        self.has_read = true;
    }

    /// Adds the skipped records in `now` that are not in `counted`, and updates `counted`.
    pub(super) fn count_skipped(&mut self, now: &ParseReport, counted: &mut BTreeMap<SkipReason, u64>) {
        for (reason, count) in now.counts() {
            let before = counted.insert(reason, count).unwrap_or_default();
            if count > before {
                *self.skipped.entry(reason).or_default() += count - before;
            }
        }
    }

    /// Ends a poll and sends its report, unless the poll found nothing.
    pub(super) fn end_poll(&mut self, duration: Duration, error: Option<&TailError>) {
        let has_read = std::mem::take(&mut self.has_read);
        let skipped = std::mem::take(&mut self.skipped);
        if has_read || error.is_some() || !skipped.is_empty() {
            (self.listener)(PollReport {
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
