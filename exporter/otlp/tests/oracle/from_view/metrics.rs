//! Converts views of metrics into prost types.

use opentelemetry_proto::tonic::metrics::v1::{
    self as prost, exemplar, exponential_histogram_data_point, metric, number_data_point, summary_data_point,
};
use pulsetrain_otlp::view::{
    Buckets, Exemplar, ExponentialHistogram, ExponentialHistogramPoint, Gauge, Histogram, HistogramPoint,
    Metric, MetricData, MetricsData, NumberPoint, NumberValue, ResourceMetrics, ScopeMetrics, Sum, Summary,
    SummaryPoint, ValueAtQuantile,
};

use super::{ToProst, list, one, same, text};

fields! {
    MetricsData => prost::MetricsData { resource_metrics: list }
    ResourceMetrics => prost::ResourceMetrics { resource: one, scope_metrics: list, schema_url: text }
    ScopeMetrics => prost::ScopeMetrics { scope: one, metrics: list, schema_url: text }
    Gauge => prost::Gauge { data_points: list }
    Sum => prost::Sum { data_points: list, aggregation_temporality: same, is_monotonic: same }
    Histogram => prost::Histogram { data_points: list, aggregation_temporality: same }
    ExponentialHistogram => prost::ExponentialHistogram { data_points: list, aggregation_temporality: same }
    Summary => prost::Summary { data_points: list }
    ExponentialHistogramPoint => prost::ExponentialHistogramDataPoint {
        attributes: list, start_time_unix_nano: same, time_unix_nano: same, count: same, sum: same,
        scale: same, zero_count: same, positive: one, negative: one, flags: same, exemplars: list,
        min: same, max: same, zero_threshold: same,
    }
    SummaryPoint => prost::SummaryDataPoint {
        attributes: list, start_time_unix_nano: same, time_unix_nano: same, count: same, sum: same,
        quantile_values: list, flags: same,
    }
    ValueAtQuantile => summary_data_point::ValueAtQuantile { quantile: same, value: same }
}

impl ToProst for Metric<'_> {
    type Prost = prost::Metric;

    fn to_prost(&self) -> Self::Prost {
        prost::Metric {
            name: text(self.name),
            description: text(self.description),
            unit: text(self.unit),
            metadata: list(self.metadata),
            data: self.data().map(|data| match data {
                MetricData::Gauge(data) => metric::Data::Gauge(data.to_prost()),
                MetricData::Sum(data) => metric::Data::Sum(data.to_prost()),
                MetricData::Histogram(data) => metric::Data::Histogram(data.to_prost()),
                MetricData::ExponentialHistogram(data) => metric::Data::ExponentialHistogram(data.to_prost()),
                MetricData::Summary(data) => metric::Data::Summary(data.to_prost()),
            }),
        }
    }
}

impl ToProst for NumberPoint<'_> {
    type Prost = prost::NumberDataPoint;

    fn to_prost(&self) -> Self::Prost {
        prost::NumberDataPoint {
            attributes: list(self.attributes),
            start_time_unix_nano: self.start_time_unix_nano,
            time_unix_nano: self.time_unix_nano,
            exemplars: list(self.exemplars),
            flags: self.flags,
            value: self.value().map(|value| match value {
                NumberValue::Double(value) => number_data_point::Value::AsDouble(value),
                NumberValue::Int(value) => number_data_point::Value::AsInt(value),
            }),
        }
    }
}

impl ToProst for HistogramPoint<'_> {
    type Prost = prost::HistogramDataPoint;

    fn to_prost(&self) -> Self::Prost {
        prost::HistogramDataPoint {
            attributes: list(self.attributes),
            start_time_unix_nano: self.start_time_unix_nano,
            time_unix_nano: self.time_unix_nano,
            count: self.count,
            sum: self.sum,
            bucket_counts: self.bucket_counts.iter().map(|count| count.unwrap().0).collect(),
            explicit_bounds: self.explicit_bounds.iter().map(Result::unwrap).collect(),
            exemplars: list(self.exemplars),
            flags: self.flags,
            min: self.min,
            max: self.max,
        }
    }
}

impl ToProst for Buckets<'_> {
    type Prost = exponential_histogram_data_point::Buckets;

    fn to_prost(&self) -> Self::Prost {
        exponential_histogram_data_point::Buckets {
            offset: self.offset,
            bucket_counts: self.bucket_counts.iter().map(Result::unwrap).collect(),
        }
    }
}

impl ToProst for Exemplar<'_> {
    type Prost = prost::Exemplar;

    fn to_prost(&self) -> Self::Prost {
        prost::Exemplar {
            filtered_attributes: list(self.filtered_attributes),
            time_unix_nano: self.time_unix_nano,
            span_id: self.span_id.to_vec(),
            trace_id: self.trace_id.to_vec(),
            value: self.value().map(|value| match value {
                NumberValue::Double(value) => exemplar::Value::AsDouble(value),
                NumberValue::Int(value) => exemplar::Value::AsInt(value),
            }),
        }
    }
}
