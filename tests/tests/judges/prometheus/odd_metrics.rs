//! Unusual metrics, generated from bytes: the same bytes give the same metrics.
//!
//! Names, units and values come from lists of values that have caused errors on pages before, and from the bytes themselves.
//! The fuzz target `page` includes this file by its path.

use opentelemetry_proto::tonic::{
    common::v1::{AnyValue, InstrumentationScope, KeyValue, any_value::Value},
    metrics::v1::{
        Exemplar, ExponentialHistogram, ExponentialHistogramDataPoint, Gauge, Histogram, HistogramDataPoint,
        Metric, MetricsData, NumberDataPoint, ResourceMetrics, ScopeMetrics, Sum, Summary, SummaryDataPoint,
        exemplar, exponential_histogram_data_point::Buckets, metric::Data, number_data_point,
        summary_data_point::ValueAtQuantile,
    },
    resource::v1::Resource,
};
use pulsetrain_prometheus::{PrometheusConfig, Translation};

/// Names of metrics and attributes.
const NAMES: [&str; 48] = [
    "a.b",
    "a_b",
    "a:b",
    "a..b",
    "A-b",
    "ü",
    "花火",
    "1a",
    "_",
    "__",
    "x y",
    "le",
    "l.e",
    "quantile",
    "__name__",
    "..name..",
    "_.name_:",
    "job",
    "instance",
    "j.o.b",
    "service.name",
    "service.instance.id",
    "train.attempt",
    "requests",
    "requests_total",
    "requests.total",
    "requests_created",
    "requests.created",
    "h",
    "h_count",
    "h.count",
    "h_bucket",
    "h_sum",
    "h_created",
    "target_info",
    "target",
    "target.info",
    "x_info",
    "otel_scope_name",
    "q\"q",
    "b\\b",
    "n\nn",
    "r\rr",
    "nul\0",
    "{}",
    "#",
    "",
    "pulsetrain.x",
];

const UNITS: [&str; 16] = [
    "", "s", "By", "1", "m/s", "{x}", "{x}/s", "%", "a:b", "weird:", "By/s/s", "_", "ü", "total", "ratio",
    "a\"\nb",
];

const NUMBERS: [f64; 20] = [
    0.0,
    -0.0,
    1.0,
    -1.0,
    0.5,
    2.0,
    10.0,
    1e21,
    1e-7,
    1e300,
    f64::MAX,
    f64::MIN_POSITIVE,
    5e-324,
    f64::INFINITY,
    f64::NEG_INFINITY,
    f64::NAN,
    0.1,
    100.0,
    -1e9,
    123_456_789.0,
];

const COUNTS: [u64; 8] = [0, 1, 2, 7, 1000, 1 << 53, 1 << 63, u64::MAX];

/// A time in 2024, in nanoseconds.
const T0: u64 = 1_710_000_000_000_000_000;

/// Bytes that are consumed from the start; after their end all are zero.
pub(crate) struct Bytes<'a>(pub(crate) &'a [u8]);

