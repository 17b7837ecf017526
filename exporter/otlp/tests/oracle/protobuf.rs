//! Properties of the protobuf side: views and `check` agree with prost.

use proptest::prelude::*;
use prost::Message as _;
use pulsetrain_otlp::{
    Signal,
    frames::signal_of,
    limits::{Counts, Limits, check},
    view::{LogsData, Message, MetricsData, TracesData},
};

use crate::{
    config,
    from_view::ToProst,
    generate::Shape,
    messages,
    rearrange::{Change, rearrange},
    seeds, through_prost,
};

/// Reads a message with the views, and encodes the result with prost.
fn through_views(signal: Signal, bytes: &[u8]) -> Vec<u8> {
    match signal {
        Signal::Traces => TracesData::decode(bytes).unwrap().to_prost().encode_to_vec(),
        Signal::Metrics => MetricsData::decode(bytes).unwrap().to_prost().encode_to_vec(),
        Signal::Logs => LogsData::decode(bytes).unwrap().to_prost().encode_to_vec(),
    }
}

fn counts(signal: Signal, bytes: &[u8]) -> Counts {
    check(signal, bytes, &Limits::default()).unwrap()
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn views_read_every_field_that_prost_writes(seed in seeds()) {
        for (signal, bytes) in messages(&seed, Shape::Any) {
            prop_assert_eq!(through_views(signal, &bytes), bytes);
        }
    }

    #[test]
    fn equivalent_wire_encodings_are_read_alike_by_views_and_prost(seed in seeds()) {
        for (signal, bytes) in messages(&seed, Shape::Any) {
            for change in [Change::UnknownFields, Change::Scattered, Change::Unpacked, Change::Duplicated] {
                let other = rearrange(signal, &bytes, change);
                prop_assert_eq!(&through_prost(signal, &other).unwrap(), &bytes, "prost, {:?}", change);
                prop_assert_eq!(&through_views(signal, &other), &bytes, "views, {:?}", change);
                prop_assert_eq!(counts(signal, &other), counts(signal, &bytes), "{:?}", change);
            }
        }
    }

    #[test]
    fn item_counts_match_those_of_prost(seed in seeds()) {
        let [traces, metrics, logs] = messages(&seed, Shape::Any);
        let spans = opentelemetry_proto::tonic::trace::v1::TracesData::decode(&*traces.1).unwrap();
        let spans = spans.resource_spans.iter().flat_map(|resource| &resource.scope_spans);
        prop_assert_eq!(counts(traces.0, &traces.1).items, spans.map(|scope| scope.spans.len() as u64).sum::<u64>());
        let records = opentelemetry_proto::tonic::logs::v1::LogsData::decode(&*logs.1).unwrap();
        let records = records.resource_logs.iter().flat_map(|resource| &resource.scope_logs);
        prop_assert_eq!(counts(logs.0, &logs.1).items, records.map(|scope| scope.log_records.len() as u64).sum::<u64>());
        prop_assert_eq!(counts(metrics.0, &metrics.1).items, points(&metrics.1));
    }

    #[test]
    fn truncated_message_is_accepted_exactly_if_prost_accepts_it(seed in seeds(), cut in any::<prop::sample::Index>()) {
        for (signal, bytes) in messages(&seed, Shape::Any) {
            let cut = &bytes[..cut.index(bytes.len() + 1)];
            let prost = through_prost(signal, cut);
            prop_assert_eq!(check(signal, cut, &Limits::default()).is_ok(), prost.is_ok());
        }
    }

    #[test]
    fn signal_of_messages_with_timestamps_is_always_detected_correctly(seed in seeds()) {
        for (signal, bytes) in messages(&seed, Shape::Any) {
            let told = signal_of(&bytes);
            let has_times = match signal {
                Signal::Traces => TracesData::decode(&bytes).unwrap().to_prost().resource_spans.iter()
                    .flat_map(|resource| &resource.scope_spans).flat_map(|scope| &scope.spans)
                    .take(16).any(|span| span.start_time_unix_nano != 0),
                Signal::Logs => LogsData::decode(&bytes).unwrap().to_prost().resource_logs.iter()
                    .flat_map(|resource| &resource.scope_logs).flat_map(|scope| &scope.log_records)
                    .take(16).any(|record| record.time_unix_nano != 0),
                Signal::Metrics => false,
            };
            prop_assert!(!has_times || told == Some(signal), "{:?} was taken for {:?}", signal, told);
        }
    }
}

fn points(bytes: &[u8]) -> u64 {
    use opentelemetry_proto::tonic::metrics::v1::{MetricsData, metric::Data};
    let data = MetricsData::decode(bytes).unwrap();
    let scopes = data
        .resource_metrics
        .iter()
        .flat_map(|resource| &resource.scope_metrics);
    let metrics = scopes.flat_map(|scope| &scope.metrics);
    metrics
        .filter_map(|metric| metric.data.as_ref())
        .map(|data| match data {
            Data::Gauge(data) => data.data_points.len(),
            Data::Sum(data) => data.data_points.len(),
            Data::Histogram(data) => data.data_points.len(),
            Data::ExponentialHistogram(data) => data.data_points.len(),
            Data::Summary(data) => data.data_points.len(),
        } as u64)
        .sum()
}
