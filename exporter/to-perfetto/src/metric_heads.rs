//! Metrics without their points. A full trace contains each once, so that its points can be converted back.

use pulsetrain_otlp::{
    wire::{Reader, WireValue},
    write::Buffer,
};

/// The fields of `Metric` that hold points (proto/metrics/v1/metrics.proto): gauge, sum, both histograms, summary.
const DATA: [u32; 5] = [5, 7, 9, 10, 11];
/// The field of the points in each of them.
const POINTS: u32 = 1;

/// A metric without its points.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct MetricHead {
    pub(super) resource: u32,
    pub(super) scope: u32,
    /// The message.
    pub(super) bytes: Vec<u8>,
}

impl MetricHead {
    /// Copies the fields of a metric except its points.
    pub(super) fn new(resource: u32, scope: u32, metric: &[u8]) -> Self {
        let mut out = Buffer::default();
        for field in Reader::new(metric).filter_map(Result::ok) {
            match field.value {
                WireValue::Bytes(data) if DATA.contains(&field.number) => {
                    let mut head = Buffer::default();
                    for field in Reader::new(data).filter_map(Result::ok) {
                        match field.value {
                            WireValue::Varint(value) if field.number != POINTS => {
                                head.uint(field.number, value);
                            }
                            _ => {}
                        }
                    }
                    out.delimited(field.number, head.as_slice());
                }
                WireValue::Bytes(bytes) => out.delimited(field.number, bytes),
                _ => {}
            }
        }
        Self {
            resource,
            scope,
            bytes: out.into_vec(),
        }
    }

    /// Returns the number of the field for its points.
    pub(super) fn data(&self) -> Option<u32> {
        let fields = Reader::new(&self.bytes).filter_map(Result::ok);
        fields
            .map(|field| field.number)
            .find(|number| DATA.contains(number))
    }
}
