//! The unit that moves through the pipeline: OTLP bytes with their signal.

use std::sync::Arc;

use bytes::Bytes;
use pulsetrain_otlp::Signal;

use crate::{Ack, SourceId};

/// OTLP protobuf bytes (`TracesData`, `MetricsData` or `LogsData`) of one signal; clones share the bytes and the ack.
#[derive(Clone, Debug)]
pub struct Batch {
    signal: Signal,
    source: SourceId,
    items: u32,
    bytes: Bytes,
    ack: Option<Arc<Ack>>,
    ack_number: Option<u64>,
    is_best_effort: bool,
}

impl Batch {
    /// Creates a batch of the `items` spans, points or log records that `bytes` encode.
    pub fn new(signal: Signal, items: u32, bytes: impl Into<Bytes>) -> Self {
        Self {
            signal,
            source: SourceId::NONE,
            items,
            bytes: bytes.into(),
            ack: None,
            ack_number: None,
            is_best_effort: false,
        }
    }

    /// Attaches an ack. Several batches may share one.
    #[must_use]
    pub fn with_ack(self, ack: Arc<Ack>) -> Self {
        Self {
            ack_number: Some(ack.number()),
            ack: Some(ack),
            ..self
        }
    }

    /// Returns the same batch as sent by a source. The [`Ingress`](crate::Ingress) of a source sets it.
    #[must_use]
    pub fn from_source(self, source: SourceId) -> Self {
        Self { source, ..self }
    }

    /// Makes the batch best-effort: no ack waits for it, and every sink without room drops it and counts the drop.
    #[must_use]
    pub fn best_effort(self) -> Self {
        Self {
            ack: None,
            ack_number: None,
            is_best_effort: true,
            ..self
        }
    }

    /// Returns a batch of the same signal, source and ack with other contents.
    #[must_use]
    pub fn with_contents(&self, items: u32, bytes: impl Into<Bytes>) -> Self {
        Self {
            signal: self.signal,
            source: self.source,
            items,
            bytes: bytes.into(),
            ack: self.ack.clone(),
            ack_number: self.ack_number,
            is_best_effort: self.is_best_effort,
        }
    }

    /// Returns a batch that was computed from this one. It shares the ack, so that both are acknowledged, or replayed,
    /// together.
    #[must_use]
    pub fn derived(&self, signal: Signal, items: u32, bytes: impl Into<Bytes>) -> Self {
        Self {
            signal,
            ..self.with_contents(items, bytes)
        }
    }

    /// Returns the signal of the bytes.
    pub fn signal(&self) -> Signal {
        self.signal
    }

    /// Returns the source that sent the batch, or whose data it was computed from.
    pub fn source(&self) -> SourceId {
        self.source
    }

    /// Returns the number of spans, points or log records: the unit in which the ledger counts.
    pub fn items(&self) -> u32 {
        self.items
    }

    /// Returns the bytes, as they are sent and stored.
    pub fn bytes(&self) -> &Bytes {
        &self.bytes
    }

    /// Returns whether the source replays the batch after a kill, unless it was acknowledged before.
    pub fn is_replayable(&self) -> bool {
        self.ack.is_some()
    }

    /// Returns the number of the ack, or `None`.
    pub fn ack_number(&self) -> Option<u64> {
        self.ack_number
    }

    /// Returns whether both batches have the same ack, or neither has one.
    pub fn shares_ack(&self, other: &Self) -> bool {
        match (&self.ack, &other.ack) {
            (Some(one), Some(other)) => Arc::ptr_eq(one, other),
            (None, None) => true,
            _ => false,
        }
    }

    /// Returns whether signals derived from both may share a batch: both have the same source, and the same ack or none.
    pub fn can_share_batch_with(&self, other: &Self) -> bool {
        self.source == other.source && self.shares_ack(other)
    }

    /// Returns a copy that the ack does not wait for. It keeps the ack's number.
    pub(crate) fn without_ack(self) -> Self {
        Self { ack: None, ..self }
    }

    pub(crate) fn is_best_effort(&self) -> bool {
        self.is_best_effort
    }

    pub(crate) fn ack(&self) -> Option<Arc<Ack>> {
        self.ack.clone()
    }
}

/// Batches are equal if their contents are equal. Source and ack do not matter.
impl PartialEq for Batch {
    fn eq(&self, other: &Self) -> bool {
        (self.signal, self.items, &self.bytes) == (other.signal, other.items, &other.bytes)
    }
}

impl Eq for Batch {}
