//! Event files as one would read them with prost: every event into structs, points into structs, structs into OTLP.

use std::collections::HashMap;

use opentelemetry_proto::tonic::metrics::v1::{
    Gauge, Metric, MetricsData, NumberDataPoint, ResourceMetrics, ScopeMetrics, metric::Data,
    number_data_point,
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
    #[prost(bytes = "vec", optional, tag = "8")]
    tensor: Option<Vec<u8>>,
}

/// The points of a batch.
const BATCH: usize = 10_000;

/// Reads a whole file, and says how many points came of it.
pub(crate) fn read(mut file: &[u8]) -> u64 {
    let mut metrics: HashMap<String, Vec<NumberDataPoint>> = HashMap::new();
    let (mut points, mut waiting) = (0, 0);
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
        for value in event.summary.into_iter().flat_map(|summary| summary.value) {
            let Some(number) = value.simple_value else {
                continue;
            };
            waiting += 1;
            metrics.entry(value.tag).or_default().push(NumberDataPoint {
                time_unix_nano: (event.wall_time * 1e9) as u64,
                value: Some(number_data_point::Value::AsDouble(number.into())),
                ..NumberDataPoint::default()
            });
        }
        if waiting >= BATCH {
            points += waiting as u64;
            waiting = 0;
            std::hint::black_box(encode(&mut metrics));
        }
    }
    std::hint::black_box(encode(&mut metrics));
    points + waiting as u64
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
