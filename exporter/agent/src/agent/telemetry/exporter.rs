//! Exports the collected metrics of the SDK as OTLP into the pipeline.
//!
//! This does not use `opentelemetry-otlp`, which would be a second OTLP client in one program, with a second queue that
//! the ledger does not count.

use std::{
    sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError},
    time::{Duration, SystemTime},
};

use opentelemetry::{KeyValue, Value as SdkValue};
use opentelemetry_sdk::{
    error::{OTelSdkError, OTelSdkResult},
    metrics::{
        Temporality,
        data::{AggregatedMetrics, ExponentialHistogram, Metric, MetricData, ResourceMetrics},
        exporter::PushMetricExporter,
    },
};
use pulsetrain_otlp::{
    UnixNanos,
    view::NumberValue,
    write::{
        Attribute, AttributeValue, Envelope, ExponentialBuckets, ExponentialParts, HistogramParts,
        MetricsWriter, PointParts,
    },
};
use pulsetrain_pipeline::{Batch, Ingress, clock};
use pulsetrain_record::SeriesWriter;
use pulsetrain_semconv::{SCHEMA_URL, attribute, metric};

use super::levels::{self, Levels};
use crate::import::resource::Resource;

/// The name of the agent, as a service and as the scope of its telemetry.
const SERVICE: &str = "pulsetrain";

/// Sends the collected metrics of the SDK through an ingress. Clones share the ingress.
#[derive(Clone)]
pub(super) struct IngressExporter {
    envelope: Arc<Envelope>,
    ingress: Arc<OnceLock<Ingress>>,
    writer: Arc<Mutex<SeriesWriter>>,
    levels: Arc<Mutex<Levels>>,
}

impl IngressExporter {
    /// Returns an exporter with this service and these attributes in its resource.
    pub(super) fn new(resource: &Resource) -> Self {
        Self {
            envelope: Arc::new(envelope(resource)),
            ingress: Arc::default(),
            writer: Arc::new(Mutex::new(SeriesWriter::new(levels::SERIES))),
            levels: Arc::default(),
        }
    }

    /// Returns the gauges that are exported in addition to those of the SDK.
    pub(super) fn levels(&self) -> MutexGuard<'_, Levels> {
        self.levels.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sets the ingress that exports go to.
    pub(super) fn set_ingress(&self, ingress: Ingress) {
        // The ingress is set once, at the start.
        let _ = self.ingress.set(ingress);
    }
}

impl PushMetricExporter for IngressExporter {
    async fn export(&self, collected: &ResourceMetrics) -> OTelSdkResult {
        let Some(ingress) = self.ingress.get() else {
            return Ok(());
        };
        let mut writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
        for collected in collected.scope_metrics().flat_map(|scope| scope.metrics()) {
            write(writer.points(), collected);
        }
        self.levels().write(&mut writer, clock::unix_nanos());
        let Some(encoded) = writer.finish(&self.envelope) else {
            return Ok(());
        };
        ingress
            .try_send_or_drop(Batch::new(encoded.signal, encoded.items, encoded.bytes))
            .map_err(|error| OTelSdkError::InternalFailure(error.to_string()))
    }

    fn force_flush(&self) -> OTelSdkResult {
        Ok(())
    }

    fn shutdown_with_timeout(&self, _: Duration) -> OTelSdkResult {
        Ok(())
    }

    fn temporality(&self) -> Temporality {
        Temporality::Cumulative
    }
}

/// Returns the envelope of the agent, whose identity survives a restart; attributes of the environment have precedence.
fn envelope((service, attributes): &Resource) -> Envelope {
    let machine = rustix::system::uname();
    let machine = machine.nodename().to_string_lossy();
    let service = service.as_deref().unwrap_or(SERVICE);
    let mut resource = vec![
        (attribute::SERVICE_NAME.name, AttributeValue::Text(service)),
        (
            attribute::SERVICE_INSTANCE_ID.name,
            AttributeValue::Text(&machine),
        ),
    ];
    for (key, value) in attributes {
        resource.retain(|(name, _)| name != key);
        resource.push((key, AttributeValue::Text(value)));
    }
    Envelope::new(&resource, SERVICE, env!("CARGO_PKG_VERSION"), SCHEMA_URL)
}

