//! The parts of a split message contain the same items, with all enclosing fields, as the message did.

use opentelemetry_proto::tonic::{
    logs::v1::{LogsData, ResourceLogs, ScopeLogs},
    metrics::v1::{Metric, MetricsData, ResourceMetrics, ScopeMetrics, metric::Data},
    trace::v1::{ResourceSpans, ScopeSpans, TracesData},
};
use proptest::prelude::*;
use prost::Message;
use pulsetrain_otlp::{
    Signal,
    limits::{Limits, check},
    split::{Part, split},
};

use crate::{config, generate::Shape, messages, seeds};

proptest! {
    #![proptest_config(config())]

    #[test]
    fn parts_fit_the_limit_and_keep_all_items_in_order(seed in seeds(), share in 1_usize..12) {
        for (signal, message) in messages(&seed, Shape::Any) {
            let max = message.len() / share + 1;
            let parts = split(signal, &message, max).unwrap();
            if parts.is_empty() {
                continue;
            }
            let together: Vec<Vec<u8>> = parts.iter().flat_map(|part| chains(signal, &part.bytes)).collect();
            prop_assert_eq!(&together, &chains(signal, &message));
            for part in &parts {
                prop_assert!(part.bytes.len() <= max || chains(signal, &part.bytes).len() == 1);
                prop_assert_eq!(u64::from(part.items), items(signal, &part.bytes));
            }
            let sum: u64 = parts.iter().map(|Part { items, .. }| u64::from(*items)).sum();
            prop_assert_eq!(sum, items(signal, &message));
        }
    }
}

#[test]
fn most_messages_with_several_items_are_split() {
    let mut state = 1_u32;
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 24) as u8
    };
    let (mut several, mut are_split) = (0, 0);
    for _ in 0..100 {
        let seed: Vec<u8> = (0..3000).map(|_| next()).collect();
        for (signal, message) in messages(&seed, Shape::Any) {
            if items(signal, &message) > 1 {
                several += 1;
                are_split += usize::from(!split(signal, &message, message.len() / 2).unwrap().is_empty());
            }
        }
    }
    assert!(
        several > 50 && are_split > several * 3 / 4,
        "{are_split} of {several}"
    );
}

fn items(signal: Signal, message: &[u8]) -> u64 {
    check(signal, message, &Limits::default()).unwrap().items
}

/// Returns every item with its enclosing messages, and every message without items, each as a message of its own.
fn chains(signal: Signal, message: &[u8]) -> Vec<Vec<u8>> {
    // The lists of each message, from the outermost to the items, and the function that returns the items of an element.
    macro_rules! chains {
        ($data:ident.$resources:ident, $resource:ident.$scopes:ident, $scope:ident.$items:ident, $each:expr) => {{
            let mut chains = Vec::new();
            for resource in $data::decode(message).unwrap().$resources {
                let around = |$scopes| $data {
                    $resources: vec![$resource {
                        resource: resource.resource.clone(),
                        schema_url: resource.schema_url.clone(),
                        $scopes,
                    }],
                };
                if resource.$scopes.is_empty() {
                    chains.push(around(Vec::new()).encode_to_vec());
                }
                for scope in &resource.$scopes {
                    let one = |$items| $scope {
                        scope: scope.scope.clone(),
                        schema_url: scope.schema_url.clone(),
                        $items,
                    };
                    if scope.$items.is_empty() {
                        chains.push(around(vec![one(Vec::new())]).encode_to_vec());
                    }
                    let items = scope.$items.iter().flat_map($each);
                    chains.extend(items.map(|item| around(vec![one(vec![item])]).encode_to_vec()));
                }
            }
            chains
        }};
    }
    match signal {
        Signal::Traces => chains!(
            TracesData.resource_spans,
            ResourceSpans.scope_spans,
            ScopeSpans.spans,
            |span| [span.clone()]
        ),
        Signal::Metrics => chains!(
            MetricsData.resource_metrics,
            ResourceMetrics.scope_metrics,
            ScopeMetrics.metrics,
            one_point_each
        ),
        Signal::Logs => chains!(
            LogsData.resource_logs,
            ResourceLogs.scope_logs,
            ScopeLogs.log_records,
            |record| [record.clone()]
        ),
    }
}

/// Returns the metric once for each of its points, or unchanged if it has no points.
fn one_point_each(metric: &Metric) -> Vec<Metric> {
    let with = |data| Metric {
        data: Some(data),
        ..metric.clone()
    };
    macro_rules! each {
        ($kind:ident, $data:expr) => {{
            let points = $data.data_points.iter().cloned();
            let one = points.map(|point| {
                let mut data = $data.clone();
                data.data_points = vec![point];
                with(Data::$kind(data))
            });
            one.collect::<Vec<_>>()
        }};
    }
    let metrics = match &metric.data {
        None => Vec::new(),
        Some(Data::Gauge(data)) => each!(Gauge, data),
        Some(Data::Sum(data)) => each!(Sum, data),
        Some(Data::Histogram(data)) => each!(Histogram, data),
        Some(Data::ExponentialHistogram(data)) => each!(ExponentialHistogram, data),
        Some(Data::Summary(data)) => each!(Summary, data),
    };
    if metrics.is_empty() {
        vec![metric.clone()]
    } else {
        metrics
    }
}
