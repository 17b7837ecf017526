//! Re-encodes bytes with prost: a field that occurs twice is merged, and unknown fields are dropped.

use opentelemetry_proto::tonic::{logs::v1::LogsData, metrics::v1::MetricsData, trace::v1::TracesData};
use prost::Message;
use pulsetrain_otlp::Signal;

/// Returns the re-encoded bytes, or `None` if prost cannot decode them.
pub(crate) fn through_prost(signal: Signal, bytes: &[u8]) -> Option<Vec<u8>> {
    match signal {
        Signal::Traces => TracesData::decode(bytes).ok().map(|data| data.encode_to_vec()),
        Signal::Metrics => MetricsData::decode(bytes).ok().map(|data| data.encode_to_vec()),
        Signal::Logs => LogsData::decode(bytes).ok().map(|data| data.encode_to_vec()),
    }
}
