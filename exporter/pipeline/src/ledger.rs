//! The drop ledger: for every sink, what became of the items put through the door.
//!
//! For each sink, in every snapshot: accepted = delivered + dropped (by reason) + queued. Items come in through the
//! account's tickets (`ledger/account.rs`), which cannot be lost without being counted.

mod account;
mod message;
mod reason;

use std::sync::{Arc, PoisonError, RwLock};

use pulsetrain_otlp::{Signal, Signals};

use crate::clock::Instant;
pub(crate) use account::{Account, Ticket};
pub use reason::DropReason;

/// The books of all sinks that a pipeline has; a clone reads the same books, also after the pipeline has ended.
#[derive(Clone, Debug, Default)]
pub struct Ledger {
    accounts: Arc<RwLock<Vec<Arc<Account>>>>,
}

/// What became of the items of one sink: a consistent picture of one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SinkCounts {
    /// The sink's name.
    pub name: String,
    /// The number of its account: a sink that takes the place of another of its name has another one, and counts from zero.
    pub account: u64,
    /// The items put through the door for this sink, whatever came of them.
    pub accepted: u64,
    /// The items that arrived.
    pub delivered: u64,
    /// The items on their way: waiting for room, in the queue, or being delivered.
    pub queued: u64,
    /// The batches that these items are in.
    pub queued_batches: u64,
    /// The bytes of these batches.
    pub queued_bytes: u64,
    /// The signals of which the receiver took a batch.
    pub supported: Signals,
    /// The items dropped, one entry a reason and signal, in the order of [`DropReason::ALL`]; those without items are left out.
    pub dropped: Vec<Dropped>,
    /// How often the sink asked for a batch to be delivered later.
    pub retries: u64,
    /// What the sink said the last time it asked for that.
    pub retry_message: Option<String>,
    /// Since when nothing was delivered though it was tried; `None` while deliveries succeed, and before the first one.
    pub trouble: Option<Trouble>,
    /// How often the receiver took everything but had something to say.
    pub warnings: u64,
    /// What it said the last time.
    pub warning_message: Option<String>,
}

/// A sink that fails: it asks for later deliveries or refuses batches, and accepted nothing since.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Trouble {
    /// The first failure since the last delivery.
    pub since: Instant,
    /// The message of the last failure, at most 512 bytes on one line.
    pub message: String,
}

/// The items of one signal that one sink dropped for one reason.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Dropped {
    /// Why.
    pub reason: DropReason,
    /// The signal of the items.
    pub signal: Signal,
    /// How many items.
    pub items: u64,
    /// The last thing said about it, at most 512 bytes on one line, where something was said.
    pub message: Option<String>,
}

impl Ledger {
    /// Keeps these books from now on.
    pub(crate) fn keep(&self, accounts: impl IntoIterator<Item = Arc<Account>>) {
        *self.accounts.write().unwrap_or_else(PoisonError::into_inner) = accounts.into_iter().collect();
    }

    /// The counts of every sink, in the order in which the sinks were added.
    pub fn snapshot(&self) -> Vec<SinkCounts> {
        let accounts = self.accounts.read().unwrap_or_else(PoisonError::into_inner);
        accounts.iter().map(|account| account.counts()).collect()
    }
}

impl SinkCounts {
    /// The drops that are losses: all but those of [`unsupported`](Self::unsupported).
    pub fn losses(&self) -> impl Iterator<Item = &Dropped> {
        self.dropped
            .iter()
            .filter(|dropped| !self.is_unsupported(dropped))
    }

    /// The drops of signals that the receiver does not support, where it supports another one. A receiver that supports none
    /// is the wrong one, and one that took a batch of the signal supports it: their drops are losses.
    pub fn unsupported(&self) -> impl Iterator<Item = &Dropped> {
        self.dropped.iter().filter(|dropped| self.is_unsupported(dropped))
    }

    fn is_unsupported(&self, dropped: &Dropped) -> bool {
        dropped.reason == DropReason::UnsupportedSignal
            && !self.supported.is_empty()
            && !self.supported.contains(dropped.signal)
    }

    /// The items of [`losses`](Self::losses).
    pub fn lost_items(&self) -> u64 {
        self.losses().map(|dropped| dropped.items).sum()
    }

    /// The items dropped, for whatever reason.
    pub fn dropped_items(&self) -> u64 {
        self.dropped.iter().map(|dropped| dropped.items).sum()
    }

    /// The items dropped for one reason.
    pub fn dropped_for(&self, reason: DropReason) -> u64 {
        self.dropped
            .iter()
            .filter(|dropped| dropped.reason == reason)
            .map(|dropped| dropped.items)
            .sum()
    }
}