impl Bytes<'_> {
    /// Returns whether all bytes are used.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn byte(&mut self) -> u8 {
        let (byte, rest) = self.0.split_first().unwrap_or((&0, &[]));
        self.0 = rest;
        *byte
    }

    fn below(&mut self, limit: u8) -> usize {
        usize::from(self.byte() % limit)
    }

    fn is_one_of(&mut self, times: u8) -> bool {
        self.byte() % times == 1
    }

    fn pick<T: Copy>(&mut self, list: &[T]) -> T {
        list[usize::from(self.byte()) % list.len()]
    }

    fn list<T>(&mut self, most: u8, mut item: impl FnMut(&mut Self) -> T) -> Vec<T> {
        (0..self.below(most + 1)).map(|_| item(self)).collect()
    }

    fn number(&mut self) -> f64 {
        if self.is_one_of(6) {
            let bytes = [0; 8].map(|_: u8| self.byte());
            return f64::from_bits(u64::from_le_bytes(bytes));
        }
        self.pick(&NUMBERS)
    }

    fn time(&mut self) -> u64 {
        match self.below(6) {
            0 => 0,
            1 => u64::MAX,
            2 => 1,
            _ => T0 + self.below(200) as u64 * 1_000_000_000,
        }
    }

    fn name(&mut self) -> String {
        match self.below(8) {
            0 => {
                let bytes = self.list(6, Self::byte);
                String::from_utf8_lossy(&bytes).into_owned()
            }
            1 => format!("{}{}", self.pick(&NAMES), self.pick(&NAMES)),
            2 => self.pick(&NAMES).repeat(self.below(40)),
            _ => self.pick(&NAMES).to_owned(),
        }
    }

    fn value(&mut self) -> AnyValue {
        let value = match self.below(8) {
            0 => Value::BoolValue(true),
            1 => Value::IntValue(i64::from(self.byte()) - 5),
            2 => Value::DoubleValue(self.number()),
            3 => Value::BytesValue(self.list(4, Self::byte)),
            4 => Value::StringValue(self.name()),
            5 => Value::StringValue(String::new()),
            // Few values, so that series collide.
            _ => Value::StringValue(self.pick(&["1", "2"]).to_owned()),
        };
        AnyValue { value: Some(value) }
    }

    fn attributes(&mut self) -> Vec<KeyValue> {
        self.list(3, |bytes| KeyValue {
            key: bytes.name(),
            value: Some(bytes.value()),
            ..KeyValue::default()
        })
    }

    fn exemplars(&mut self) -> Vec<Exemplar> {
        self.list(2, |bytes| Exemplar {
            filtered_attributes: bytes.attributes(),
            time_unix_nano: bytes.time(),
            span_id: vec![bytes.byte(); 8],
            trace_id: vec![bytes.byte(); 16],
            value: Some(exemplar::Value::AsDouble(bytes.number())),
        })
    }

    fn points(&mut self) -> Vec<NumberDataPoint> {
        self.list(4, |bytes| NumberDataPoint {
            attributes: bytes.attributes(),
            start_time_unix_nano: bytes.time(),
            time_unix_nano: bytes.time(),
            exemplars: bytes.exemplars(),
            flags: u32::from(bytes.is_one_of(12)),
            value: Some(match bytes.is_one_of(4) {
                true => number_data_point::Value::AsInt(i64::from(bytes.byte()) - 20),
                false => number_data_point::Value::AsDouble(bytes.number()),
            }),
        })
    }

    fn sum(&mut self) -> Option<f64> {
        (!self.is_one_of(3)).then(|| self.number())
    }

    fn histograms(&mut self) -> Vec<HistogramDataPoint> {
        self.list(3, |bytes| {
            let mut bounds = bytes.list(4, Self::number);
            let is_sorted = !bytes.is_one_of(4);
            if is_sorted {
                bounds.sort_by(f64::total_cmp);
                bounds.dedup();
            }
            let counts = bounds.iter().map(|_| bytes.pick(&COUNTS)).collect::<Vec<_>>();
            let last = bytes.list(2, |bytes| bytes.pick(&COUNTS));
            HistogramDataPoint {
                attributes: bytes.attributes(),
                start_time_unix_nano: bytes.time(),
                time_unix_nano: bytes.time(),
                count: bytes.pick(&COUNTS),
                sum: bytes.sum(),
                bucket_counts: [counts, last].concat(),
                explicit_bounds: bounds,
                exemplars: bytes.exemplars(),
                ..HistogramDataPoint::default()
            }
        })
    }

    fn buckets(&mut self) -> Option<Buckets> {
        (!self.is_one_of(3)).then(|| Buckets {
            offset: self.pick(&[0, 1, -1, 5, -1074, 1 << 20, i32::MAX, i32::MIN]),
            bucket_counts: self.list(6, |bytes| bytes.pick(&COUNTS)),
        })
    }

    fn exponentials(&mut self) -> Vec<ExponentialHistogramDataPoint> {
        self.list(3, |bytes| ExponentialHistogramDataPoint {
            attributes: bytes.attributes(),
            start_time_unix_nano: bytes.time(),
            time_unix_nano: bytes.time(),
            count: bytes.pick(&COUNTS),
            sum: bytes.sum(),
            scale: bytes.pick(&[0, 3, 8, 20, -4, -5, -11, i32::MAX, i32::MIN]),
            zero_count: bytes.pick(&COUNTS),
            positive: bytes.buckets(),
            negative: bytes.buckets(),
            exemplars: bytes.exemplars(),
            zero_threshold: bytes.number(),
            ..ExponentialHistogramDataPoint::default()
        })
    }

    fn summaries(&mut self) -> Vec<SummaryDataPoint> {
        self.list(3, |bytes| SummaryDataPoint {
            attributes: bytes.attributes(),
            start_time_unix_nano: bytes.time(),
            time_unix_nano: bytes.time(),
            count: bytes.pick(&COUNTS),
            sum: bytes.number(),
            quantile_values: bytes.list(3, |bytes| ValueAtQuantile {
                quantile: bytes.number(),
                value: bytes.number(),
            }),
            flags: 0,
        })
    }

    fn metric(&mut self) -> Metric {
        let aggregation_temporality = self.pick(&[2, 2, 2, 1, 0]);
        let data = match self.below(6) {
            0 => Data::Gauge(Gauge {
                data_points: self.points(),
            }),
            1 | 2 => Data::Sum(Sum {
                aggregation_temporality,
                is_monotonic: !self.is_one_of(4),
                data_points: self.points(),
            }),
            3 => Data::Histogram(Histogram {
                aggregation_temporality,
                data_points: self.histograms(),
            }),
            4 => Data::ExponentialHistogram(ExponentialHistogram {
                aggregation_temporality,
                data_points: self.exponentials(),
            }),
            _ => Data::Summary(Summary {
                data_points: self.summaries(),
            }),
        };
        Metric {
            name: self.name(),
            description: self.name(),
            unit: self.pick(&UNITS).to_owned(),
            data: Some(data),
            ..Metric::default()
        }
    }

    /// Generates one message.
    pub(crate) fn metrics(&mut self) -> MetricsData {
        let resource_metrics = self.list(3, |bytes| ResourceMetrics {
            resource: Some(Resource {
                attributes: bytes.attributes(),
                ..Resource::default()
            }),
            scope_metrics: vec![ScopeMetrics {
                scope: Some(InstrumentationScope {
                    name: bytes.name(),
                    version: bytes.name(),
                    ..InstrumentationScope::default()
                }),
                metrics: bytes.list(5, Self::metric),
                schema_url: String::new(),
            }],
            schema_url: String::new(),
        });
        MetricsData { resource_metrics }
    }

    /// Generates the settings of a page.
    pub(crate) fn config(&mut self) -> PrometheusConfig {
        PrometheusConfig {
            translation: self.pick(&[
                Translation::UnderscoreEscapingWithSuffixes,
                Translation::UnderscoreEscapingWithoutSuffixes,
                Translation::NoUtf8EscapingWithSuffixes,
                Translation::NoTranslation,
            ]),
            scope_labels: self.is_one_of(2),
            resource_labels: self.list(4, Self::name),
            series_limit: self.pick(&[1000, 1000, 5]),
            max_bytes: self.pick(&[1 << 20, 1 << 20, 20_000]),
            ..PrometheusConfig::default()
        }
    }
}
