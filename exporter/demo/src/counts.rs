//! The demo's own counts of the telemetry that it has sent, which a backend has to match.

use std::collections::HashSet;

use pulsetrain_otlp::{
    Signal, WireError,
    view::{KeyValue, Message, Repeated},
    walk,
};
use pulsetrain_pipeline::Batch;
use pulsetrain_run::SeriesKey;
use pulsetrain_semconv::{Attribute, attribute};

/// The counts of the telemetry that was sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DemoCounts {
    /// Batches.
    pub batches: u64,
    /// Bytes of the batches.
    pub bytes: u64,
    /// Points of metrics.
    pub points: u64,
    /// Spans.
    pub spans: u64,
    /// Events.
    pub events: u64,
    /// Steps of the job, including repeated ones.
    pub steps: u64,
}

impl DemoCounts {
    /// Counts a batch.
    pub fn add(&mut self, batch: &Batch) {
        let items = u64::from(batch.items());
        self.batches += 1;
        self.bytes += batch.bytes().len() as u64;
        match batch.signal() {
            Signal::Metrics => self.points += items,
            Signal::Traces => self.spans += items,
            Signal::Logs => self.events += items,
        }
    }
}

/// The attributes of a resource that identify its series.
const IDENTITY: [&Attribute; 2] = [&attribute::SERVICE_NAME, &attribute::SERVICE_INSTANCE_ID];

/// Counts the series of metrics: by resource, metric and attributes.
#[derive(Clone, Debug, Default)]
pub struct SeriesCounter(HashSet<SeriesKey>);

impl SeriesCounter {
    /// Adds the series of a batch. As in Prometheus, only `service.name` and `service.instance.id` of the resource identify a
    /// series, so that a restarted run continues its series.
    pub fn observe(&mut self, batch: &Batch) {
        if batch.signal() == Signal::Metrics {
            let counted = self.count(batch.bytes());
            debug_assert!(counted.is_ok(), "our own batches can be read");
        }
    }

    /// Returns the number of series.
    pub fn series(&self) -> u64 {
        self.0.len() as u64
    }

    fn count(&mut self, bytes: &[u8]) -> Result<(), WireError> {
        for resource in walk::metrics(bytes) {
            let resource = resource?;
            let identity = identity(resource.attributes())?;
            for metric in resource.items() {
                let metric = metric?;
                let key = identity
                    .iter()
                    .fold(SeriesKey::new(metric.name.as_bytes()), |key, attribute| {
                        key.with_attribute(attribute)
                    });
                metric.try_each_point(|point| {
                    self.0.insert(key.with_attributes(point.attributes())?);
                    Ok::<_, WireError>(())
                })?;
            }
        }
        Ok(())
    }
}

/// Returns the encoded attributes of a resource that identify its series.
fn identity<'a>(attributes: Repeated<'a, KeyValue<'a>>) -> Result<Vec<&'a [u8]>, WireError> {
    let mut identity = Vec::new();
    let mut attributes = attributes.iter();
    while let Some(encoded) = attributes.next_bytes() {
        let encoded = encoded?;
        let key = KeyValue::decode(encoded)?.key;
        if IDENTITY.iter().any(|own| key == own.name) {
            identity.push(encoded);
        }
    }
    Ok(identity)
}
