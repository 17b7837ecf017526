//! Decodes histograms of both generations: `HistogramProto` of TF 1 and torch, and the (left, right, count) tensor of TF 2.

use pulsetrain_otlp::wire::{Field, Reader, WireError, WireValue};

use crate::tags::Distribution;

/// The last limit of a `HistogramProto` of TF 1 and tensorboardX, which represents infinity.
const OPEN_END: f64 = 1.79e308;

/// Parses a `HistogramProto` (`tensorflow/core/framework/summary.proto`).
pub(super) fn parse(bytes: &[u8]) -> Result<Distribution, WireError> {
    let mut distribution = Distribution {
        sum: f64::NAN,
        ..Distribution::default()
    };
    let (mut limits, mut counts) = (Vec::new(), Vec::new());
    for field in Reader::new(bytes) {
        let Field { number, value } = field?;
        match (number, value) {
            (1, WireValue::Fixed64(bits)) => distribution.min = f64::from_bits(bits),
            (2, WireValue::Fixed64(bits)) => distribution.max = f64::from_bits(bits),
            (4, WireValue::Fixed64(bits)) => distribution.sum = f64::from_bits(bits),
            (6, value) => take_doubles(value, &mut limits),
            (7, value) => take_doubles(value, &mut counts),
            _ => {}
        }
    }
    distribution.bucket_counts = counts.into_iter().map(|count| count.round() as u64).collect();
    if limits.last().is_some_and(|last| *last >= OPEN_END) {
        limits.pop();
    } else {
        // Nothing is above the last limit; every histogram of OTLP has a bucket for it.
        distribution.bucket_counts.push(0);
    }
    distribution.bounds = limits;
    Ok(distribution)
}

/// Converts a TF 2 tensor of consecutive rows of left edge, right edge and count.
pub(super) fn of_rows(numbers: &[f64]) -> Distribution {
    let rows = numbers.chunks_exact(3).filter_map(|row| row.first_chunk::<3>());
    let (mut edges, mut counts) = (Vec::new(), Vec::new());
    for [left, right, count] in rows {
        if edges.is_empty() {
            edges.push(*left);
        }
        edges.push(*right);
        counts.push(*count);
    }
    Distribution::between(edges, &counts)
}

fn take_doubles(value: WireValue<'_>, doubles: &mut Vec<f64>) {
    match value {
        WireValue::Fixed64(bits) => doubles.push(f64::from_bits(bits)),
        WireValue::Bytes(packed) => doubles.extend(
            packed
                .chunks_exact(8)
                .filter_map(|chunk| chunk.first_chunk::<8>())
                .map(|chunk| f64::from_le_bytes(*chunk)),
        ),
        _ => {}
    }
}
