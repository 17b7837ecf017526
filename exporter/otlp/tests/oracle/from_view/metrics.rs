//! Converts views of metrics into prost types.

use opentelemetry_proto::tonic::metrics::v1::{
    self as prost, exemplar, exponential_histogram_data_point, metric, number_data_point, summary_data_point,
};
use pulsetrain_otlp::view::{
    Buckets, Exemplar, ExponentialHistogram, ExponentialHistogramPoint, Gauge, Histogram, HistogramPoint,
    Metric, MetricData, MetricsData, NumberPoint, NumberValue, ResourceMetrics, ScopeMetrics, Sum, Summary,
    SummaryPoint, ValueAtQuantile,
};

use super::{ToProst, list, one, text};

impl ToProst for MetricsData<'_> {
    type Prost = prost::MetricsData;

    fn to_prost(&self) -> Self::Prost {
        prost::MetricsData {
            resource_metrics: list(self.resource_metrics),
        }
    }
}

impl ToProst for ResourceMetrics<'_> {
    type Prost = prost::ResourceMetrics;

    fn to_prost(&self) -> Self::Prost {
        prost::ResourceMetrics {
            resource: one(self.resource),
            scope_metrics: list(self.scope_metrics),
            schema_url: text(self.schema_url),
        }
    }
}

impl ToProst for ScopeMetrics<'_> {
    type Prost = prost::ScopeMetrics;

    fn to_prost(&self) -> Self::Prost {
        prost::ScopeMetrics {
            scope: one(self.scope),
            metrics: list(self.metrics),
            schema_url: text(self.schema_url),
        }
    }
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

impl ToProst for Gauge<'_> {
    type Prost = prost::Gauge;

    fn to_prost(&self) -> Self::Prost {
        prost::Gauge {
            data_points: list(self.data_points),
        }
    }
}

impl ToProst for Sum<'_> {
    type Prost = prost::Sum;

    fn to_prost(&self) -> Self::Prost {
        prost::Sum {
            data_points: list(self.data_points),
            aggregation_temporality: self.aggregation_temporality,
            is_monotonic: self.is_monotonic,
        }
    }
}

impl ToProst for Histogram<'_> {
    type Prost = prost::Histogram;

    fn to_prost(&self) -> Self::Prost {
        prost::Histogram {
            data_points: list(self.data_points),
            aggregation_temporality: self.aggregation_temporality,
        }
    }
}

impl ToProst for ExponentialHistogram<'_> {
    type Prost = prost::ExponentialHistogram;

    fn to_prost(&self) -> Self::Prost {
        prost::ExponentialHistogram {
            data_points: list(self.data_points),
            aggregation_temporality: self.aggregation_temporality,
        }
    }
}

impl ToProst for Summary<'_> {
    type Prost = prost::Summary;

    fn to_prost(&self) -> Self::Prost {
        prost::Summary {
            data_points: list(self.data_points),
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

impl ToProst for ExponentialHistogramPoint<'_> {
    type Prost = prost::ExponentialHistogramDataPoint;

    fn to_prost(&self) -> Self::Prost {
        prost::ExponentialHistogramDataPoint {
            attributes: list(self.attributes),
            start_time_unix_nano: self.start_time_unix_nano,
            time_unix_nano: self.time_unix_nano,
            count: self.count,
            sum: self.sum,
            scale: self.scale,
            zero_count: self.zero_count,
            positive: one(self.positive),
            negative: one(self.negative),
            flags: self.flags,
            exemplars: list(self.exemplars),
            min: self.min,
            max: self.max,
            zero_threshold: self.zero_threshold,
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

impl ToProst for SummaryPoint<'_> {
    type Prost = prost::SummaryDataPoint;

    fn to_prost(&self) -> Self::Prost {
        prost::SummaryDataPoint {
            attributes: list(self.attributes),
            start_time_unix_nano: self.start_time_unix_nano,
            time_unix_nano: self.time_unix_nano,
            count: self.count,
            sum: self.sum,
            quantile_values: list(self.quantile_values),
            flags: self.flags,
        }
    }
}

impl ToProst for ValueAtQuantile<'_> {
    type Prost = summary_data_point::ValueAtQuantile;

    fn to_prost(&self) -> Self::Prost {
        summary_data_point::ValueAtQuantile {
            quantile: self.quantile,
            value: self.value,
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
