//! The naive reader: a regular expression or `serde_json` a line, every number a point in the structs of `opentelemetry-proto`,
//! every full batch through prost.

pub(crate) mod json;
pub(crate) mod lines;
pub(crate) mod wandb;

use std::collections::HashMap;

use opentelemetry_proto::tonic::metrics::v1::{
    Gauge, Metric, MetricsData, NumberDataPoint, ResourceMetrics, ScopeMetrics, metric::Data,
    number_data_point,
};
use prost::Message;

/// The naive reader of a format.
pub(crate) enum Naive {
    /// Regular expressions a line.
    Lines(lines::Grammar),
    /// `serde_json` a line, or on the complete file.
    Json(json::Objects),
    /// wandb's file by prost.
    Wandb,
}

/// Reads an input. Returns the number of points.
pub(crate) type Reader = Box<dyn FnMut(&[u8]) -> u64>;

impl Naive {
    /// The name of the reader in the table.
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::Lines(_) => "a regex a line, prost",
            Self::Json(objects) if objects.within.is_some() => "serde_json::Value of the file, prost",
            Self::Json(_) => "serde_json::Value a line, prost",
            Self::Wandb => "prost, serde_json a value, prost",
        }
    }

    /// The reader, with its compiled parts.
    pub(crate) fn reader(&'static self) -> Reader {
        match self {
            Self::Lines(grammar) => {
                let compiled = grammar.compile();
                Box::new(move |input| compiled.read(input))
            }
            Self::Json(objects) => Box::new(|input| objects.read(input)),
            Self::Wandb => Box::new(wandb::read),
        }
    }
}

/// About as many points as our batches have.
const BATCH: usize = 20_000;

/// Points until a batch is full.
#[derive(Default)]
pub(crate) struct Points {
    metrics: HashMap<String, Vec<NumberDataPoint>>,
    waiting: usize,
    made: u64,
}

impl Points {
    fn push(&mut self, name: &str, time_unix_nano: u64, value: f64) {
        self.metrics
            .entry(name.to_owned())
            .or_default()
            .push(NumberDataPoint {
                time_unix_nano,
                value: Some(number_data_point::Value::AsDouble(value)),
                ..NumberDataPoint::default()
            });
        self.made += 1;
        self.waiting += 1;
        if self.waiting >= BATCH {
            self.flush();
        }
    }

    /// Records the step number and the step count.
    fn push_step(&mut self, time_unix_nano: u64, step: f64) {
        self.push("step", time_unix_nano, step);
        self.push("steps", time_unix_nano, step + 1.0);
    }

    fn finish(mut self) -> u64 {
        self.flush();
        self.made
    }

    fn flush(&mut self) {
        let metrics = self.metrics.drain().map(|(name, data_points)| Metric {
            name,
            data: Some(Data::Gauge(Gauge { data_points })),
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
        std::hint::black_box(metrics.encode_to_vec());
        self.waiting = 0;
    }
}
