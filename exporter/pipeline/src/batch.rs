//! The one thing that travels through the pipeline: OTLP bytes with their signal.

use bytes::Bytes;
use pulsetrain_otlp::Signal;

/// OTLP protobuf bytes (`TracesData`, `MetricsData` or `LogsData`) of one signal; a clone shares the bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Batch {
    signal: Signal,
    items: u32,
    bytes: Bytes,
}

impl Batch {
    /// A batch of `items` spans, points or log records, as `bytes` hold them.
    pub fn new(signal: Signal, items: u32, bytes: impl Into<Bytes>) -> Self {
        Self {
            signal,
            items,
            bytes: bytes.into(),
        }
    }

    /// The signal that the bytes are of.
    pub fn signal(&self) -> Signal {
        self.signal
    }

    /// The number of spans, points or log records: the unit in which the ledger counts.
    pub fn items(&self) -> u32 {
        self.items
    }

    /// The bytes, as they go on the wire and on the disk.
    pub fn bytes(&self) -> &Bytes {
        &self.bytes
    }
}
