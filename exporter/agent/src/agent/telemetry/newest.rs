//! The time of the newest item of a batch.

use pulsetrain_otlp::{
    Signal, UnixNanos,
    view::{LogsData, Message, MetricData, MetricsData, TracesData},
};
use pulsetrain_pipeline::Batch;

/// Returns the time of the newest item, or `None` if no item has a time. Invalid items count as without time.
pub(super) fn newest(batch: &Batch) -> Option<UnixNanos> {
    let newest = match batch.signal() {
        Signal::Metrics => MetricsData::decode(batch.bytes())
            .ok()
            .and_then(|data| of_metrics(&data)),
        Signal::Traces => TracesData::decode(batch.bytes())
            .ok()
            .and_then(|data| of_spans(&data)),
        Signal::Logs => LogsData::decode(batch.bytes())
            .ok()
            .and_then(|data| of_logs(&data)),
    };
    newest.map(UnixNanos).filter(|time| time.is_known())
}

fn of_metrics(data: &MetricsData<'_>) -> Option<u64> {
    let scopes = data
        .resource_metrics
        .into_iter()
        .flatten()
        .flat_map(|resource| resource.scope_metrics);
    let metrics = scopes.flatten().flat_map(|scope| scope.metrics);
    metrics
        .flatten()
        .filter_map(|metric| of_points(metric.data()?))
        .max()
}

fn of_points(data: MetricData<'_>) -> Option<u64> {
    macro_rules! newest {
        ($data:expr) => {
            ($data.data_points.into_iter().flatten())
                .map(|point| point.time_unix_nano)
                .max()
        };
    }
    match data {
        MetricData::Gauge(data) => newest!(data),
        MetricData::Sum(data) => newest!(data),
        MetricData::Histogram(data) => newest!(data),
        MetricData::ExponentialHistogram(data) => newest!(data),
        // The agent does not produce these types.
        MetricData::Summary(_) => None,
    }
}

fn of_spans(data: &TracesData<'_>) -> Option<u64> {
    let scopes = data
        .resource_spans
        .into_iter()
        .flatten()
        .flat_map(|resource| resource.scope_spans);
    let spans = scopes.flatten().flat_map(|scope| scope.spans);
    spans.flatten().map(|span| span.end_time_unix_nano).max()
}

fn of_logs(data: &LogsData<'_>) -> Option<u64> {
    let scopes = data
        .resource_logs
        .into_iter()
        .flatten()
        .flat_map(|resource| resource.scope_logs);
    let records = scopes.flatten().flat_map(|scope| scope.log_records);
    records.flatten().map(|record| record.time_unix_nano).max()
}
