//! A naive importer for comparison: every line is a `serde_json::Value`, every number is a point in the structs of
//! `opentelemetry-proto`, and every full batch is encoded with prost.

use std::collections::HashMap;

use opentelemetry_proto::tonic::{
    common::v1::{AnyValue, KeyValue, any_value},
    metrics::v1::{
        Gauge, Metric, MetricsData, NumberDataPoint, ResourceMetrics, ScopeMetrics, metric, number_data_point,
    },
    trace::v1::{ResourceSpans, ScopeSpans, Span, TracesData},
};
use prost::Message;
use serde_json::{Map, Value};

/// About the number of items in a batch of the real importer.
const BATCH: usize = 20_000;

/// Numbers that identify a record and are not measurements.
const NO_POINTS: [&str; 3] = ["id", "rank", "step"];

/// Imports a log and returns the number of points and spans.
pub(crate) fn import(log: &[u8]) -> u64 {
    let mut importer = Importer::default();
    for line in log.split(|byte| *byte == b'\n') {
        let line = line.trim_ascii().strip_suffix(b",").unwrap_or(line.trim_ascii());
        if let Ok(Value::Object(record)) = serde_json::from_slice(line) {
            importer.record(&record);
        }
    }
    importer.flush();
    importer.items
}

#[derive(Default)]
struct Importer {
    points: HashMap<String, Vec<NumberDataPoint>>,
    spans: Vec<Span>,
    waiting: usize,
    items: u64,
}

impl Importer {
    fn record(&mut self, record: &Map<String, Value>) {
        let kind = record["log"].as_str().unwrap_or_default();
        let time = record["time"].as_str().and_then(unix_nanos).unwrap_or_default();
        for (key, value) in record
            .iter()
            .filter(|(key, _)| !NO_POINTS.contains(&key.as_str()))
        {
            if let Some(number) = value.as_f64() {
                self.point(format!("{kind}.{key}"), time, number);
            }
        }
        if kind == "step" {
            let step = record["step"].as_f64().unwrap_or_default();
            self.point("step.step".to_owned(), time, step);
            self.point("steps".to_owned(), time, step + 1.0);
        }
        if let ("step" | "eval", Some(duration)) = (kind, record.get("duration_ms").and_then(Value::as_u64)) {
            self.span(kind, record, time, duration);
        }
        if self.waiting >= BATCH {
            self.flush();
        }
    }

    fn point(&mut self, name: String, time_unix_nano: u64, value: f64) {
        self.points.entry(name).or_default().push(NumberDataPoint {
            time_unix_nano,
            value: Some(number_data_point::Value::AsDouble(value)),
            ..NumberDataPoint::default()
        });
        self.waiting += 1;
        self.items += 1;
    }

    fn span(&mut self, kind: &str, record: &Map<String, Value>, end: u64, duration_ms: u64) {
        let attributes = record.iter().filter_map(|(key, value)| {
            let value = any_value::Value::DoubleValue(value.as_f64()?);
            Some(KeyValue {
                key: key.clone(),
                value: Some(AnyValue { value: Some(value) }),
                ..KeyValue::default()
            })
        });
        self.spans.push(Span {
            name: kind.to_owned(),
            trace_id: u128::from(end).to_be_bytes().to_vec(),
            span_id: end.to_be_bytes().to_vec(),
            start_time_unix_nano: end - duration_ms * 1_000_000,
            end_time_unix_nano: end,
            attributes: attributes.collect(),
            ..Span::default()
        });
        self.waiting += 1;
        self.items += 1;
    }

    fn flush(&mut self) {
        let metrics = self.points.drain().map(|(name, data_points)| Metric {
            name,
            data: Some(metric::Data::Gauge(Gauge { data_points })),
            ..Metric::default()
        });
        let metrics = MetricsData {
            resource_metrics: vec![ResourceMetrics {
                scope_metrics: vec![ScopeMetrics {
                    metrics: metrics.collect(),
                    ..ScopeMetrics::default()
                }],
                ..ResourceMetrics::default()
            }],
        };
        let spans = TracesData {
            resource_spans: vec![ResourceSpans {
                scope_spans: vec![ScopeSpans {
                    spans: std::mem::take(&mut self.spans),
                    ..ScopeSpans::default()
                }],
                ..ResourceSpans::default()
            }],
        };
        std::hint::black_box((metrics.encode_to_vec(), spans.encode_to_vec()));
        self.waiting = 0;
    }
}

/// Parses the time of a record; every log here covers one day.
fn unix_nanos(text: &str) -> Option<u64> {
    const MIDNIGHT: u64 = 1_795_219_200;
    let clock = text.strip_prefix("2026-11-21 ")?;
    let part = |from: usize, to: usize| clock.get(from..to)?.parse::<u64>().ok();
    let seconds = part(0, 2)? * 3_600 + part(3, 5)? * 60 + part(6, 8)?;
    Some((MIDNIGHT + seconds) * 1_000_000_000 + part(9, 18)?)
}
