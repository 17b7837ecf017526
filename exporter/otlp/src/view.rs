//! Borrowed views over OTLP messages: every field of `opentelemetry-proto` 1.10 (traces, metrics, logs), nothing copied.
//!
//! A view reads the fields of one message; nested messages stay bytes until they are iterated. Unknown fields are skipped and
//! remain in the bytes. If a singular field occurs twice, the last one counts.

mod fields;
mod logs;
mod message;
mod metrics;
mod traces;
mod value;

pub use fields::{Fixed, Message, Packed, PackedIter, Repeated, RepeatedIter, Text, Texts};
pub use logs::{LogRecord, LogsData, ResourceLogs, ScopeLogs};
pub use metrics::{
    Buckets, Exemplar, ExponentialHistogram, ExponentialHistogramPoint, Gauge, Histogram, HistogramPoint,
    Metric, MetricData, MetricsData, NumberPoint, NumberValue, ResourceMetrics, ScopeMetrics, Sum, Summary,
    SummaryPoint, Temporality, ValueAtQuantile,
};
pub use traces::{ResourceSpans, ScopeSpans, Span, SpanEvent, SpanLink, Status, TracesData};
pub use value::{AnyValue, ArrayValue, EntityRef, InstrumentationScope, KeyValue, KeyValueList, Resource};
