//! A `WriteRequest` of remote write 1.0 in a snappy block.

use std::borrow::Cow;

use bytes::Bytes;
use pulsetrain_otlp::write::Buffer;

/// Field numbers of `prometheus.WriteRequest`, `TimeSeries`, `Label` and `Sample` (prompb/remote.proto,
/// prompb/types.proto).
const TIMESERIES: u32 = 1;
const LABELS: u32 = 1;
const SAMPLES: u32 = 2;
const LABEL_NAME: u32 = 1;
const LABEL_VALUE: u32 = 2;
const SAMPLE_VALUE: u32 = 1;
const SAMPLE_TIMESTAMP: u32 = 2;

/// The maximum literal of a snappy block with a length of two bytes.
const MAX_LITERAL_BYTES: usize = 1 << 16;
/// The tag of such a literal (<https://github.com/google/snappy/blob/main/format_description.txt>).
const LITERAL_OF_TWO_BYTES: u8 = 61 << 2;

/// A time in milliseconds since 1970, and a value.
pub(super) type Sample = (i64, f64);

/// Encodes one series. Its labels are sorted by name.
pub(super) fn push_series(labels: &[(Cow<'_, str>, Cow<'_, str>)], samples: &[Sample], request: &mut Buffer) {
    let mut series = Buffer::default();
    for (name, value) in labels {
        let mut label = Buffer::default();
        label.text(LABEL_NAME, name);
        label.text(LABEL_VALUE, value);
        series.delimited(LABELS, label.as_slice());
    }
    for (unix_millis, value) in samples {
        let mut sample = Buffer::default();
        sample.double(SAMPLE_VALUE, *value);
        sample.uint(SAMPLE_TIMESTAMP, unix_millis.cast_unsigned());
        series.delimited(SAMPLES, sample.as_slice());
    }
    request.delimited(TIMESERIES, series.as_slice());
}

/// Frames bytes as a snappy block of literals: uncompressed, but every snappy decoder reads it. Each series
/// has its labels once a request, so compression does not justify a dependency.
pub(super) fn snappy_block(bytes: &[u8]) -> Bytes {
    let mut block = Buffer::with_capacity(bytes.len() + bytes.len() / MAX_LITERAL_BYTES * 3 + 16);
    block.varint(bytes.len() as u64);
    for literal in bytes.chunks(MAX_LITERAL_BYTES) {
        let [low, high, ..] = (literal.len() - 1).to_le_bytes();
        block.append(&[LITERAL_OF_TWO_BYTES, low, high]);
        block.append(literal);
    }
    block.into_vec().into()
}