/// Writes the points of a metric; the agent records only metrics of the registry.
fn write(writer: &mut MetricsWriter, collected: &Metric) {
    let Some(definition) = metric::find(collected.name()) else {
        return;
    };
    match collected.data() {
        AggregatedMetrics::F64(data) => points(writer, definition, data, NumberValue::Double),
        AggregatedMetrics::I64(data) => points(writer, definition, data, NumberValue::Int),
        AggregatedMetrics::U64(data) => points(writer, definition, data, |value| {
            NumberValue::Int(i64::try_from(value).unwrap_or(i64::MAX))
        }),
    }
}

fn points<T: Copy>(
    writer: &mut MetricsWriter,
    definition: &'static pulsetrain_semconv::Metric,
    data: &MetricData<T>,
    number: impl Fn(T) -> NumberValue,
) {
    match data {
        MetricData::Gauge(gauge) => {
            for point in gauge.data_points() {
                with_attributes(point.attributes(), |attributes| {
                    let parts = parts(None, gauge.time(), attributes);
                    writer.number(definition, parts, number(point.value()));
                });
            }
        }
        MetricData::Sum(sum) => {
            for point in sum.data_points() {
                with_attributes(point.attributes(), |attributes| {
                    let parts = parts(Some(sum.start_time()), sum.time(), attributes);
                    writer.number(definition, parts, number(point.value()));
                });
            }
        }
        MetricData::Histogram(histogram) => {
            for point in histogram.data_points() {
                let value = |value: Option<T>| value.map_or(f64::NAN, |value| number(value).as_f64());
                let bucket_counts: Vec<u64> = point.bucket_counts().collect();
                with_attributes(point.attributes(), |attributes| {
                    let contents = HistogramParts {
                        count: point.count(),
                        sum: number(point.sum()).as_f64(),
                        min: value(point.min()),
                        max: value(point.max()),
                        bucket_counts: &bucket_counts,
                    };
                    let parts = parts(Some(histogram.start_time()), histogram.time(), attributes);
                    writer.histogram(definition, parts, contents);
                });
            }
        }
        MetricData::ExponentialHistogram(histogram) => exponential(writer, definition, histogram, number),
    }
}

fn exponential<T: Copy>(
    writer: &mut MetricsWriter,
    definition: &'static pulsetrain_semconv::Metric,
    histogram: &ExponentialHistogram<T>,
    number: impl Fn(T) -> NumberValue,
) {
    for point in histogram.data_points() {
        let value = |value: Option<T>| value.map_or(f64::NAN, |value| number(value).as_f64());
        let (positive, negative) = (point.positive_bucket(), point.negative_bucket());
        let above: Vec<u64> = positive.counts().collect();
        let below: Vec<u64> = negative.counts().collect();
        with_attributes(point.attributes(), |attributes| {
            let contents = ExponentialParts {
                count: point.count() as u64,
                sum: number(point.sum()).as_f64(),
                min: value(point.min()),
                max: value(point.max()),
                scale: i32::from(point.scale()),
                zero_count: point.zero_count(),
                zero_threshold: point.zero_threshold(),
                positive: ExponentialBuckets {
                    offset: positive.offset(),
                    counts: &above,
                },
                negative: ExponentialBuckets {
                    offset: negative.offset(),
                    counts: &below,
                },
            };
            let parts = parts(Some(histogram.start_time()), histogram.time(), attributes);
            writer.exponential(definition, parts, &contents);
        });
    }
}

fn parts<'a>(start: Option<SystemTime>, time: SystemTime, attributes: &'a [Attribute<'a>]) -> PointParts<'a> {
    PointParts {
        start_unix_nanos: start.map_or(UnixNanos::UNKNOWN, UnixNanos::from_system_time),
        time_unix_nanos: UnixNanos::from_system_time(time),
        attributes,
    }
}

/// Converts the attributes of a point by their definitions; all attributes of the agent are strings.
fn with_attributes<'a>(attributes: impl Iterator<Item = &'a KeyValue>, write: impl FnOnce(&[Attribute<'_>])) {
    let attributes: Vec<Attribute<'_>> = attributes
        .filter_map(|attribute| {
            let definition = attribute::find(attribute.key.as_str())?;
            match &attribute.value {
                SdkValue::String(text) => Some((definition, AttributeValue::Text(text.as_str()))),
                _ => None,
            }
        })
        .collect();
    write(&attributes);
}
