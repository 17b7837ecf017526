//! Request bodies of remote write: every point with its time, for stores that accept Prometheus' protocol and not OTLP.
//!
//! Names and labels are those of the page (`ingest`). `samples` groups the points of a batch by series.
//! `request` encodes them in the protocol (<https://prometheus.io/docs/specs/prw/remote_write_spec/>, version
//! 1.0: protobuf in a snappy block).

mod request;
mod samples;

use pulsetrain_otlp::WireError;
use pulsetrain_pipeline::Delivery;

pub use self::samples::RemoteWriteBody;
use self::samples::Samples;
use super::{PrometheusConfig, PrometheusStore, ingest::Ingest, sink::delivery};

/// Encodes batches of metrics as bodies of remote-write 1.0 requests.
pub struct RemoteWriteEncoder {
    ingest: Ingest<Samples>,
}

impl RemoteWriteEncoder {
    /// Returns an encoder with the names, labels and limits of `config`.
    pub fn new(config: &PrometheusConfig) -> Self {
        Self {
            ingest: Ingest::into_receiver(PrometheusStore::new(config), Samples::default()),
        }
    }

    /// Encodes a `MetricsData` message. Returns the number of rejected points with reasons, and the bodies.
    ///
    /// # Errors
    /// Malformed OTLP.
    pub fn encode(&mut self, bytes: &[u8]) -> Result<(Delivery, Vec<RemoteWriteBody>), WireError> {
        self.ingest.receiver().clear();
        let refused = self.ingest.batch(bytes)?;
        Ok((delivery(&refused), self.ingest.receiver().requests()))
    }

    /// Records that the store accepted every body of the last message: their `target_info` is not repeated at once.
    pub fn record_delivered(&mut self) {
        self.ingest.receiver().record_delivered();
    }
}

#[cfg(test)]
mod tests;
