//! The demo's own counts of the telemetry that it has sent, which a backend has to match.

use std::collections::HashSet;

use pulsetrain_otlp::{
    Signal, WireError,
    view::{self, AnyValue, Message},
};
use pulsetrain_pipeline::Batch;
use pulsetrain_semconv::{Attribute, attribute};
use xxhash_rust::xxh3::Xxh3;

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

/// Counts the series of metrics: by resource, metric and attributes, each by its hash.
#[derive(Clone, Debug, Default)]
pub struct SeriesCounter(HashSet<u64>);

impl SeriesCounter {
    /// Adds the series of a batch. As in Prometheus, only `service.name` and `service.instance.id` of the resource identify a
    /// series, so that a restarted run continues its series.
    pub fn observe(&mut self, batch: &Batch) {
        if batch.signal() == Signal::Metrics {
            let noted = self.note(batch.bytes());
            debug_assert!(noted.is_ok(), "our own batches can be read");
        }
    }

    /// Returns the number of series.
    pub fn series(&self) -> u64 {
        self.0.len() as u64
    }

    fn note(&mut self, bytes: &[u8]) -> Result<(), WireError> {
        for resource in view::MetricsData::decode(bytes)?.resource_metrics {
            let resource = resource?;
            let mut of_resource = Xxh3::new();
            for attribute in resource.resource.map(|own| own.attributes).unwrap_or_default() {
                let attribute = attribute?;
                if IDENTITY
                    .iter()
                    .any(|own| own.name.as_bytes() == attribute.key.as_bytes())
                    && let Some(AnyValue::String(text)) = attribute.value
                {
                    of_resource.update(text.as_bytes());
                    of_resource.update(&[0]);
                }
            }
            for scope in resource.scope_metrics {
                for metric in scope?.metrics {
                    self.note_metric(&metric?, &of_resource)?;
                }
            }
        }
        Ok(())
    }

    fn note_metric(&mut self, metric: &view::Metric<'_>, of_resource: &Xxh3) -> Result<(), WireError> {
        let mut of_metric = of_resource.clone();
        of_metric.update(metric.name.as_bytes());
        let mut note = |attributes: view::Repeated<'_, view::KeyValue<'_>>| {
            let mut series = of_metric.clone();
            let mut attributes = attributes.iter();
            while let Some(attribute) = attributes.next_bytes() {
                series.update(attribute?);
                series.update(&[0]);
            }
            self.0.insert(series.digest());
            Ok(())
        };
        match metric.data() {
            Some(view::MetricData::Gauge(gauge)) => gauge
                .data_points
                .iter()
                .try_for_each(|point| note(point?.attributes)),
            Some(view::MetricData::Sum(sum)) => sum
                .data_points
                .iter()
                .try_for_each(|point| note(point?.attributes)),
            Some(view::MetricData::Histogram(histogram)) => histogram
                .data_points
                .iter()
                .try_for_each(|point| note(point?.attributes)),
            _ => Ok(()),
        }
    }
}
