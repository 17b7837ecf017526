//! The one thing that travels through the pipeline: OTLP bytes with their signal.

use std::sync::Arc;

use bytes::Bytes;
use pulsetrain_otlp::Signal;

use crate::{Receipt, SourceId};

/// OTLP protobuf bytes (`TracesData`, `MetricsData` or `LogsData`) of one signal; a clone shares the bytes and the receipt.
#[derive(Clone, Debug)]
pub struct Batch {
    signal: Signal,
    source: SourceId,
    items: u32,
    bytes: Bytes,
    receipt: Option<Arc<Receipt>>,
    receipt_number: Option<u64>,
    is_best_effort: bool,
}

impl Batch {
    /// A batch of `items` spans, points or log records, as `bytes` hold them.
    pub fn new(signal: Signal, items: u32, bytes: impl Into<Bytes>) -> Self {
        Self {
            signal,
            source: SourceId::NONE,
            items,
            bytes: bytes.into(),
            receipt: None,
            receipt_number: None,
            is_best_effort: false,
        }
    }

    /// The same batch, watched over by a receipt, which may watch over others too.
    #[must_use]
    pub fn with_receipt(self, receipt: Arc<Receipt>) -> Self {
        Self {
            receipt_number: Some(receipt.number()),
            receipt: Some(receipt),
            ..self
        }
    }

    /// The same batch, sent by a source. The [`Door`](crate::Door) of a source sets it.
    #[must_use]
    pub fn from_source(self, source: SourceId) -> Self {
        Self { source, ..self }
    }

    /// The same batch, which no receipt waits for: a sink without room drops it and counts it, also where the sink is required.
    #[must_use]
    pub fn best_effort(self) -> Self {
        Self {
            receipt: None,
            receipt_number: None,
            is_best_effort: true,
            ..self
        }
    }

    /// A batch of the same signal and source and with the same receipt, but with other contents: a part of it, or more than it.
    #[must_use]
    pub fn with_contents(&self, items: u32, bytes: impl Into<Bytes>) -> Self {
        Self {
            signal: self.signal,
            source: self.source,
            items,
            bytes: bytes.into(),
            receipt: self.receipt.clone(),
            receipt_number: self.receipt_number,
            is_best_effort: self.is_best_effort,
        }
    }

    /// A batch that was computed from this one: it has the same receipt, so that both are settled, or come again, together.
    #[must_use]
    pub fn derived(&self, signal: Signal, items: u32, bytes: impl Into<Bytes>) -> Self {
        Self {
            signal,
            ..self.with_contents(items, bytes)
        }
    }

    /// The signal that the bytes are of.
    pub fn signal(&self) -> Signal {
        self.signal
    }

    /// The source that sent it, or whose data it was computed from.
    pub fn source(&self) -> SourceId {
        self.source
    }

    /// The number of spans, points or log records: the unit in which the ledger counts.
    pub fn items(&self) -> u32 {
        self.items
    }

    /// The bytes, as they go on the wire and on the disk.
    pub fn bytes(&self) -> &Bytes {
        &self.bytes
    }

    /// Whether its source watches over it, and brings it again after a kill that came before it was settled.
    pub fn comes_again(&self) -> bool {
        self.receipt.is_some()
    }

    /// The number of its receipt, where it has one.
    pub fn receipt_number(&self) -> Option<u64> {
        self.receipt_number
    }

    /// Whether one receipt watches over both, or none over either.
    pub fn shares_receipt(&self, other: &Self) -> bool {
        match (&self.receipt, &other.receipt) {
            (Some(one), Some(other)) => Arc::ptr_eq(one, other),
            (None, None) => true,
            _ => false,
        }
    }

    /// Returns whether signals derived from both may share a batch: both have the same source, and the same receipt or none.
    pub fn can_share_batch_with(&self, other: &Self) -> bool {
        self.source == other.source && self.shares_receipt(other)
    }

    /// The same batch, whose receipt does not wait for this copy. It keeps the receipt's number.
    pub(crate) fn without_receipt(self) -> Self {
        Self {
            receipt: None,
            ..self
        }
    }

    pub(crate) fn is_best_effort(&self) -> bool {
        self.is_best_effort
    }

    pub(crate) fn receipt(&self) -> Option<Arc<Receipt>> {
        self.receipt.clone()
    }
}

/// Batches are equal when they carry the same; who watches over them does not matter.
impl PartialEq for Batch {
    fn eq(&self, other: &Self) -> bool {
        (self.signal, self.items, &self.bytes) == (other.signal, other.items, &other.bytes)
    }
}

impl Eq for Batch {}
