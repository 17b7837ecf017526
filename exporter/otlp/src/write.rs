//! The encoder: writes OTLP directly into a growing buffer.
//!
//! Points, spans and log records are encoded once, when they are recorded; [`MetricsWriter`], [`SpansWriter`] and
//! [`LogsWriter`] add the envelope (resource, scope) when a batch is full. Every length is known before it is written, so no
//! bytes are moved afterwards.

mod buffer;
mod envelope;
mod logs;
mod metrics;
pub mod span_field;
mod spans;
mod value;

pub use buffer::Buffer;
pub(crate) use buffer::{delimited_len, varint_len};
pub use envelope::{Encoded, Envelope};
pub use logs::{LogRecordParts, LogsWriter, Severity};
pub use metrics::{
    EncodedSeries, ExemplarParts, ExponentialBuckets, ExponentialParts, GrowingHistogram, HistogramParts,
    MetricsWriter, PointParts,
};
pub use spans::{SpanLink, SpanParts, SpansWriter, span_attributes};
pub use value::{Attribute, AttributeValue};

#[cfg(test)]
mod tests;
