//! Reads event files with prost: every event, point and log record becomes a struct, and the structs become OTLP. The reader
//! verifies checksums and converts numbers and texts. It leaves out histograms, pictures and graphs.

use std::collections::HashMap;

use opentelemetry_proto::tonic::{
    common::v1::{AnyValue, KeyValue, any_value},
    logs::v1::{LogRecord, LogsData, ResourceLogs, ScopeLogs},
    metrics::v1::{
        Gauge, Metric, MetricsData, NumberDataPoint, ResourceMetrics, ScopeMetrics, metric::Data,
        number_data_point,
    },
};
use prost::Message;

#[derive(Clone, PartialEq, Message)]
struct Event {
    #[prost(double, tag = "1")]
    wall_time: f64,
    #[prost(int64, tag = "2")]
    step: i64,
    #[prost(message, optional, tag = "5")]
    summary: Option<Summary>,
}

#[derive(Clone, PartialEq, Message)]
struct Summary {
    #[prost(message, repeated, tag = "1")]
    value: Vec<SummaryValue>,
}

#[derive(Clone, PartialEq, Message)]
struct SummaryValue {
    #[prost(string, tag = "1")]
    tag: String,
    #[prost(float, optional, tag = "2")]
    simple_value: Option<f32>,
    #[prost(message, optional, tag = "8")]
    tensor: Option<Tensor>,
}

#[derive(Clone, PartialEq, Message)]
struct Tensor {
    #[prost(int32, tag = "1")]
    dtype: i32,
    #[prost(bytes = "vec", repeated, tag = "8")]
    string_val: Vec<Vec<u8>>,
}

/// The points and log records of a batch.
const BATCH: usize = 10_000;

/// The points and log records that wait for a full batch.
#[derive(Default)]
struct Waiting {
    metrics: HashMap<String, Vec<NumberDataPoint>>,
    logs: Vec<LogRecord>,
    items: usize,
}

/// Reads a complete file. Returns the number of points and log records.
pub(crate) fn read(mut file: &[u8]) -> u64 {
    let mut waiting = Waiting::default();
    let mut items = 0;
    while file.len() >= 16 {
        let len = u64::from_le_bytes(file[..8].try_into().unwrap()) as usize;
        assert_eq!(
            masked(&file[..8]),
            u32::from_le_bytes(file[8..12].try_into().unwrap())
        );
        let record = &file[12..12 + len];
        assert_eq!(
            masked(record),
            u32::from_le_bytes(file[12 + len..16 + len].try_into().unwrap())
        );
        file = &file[16 + len..];
        let event = Event::decode(record).unwrap();
        let time_unix_nano = (event.wall_time * 1e9) as u64;
        for value in event.summary.into_iter().flat_map(|summary| summary.value) {
            waiting.take(time_unix_nano, event.step, value);
        }
        if waiting.items >= BATCH {
            items += waiting.items as u64;
            waiting.send();
        }
    }
    items += waiting.items as u64;
    waiting.send();
    items
}

impl Waiting {
    fn take(&mut self, time_unix_nano: u64, step: i64, value: SummaryValue) {
        let strings = value.tensor.map(|tensor| tensor.string_val).unwrap_or_default();
        if let Some(number) = value.simple_value {
            let points = self.metrics.entry(value.tag).or_default();
            points.push(NumberDataPoint {
                time_unix_nano,
                value: Some(number_data_point::Value::AsDouble(number.into())),
                ..NumberDataPoint::default()
            });
        } else if !strings.is_empty() {
            let lines: Vec<_> = strings
                .iter()
                .map(|string| String::from_utf8_lossy(string))
                .collect();
            let attributes = vec![
                attribute("tag", any_value::Value::StringValue(value.tag)),
                attribute("step", any_value::Value::IntValue(step)),
            ];
            self.logs.push(LogRecord {
                time_unix_nano,
                event_name: "text".to_owned(),
                body: Some(any(any_value::Value::StringValue(lines.join("\n")))),
                attributes,
                ..LogRecord::default()
            });
        } else {
            return;
        }
        self.items += 1;
    }

    fn send(&mut self) {
        let log_records = std::mem::take(&mut self.logs);
        let scope = ScopeLogs {
            log_records,
            ..ScopeLogs::default()
        };
        let resource = ResourceLogs {
            scope_logs: vec![scope],
            ..ResourceLogs::default()
        };
        let resource_logs = vec![resource];
        std::hint::black_box(LogsData { resource_logs }.encode_to_vec());
        std::hint::black_box(encode(&mut self.metrics));
        self.items = 0;
    }
}

fn attribute(key: &str, value: any_value::Value) -> KeyValue {
    KeyValue {
        key: key.to_owned(),
        value: Some(any(value)),
        ..KeyValue::default()
    }
}

fn any(value: any_value::Value) -> AnyValue {
    AnyValue { value: Some(value) }
}

fn masked(bytes: &[u8]) -> u32 {
    crc32c::crc32c(bytes).rotate_right(15).wrapping_add(0xa282_ead8)
}

fn encode(metrics: &mut HashMap<String, Vec<NumberDataPoint>>) -> Vec<u8> {
    let gauge = |(name, data_points)| Metric {
        name,
        data: Some(Data::Gauge(Gauge { data_points })),
        ..Metric::default()
    };
    let scope = ScopeMetrics {
        metrics: metrics.drain().map(gauge).collect(),
        ..ScopeMetrics::default()
    };
    let resource = ResourceMetrics {
        scope_metrics: vec![scope],
        ..ResourceMetrics::default()
    };
    MetricsData {
        resource_metrics: vec![resource],
    }
    .encode_to_vec()
}
