//! The ledger: counts, for every sink, the outcome of the items that entered the pipeline.
//!
//! For each sink, in every snapshot: accepted = delivered + dropped (by reason) + queued in memory + on disk. Items are
//! counted by the tickets of an account (`ledger/account.rs`), which cannot be lost without being counted.

mod account;
mod batch_ages;
mod message;
mod reason;

use std::{
    path::PathBuf,
    sync::{Arc, PoisonError, RwLock},
    time::Duration,
};

use pulsetrain_otlp::{Signal, Signals};

use crate::{Problem, clock::Instant};
pub(crate) use account::{Account, StoredLevel, Ticket};
pub use reason::DropReason;

/// The accounts of all sinks of a pipeline; clones read the same accounts, even after the pipeline has ended.
#[derive(Clone, Debug, Default)]
pub struct Ledger {
    accounts: Arc<RwLock<Vec<Arc<Account>>>>,
}

/// The counts of one sink: a consistent snapshot.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SinkCounts {
    /// The sink's name.
    pub name: String,
    /// The number of the account. A sink that replaces another of the same name has a new account, and counts from zero.
    pub account: u64,
    /// The number of items passed to the pipeline for this sink, and of those found in its disk queue. Never decreases in
    /// the ledger.
    pub accepted: u64,
    /// The number of items that the receiver accepted.
    pub delivered: u64,
    /// The number of items in memory: waiting for room, in the queue, or being delivered. With a disk queue, the items
    /// that are not written yet.
    pub queued: u64,
    /// The number of batches of the queued items.
    pub queued_batches: u64,
    /// The size of these batches in bytes.
    pub queued_bytes: u64,
    /// The age of the oldest of these batches, with a resolution of a second; `None` without a batch.
    pub oldest_age: Option<Duration>,
    /// The level of the disk queue, including the items that are being delivered; `None` for a sink without a disk queue.
    pub on_disk: Option<OnDisk>,
    /// The signals that the receiver has accepted at least once.
    pub supported: Signals,
    /// The dropped items, one entry per reason and signal, in the order of [`DropReason::ALL`], without empty entries.
    pub dropped: Vec<Dropped>,
    /// The number of deliveries after which the sink asked for a retry.
    pub retries: u64,
    /// The message of the last retry.
    pub retry_message: Option<String>,
    /// The failure of deliveries; `None` while they succeed, and before the first one.
    pub failure: Option<Failure>,
    /// The number of deliveries that were accepted with a warning.
    pub warnings: u64,
    /// The message of the last warning.
    pub warning_message: Option<String>,
}

/// The level of a disk queue.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct OnDisk {
    /// The folder.
    pub folder: PathBuf,
    /// The number of items that are not delivered yet.
    pub items: u64,
    /// The number of batches of these items.
    pub batches: u64,
    /// The size of these batches in bytes.
    pub bytes: u64,
    /// The size of the files in bytes; delivered batches are deleted a segment at a time.
    pub file_bytes: u64,
    /// The age of the oldest batch; `None` for an empty queue.
    pub oldest_age: Option<Duration>,
    /// The failure of writes or reads; `None` while the disk works.
    pub failure: Option<Failure>,
}

/// The failure of a sink, which requests retries or rejects batches and accepts none, or the failure of a disk queue.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Failure {
    /// The time of the first failure since the last success.
    pub since: Instant,
    /// The last problem, each part at most 512 bytes on one line.
    pub problem: Problem,
}

/// The items of one signal that one sink dropped for one reason.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Dropped {
    /// The reason.
    pub reason: DropReason,
    /// The signal of the items.
    pub signal: Signal,
    /// The number of items.
    pub items: u64,
    /// The message of the last drop, at most 512 bytes on one line; `None` without one.
    pub message: Option<String>,
}

impl Ledger {
    /// Replaces the accounts.
    pub(crate) fn keep(&self, accounts: impl IntoIterator<Item = Arc<Account>>) {
        *self.accounts.write().unwrap_or_else(PoisonError::into_inner) = accounts.into_iter().collect();
    }

    /// Returns the counts of every sink, in the order in which the sinks were added.
    pub fn snapshot(&self) -> Vec<SinkCounts> {
        let accounts = self.accounts.read().unwrap_or_else(PoisonError::into_inner);
        accounts.iter().map(|account| account.counts()).collect()
    }
}

impl SinkCounts {
    /// Returns the drops that are losses: all except those of [`unsupported`](Self::unsupported).
    pub fn losses(&self) -> impl Iterator<Item = &Dropped> {
        self.dropped
            .iter()
            .filter(|dropped| !self.is_unsupported(dropped))
    }

    /// Returns the drops of signals that the receiver does not support, if it supports another one. A receiver that
    /// supports none is the wrong one, and a receiver that accepted a batch of the signal supports it: their drops are
    /// losses.
    pub fn unsupported(&self) -> impl Iterator<Item = &Dropped> {
        self.dropped.iter().filter(|dropped| self.is_unsupported(dropped))
    }

    fn is_unsupported(&self, dropped: &Dropped) -> bool {
        dropped.reason == DropReason::UnsupportedSignal
            && !self.supported.is_empty()
            && !self.supported.contains(dropped.signal)
    }

    /// Returns the failure of the sink, or else of its disk queue, or `None` while both work.
    pub fn any_failure(&self) -> Option<&Failure> {
        let of_disk = || self.on_disk.as_ref()?.failure.as_ref();
        self.failure.as_ref().or_else(of_disk)
    }

    /// Returns the number of items in the disk queue; zero for a sink without one.
    pub fn on_disk_items(&self) -> u64 {
        self.on_disk.as_ref().map_or(0, |on_disk| on_disk.items)
    }

    /// Returns the number of items of [`losses`](Self::losses).
    pub fn lost_items(&self) -> u64 {
        self.losses().map(|dropped| dropped.items).sum()
    }

    /// Returns the number of items dropped for all reasons.
    pub fn dropped_items(&self) -> u64 {
        self.dropped.iter().map(|dropped| dropped.items).sum()
    }

    /// Returns the number of items dropped for one reason.
    pub fn dropped_for(&self, reason: DropReason) -> u64 {
        self.dropped
            .iter()
            .filter(|dropped| dropped.reason == reason)
            .map(|dropped| dropped.items)
            .sum()
    }
}
