//! Every typed instrument, built on a real SDK's meter, is exported with its definition's name, unit and bounds.

use std::collections::BTreeMap;

use opentelemetry::metrics::MeterProvider as _;
use opentelemetry_sdk::metrics::data::{AggregatedMetrics, MetricData};
use opentelemetry_sdk::metrics::{InMemoryMetricExporter, PeriodicReader, SdkMeterProvider};

use crate::instruments::record_one_of_each;
use crate::{Instrument, Metric, Number, metric};

/// The metadata of an instrument as the SDK exports it.
#[derive(Debug, PartialEq)]
struct Exported {
    unit: String,
    description: String,
    instrument: Instrument,
    number: Number,
    bounds: Vec<f64>,
}

impl Exported {
    fn expected(metric: &Metric) -> Self {
        Self {
            unit: metric.unit.to_owned(),
            description: metric.brief.to_owned(),
            instrument: metric.instrument,
            number: metric.number,
            bounds: metric.bounds.to_vec(),
        }
    }

    fn seen(metric: &opentelemetry_sdk::metrics::data::Metric) -> Self {
        let (number, (instrument, bounds)) = match metric.data() {
            AggregatedMetrics::F64(data) => (Number::Double, aggregation(data)),
            AggregatedMetrics::U64(data) => (Number::Int, aggregation(data)),
            AggregatedMetrics::I64(data) => (Number::Int, aggregation(data)),
        };
        Self {
            unit: metric.unit().to_owned(),
            description: metric.description().to_owned(),
            instrument,
            number,
            bounds,
        }
    }
}

fn aggregation<T>(data: &MetricData<T>) -> (Instrument, Vec<f64>) {
    match data {
        MetricData::Gauge(_) => (Instrument::Gauge, Vec::new()),
        MetricData::Sum(sum) if sum.is_monotonic() => (Instrument::Counter, Vec::new()),
        MetricData::Sum(_) => (Instrument::UpDownCounter, Vec::new()),
        MetricData::Histogram(histogram) => {
            let point = histogram.data_points().next().expect("one point");
            (Instrument::Histogram, point.bounds().collect())
        }
        MetricData::ExponentialHistogram(_) => panic!("no instrument asks for exponential buckets"),
    }
}

#[test]
fn every_exported_instrument_matches_its_definition() {
    let exporter = InMemoryMetricExporter::default();
    let reader = PeriodicReader::builder(exporter.clone()).build();
    let provider = SdkMeterProvider::builder().with_reader(reader).build();
    record_one_of_each(&provider.meter("pulsetrain"));
    provider.force_flush().expect("flushed");

    let exports = exporter.get_finished_metrics().expect("exported");
    let seen: BTreeMap<String, Exported> = exports
        .iter()
        .flat_map(|export| export.scope_metrics())
        .flat_map(|scope| scope.metrics())
        .map(|metric| (metric.name().to_owned(), Exported::seen(metric)))
        .collect();
    let expected: BTreeMap<String, Exported> = metric::ALL
        .iter()
        .map(|metric| (metric.name.to_owned(), Exported::expected(metric)))
        .collect();
    assert_eq!(seen, expected);
}
