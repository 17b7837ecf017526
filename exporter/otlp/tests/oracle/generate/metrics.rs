//! Generates metrics: every kind of data, with every field of their points.

use opentelemetry_proto::tonic::metrics::v1::{
    Exemplar, ExponentialHistogram, ExponentialHistogramDataPoint, Gauge, Histogram, HistogramDataPoint,
    Metric, MetricsData, NumberDataPoint, ResourceMetrics, ScopeMetrics, Sum, Summary, SummaryDataPoint,
    exemplar, exponential_histogram_data_point::Buckets, metric::Data, number_data_point::Value,
    summary_data_point::ValueAtQuantile,
};

use super::Generator;

impl Generator<'_> {
    pub(crate) fn metrics(&mut self) -> MetricsData {
        MetricsData {
            resource_metrics: self.list(3, |this| ResourceMetrics {
                resource: this.resource(),
                scope_metrics: this.list(3, |this| ScopeMetrics {
                    scope: this.scope(),
                    metrics: this.list(4, Self::metric),
                    schema_url: this.source.text(),
                }),
                schema_url: this.source.text(),
            }),
        }
    }

    fn metric(&mut self) -> Metric {
        Metric {
            name: self.source.text(),
            description: self.source.text(),
            unit: self.source.text(),
            metadata: self.attributes(),
            data: self.data(),
        }
    }

    fn data(&mut self) -> Option<Data> {
        Some(match self.source.below(6) {
            0 => return None,
            1 => Data::Gauge(Gauge {
                data_points: self.list(4, Self::number_point),
            }),
            2 => Data::Sum(Sum {
                data_points: self.list(4, Self::number_point),
                aggregation_temporality: self.source.i32(),
                is_monotonic: self.source.chance(),
            }),
            3 => Data::Histogram(Histogram {
                data_points: self.list(4, Self::histogram_point),
                aggregation_temporality: self.source.i32(),
            }),
            4 => Data::ExponentialHistogram(ExponentialHistogram {
                data_points: self.list(4, Self::exponential_point),
                aggregation_temporality: self.source.i32(),
            }),
            _ => Data::Summary(Summary {
                data_points: self.list(4, Self::summary_point),
            }),
        })
    }

    fn number_point(&mut self) -> NumberDataPoint {
        NumberDataPoint {
            attributes: self.attributes(),
            start_time_unix_nano: self.source.u64(),
            time_unix_nano: self.source.u64(),
            exemplars: self.list(3, Self::exemplar),
            flags: self.source.u32(),
            value: match self.source.below(3) {
                0 => None,
                1 => Some(Value::AsDouble(self.double())),
                _ => Some(Value::AsInt(self.source.i64())),
            },
        }
    }

    fn histogram_point(&mut self) -> HistogramDataPoint {
        HistogramDataPoint {
            attributes: self.attributes(),
            start_time_unix_nano: self.source.u64(),
            time_unix_nano: self.source.u64(),
            count: self.source.u64(),
            sum: self.maybe(Self::double),
            bucket_counts: self.list(5, |this| this.source.u64()),
            explicit_bounds: self.list(5, Self::double),
            exemplars: self.list(3, Self::exemplar),
            flags: self.source.u32(),
            min: self.maybe(Self::double),
            max: self.maybe(Self::double),
        }
    }

    fn exponential_point(&mut self) -> ExponentialHistogramDataPoint {
        ExponentialHistogramDataPoint {
            attributes: self.attributes(),
            start_time_unix_nano: self.source.u64(),
            time_unix_nano: self.source.u64(),
            count: self.source.u64(),
            sum: self.maybe(Self::double),
            scale: self.source.i32(),
            zero_count: self.source.u64(),
            positive: self.maybe(Self::buckets),
            negative: self.maybe(Self::buckets),
            flags: self.source.u32(),
            exemplars: self.list(3, Self::exemplar),
            min: self.maybe(Self::double),
            max: self.maybe(Self::double),
            zero_threshold: self.double(),
        }
    }

    fn buckets(&mut self) -> Buckets {
        Buckets {
            offset: self.source.i32(),
            bucket_counts: self.list(5, |this| this.source.u64()),
        }
    }

    fn summary_point(&mut self) -> SummaryDataPoint {
        SummaryDataPoint {
            attributes: self.attributes(),
            start_time_unix_nano: self.source.u64(),
            time_unix_nano: self.source.u64(),
            count: self.source.u64(),
            sum: self.double(),
            quantile_values: self.list(4, |this| ValueAtQuantile {
                quantile: this.double(),
                value: this.double(),
            }),
            flags: self.source.u32(),
        }
    }

    fn exemplar(&mut self) -> Exemplar {
        Exemplar {
            filtered_attributes: self.attributes(),
            time_unix_nano: self.source.u64(),
            span_id: self.source.bytes(),
            trace_id: self.source.bytes(),
            value: match self.source.below(3) {
                0 => None,
                1 => Some(exemplar::Value::AsDouble(self.double())),
                _ => Some(exemplar::Value::AsInt(self.source.i64())),
            },
        }
    }
}
