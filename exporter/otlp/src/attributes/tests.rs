use opentelemetry_proto::tonic::{
    common::v1::{AnyValue, InstrumentationScope, KeyValue, KeyValueList, any_value::Value as Any},
    logs::v1::{LogRecord, LogsData, ResourceLogs, ScopeLogs},
    metrics::v1::{
        Exemplar, ExponentialHistogram, ExponentialHistogramDataPoint, Gauge, Histogram, HistogramDataPoint,
        Metric, MetricsData, NumberDataPoint, ResourceMetrics, ScopeMetrics, Sum, Summary, SummaryDataPoint,
        metric::Data,
    },
    resource::v1::Resource,
    trace::v1::{ResourceSpans, ScopeSpans, Span, TracesData, span},
};
use proptest::prelude::*;
use prost::Message;

use super::*;

fn hash(bytes: &[u8]) -> String {
    format!("hash of {}", String::from_utf8_lossy(bytes))
}

fn rules(rules: &[(&str, AttributeAction)]) -> AttributeRules {
    let rules = rules
        .iter()
        .map(|(key, action)| ((*key).to_owned(), action.clone()));
    AttributeRules::new(rules.collect(), hash).unwrap()
}

fn rename(to: &str) -> AttributeAction {
    AttributeAction::Rename(to.to_owned())
}

fn text(value: &str) -> Option<AnyValue> {
    Some(AnyValue {
        value: Some(Any::StringValue(value.to_owned())),
    })
}

fn attribute(key: &str, value: &str) -> KeyValue {
    KeyValue {
        key: key.to_owned(),
        value: text(value),
        ..KeyValue::default()
    }
}

/// The attributes before the rules of the tests. Keys inside a value are not matched.
fn before() -> Vec<KeyValue> {
    let inner = KeyValueList {
        values: vec![attribute("user", "inner")],
    };
    let list = KeyValue {
        value: Some(AnyValue {
            value: Some(Any::KvlistValue(inner)),
        }),
        ..attribute("list", "")
    };
    vec![
        attribute("user", "alice"),
        attribute("kept", "k"),
        attribute("host", "h"),
        attribute("node", "is replaced"),
        attribute("path", "/home/alice"),
        list,
    ]
}

fn after() -> Vec<KeyValue> {
    let mut after = before();
    after[0] = attribute("user", "hash of alice");
    after[2] = attribute("node", "h");
    after.remove(4);
    after.remove(3);
    after
}

fn test_rules() -> AttributeRules {
    rules(&[
        ("user", AttributeAction::Hash),
        ("host", rename("node")),
        ("path", AttributeAction::Drop),
    ])
}

fn resource(attributes: Vec<KeyValue>) -> Option<Resource> {
    Some(Resource {
        attributes,
        ..Resource::default()
    })
}

fn scope(attributes: Vec<KeyValue>) -> Option<InstrumentationScope> {
    Some(InstrumentationScope {
        name: "scope".to_owned(),
        attributes,
        ..InstrumentationScope::default()
    })
}

fn traces(attributes: &[KeyValue]) -> Vec<u8> {
    let attributes = || attributes.to_vec();
    let span = Span {
        name: "user".to_owned(),
        attributes: attributes(),
        events: vec![span::Event {
            attributes: attributes(),
            ..span::Event::default()
        }],
        links: vec![span::Link {
            attributes: attributes(),
            ..span::Link::default()
        }],
        ..Span::default()
    };
    TracesData {
        resource_spans: vec![ResourceSpans {
            resource: resource(attributes()),
            scope_spans: vec![ScopeSpans {
                scope: scope(attributes()),
                spans: vec![span],
                ..ScopeSpans::default()
            }],
            ..ResourceSpans::default()
        }],
    }
    .encode_to_vec()
}

fn metrics(attributes: &[KeyValue]) -> Vec<u8> {
    let attributes = || attributes.to_vec();
    let exemplars = || {
        vec![Exemplar {
            filtered_attributes: attributes(),
            ..Exemplar::default()
        }]
    };
    let number = || NumberDataPoint {
        attributes: attributes(),
        exemplars: exemplars(),
        ..NumberDataPoint::default()
    };
    let data = [
        Data::Gauge(Gauge {
            data_points: vec![number()],
        }),
        Data::Sum(Sum {
            data_points: vec![number()],
            ..Sum::default()
        }),
        Data::Histogram(Histogram {
            data_points: vec![HistogramDataPoint {
                attributes: attributes(),
                exemplars: exemplars(),
                ..HistogramDataPoint::default()
            }],
            ..Histogram::default()
        }),
        Data::ExponentialHistogram(ExponentialHistogram {
            data_points: vec![ExponentialHistogramDataPoint {
                attributes: attributes(),
                exemplars: exemplars(),
                ..ExponentialHistogramDataPoint::default()
            }],
            ..ExponentialHistogram::default()
        }),
        Data::Summary(Summary {
            data_points: vec![SummaryDataPoint {
                attributes: attributes(),
                ..SummaryDataPoint::default()
            }],
        }),
    ];
    let metric = |data| Metric {
        name: "user".to_owned(),
        metadata: attributes(),
        data: Some(data),
        ..Metric::default()
    };
    MetricsData {
        resource_metrics: vec![ResourceMetrics {
            resource: resource(attributes()),
            scope_metrics: vec![ScopeMetrics {
                scope: scope(attributes()),
                metrics: data.into_iter().map(metric).collect(),
                ..ScopeMetrics::default()
            }],
            ..ResourceMetrics::default()
        }],
    }
    .encode_to_vec()
}

/// The body contains the same keys, which stay.
fn logs(attributes: &[KeyValue]) -> Vec<u8> {
    let record = LogRecord {
        attributes: attributes.to_vec(),
        body: Some(AnyValue {
            value: Some(Any::KvlistValue(KeyValueList { values: before() })),
        }),
        ..LogRecord::default()
    };
    LogsData {
        resource_logs: vec![ResourceLogs {
            resource: resource(attributes.to_vec()),
            scope_logs: vec![ScopeLogs {
                scope: scope(attributes.to_vec()),
                log_records: vec![record],
                ..ScopeLogs::default()
            }],
            ..ResourceLogs::default()
        }],
    }
    .encode_to_vec()
}

/// A function that builds a message with the same attributes in all of its lists.
type Make = fn(&[KeyValue]) -> Vec<u8>;

const SIGNALS: [(Signal, Make); 3] = [
    (Signal::Traces, traces),
    (Signal::Metrics, metrics),
    (Signal::Logs, logs),
];

/// Decodes the message with prost, which drops the order of the fields.
fn decoded(signal: Signal, bytes: &[u8]) -> String {
    match signal {
        Signal::Traces => format!("{:?}", TracesData::decode(bytes)),
        Signal::Metrics => format!("{:?}", MetricsData::decode(bytes)),
        Signal::Logs => format!("{:?}", LogsData::decode(bytes)),
    }
}

#[test]
fn rules_apply_to_the_attributes_of_every_message_type() {
    for (signal, make) in SIGNALS {
        let changed = test_rules().apply(signal, &make(&before())).unwrap().unwrap();
        assert_eq!(
            decoded(signal, &changed),
            decoded(signal, &make(&after())),
            "{signal}"
        );
    }
}

#[test]
fn message_without_matching_keys_is_unchanged() {
    let others = [attribute("kept", "k"), attribute("node", "n")];
    for (signal, make) in SIGNALS {
        assert_eq!(test_rules().apply(signal, &make(&others)), Ok(None), "{signal}");
    }
}

#[test]
fn rename_and_hash_keep_unknown_fields_and_accept_non_string_values() {
    // KeyValue { key: "n", value: { int_value: 7 }, 9: "x" } of a resource that also has a field 99.
    let key_value = b"\x0a\x01n\x12\x02\x18\x07\x4a\x01x";
    let mut resource = Buffer::default();
    resource.delimited(1, key_value);
    resource.delimited(99, b"later");
    let mut of_resource = Buffer::default();
    of_resource.delimited(1, resource.as_slice());
    let mut data = Buffer::default();
    data.delimited(1, of_resource.as_slice());
    let renamed = rules(&[("n", rename("m"))])
        .apply(Signal::Logs, data.as_slice())
        .unwrap()
        .unwrap();
    let expected = String::from_utf8_lossy(data.as_slice()).replacen('n', "m", 1);
    assert_eq!(String::from_utf8_lossy(&renamed), expected);
    let hashed = rules(&[("n", AttributeAction::Hash)])
        .apply(Signal::Logs, data.as_slice())
        .unwrap()
        .unwrap();
    let hashed = String::from_utf8_lossy(&hashed).into_owned();
    assert!(
        hashed.contains("hash of \x18\x07") && hashed.contains("later") && hashed.contains("J\x01x"),
        "{hashed:?}"
    );
}

#[test]
fn empty_and_repeated_rule_keys_are_rejected() {
    let error = |rules: &[(&str, AttributeAction)]| {
        let rules = rules
            .iter()
            .map(|(key, action)| ((*key).to_owned(), action.clone()));
        AttributeRules::new(rules.collect(), hash).unwrap_err()
    };
    assert_eq!(
        error(&[("", AttributeAction::Drop)]),
        AttributeRuleError::EmptyKey
    );
    assert_eq!(error(&[("a", rename(""))]), AttributeRuleError::EmptyKey);
    let twice = |key: &str| AttributeRuleError::Twice { key: key.to_owned() };
    assert_eq!(
        error(&[("a", AttributeAction::Drop), ("a", AttributeAction::Hash)]),
        twice("a")
    );
    assert_eq!(error(&[("a", rename("a"))]), twice("a"));
    assert_eq!(
        error(&[("a", rename("b")), ("b", AttributeAction::Drop)]),
        twice("b")
    );
    assert_eq!(error(&[("a", rename("c")), ("b", rename("c"))]), twice("c"));
}

proptest! {
    #[test]
    fn random_attributes_match_a_reference_implementation_of_the_rules(
        list in prop::collection::vec(("[abcd]", "[a-z]{0,3}"), 0..6)
    ) {
        let mut seen = Vec::new();
        let mut list = list;
        list.retain(|(key, _)| !seen.contains(key) && { seen.push(key.clone()); true });
        let rules = rules(&[("a", AttributeAction::Drop), ("b", AttributeAction::Hash), ("c", rename("d"))]);
        let has_c = list.iter().any(|(key, _)| key == "c");
        let expected: Vec<KeyValue> = list
            .iter()
            .filter(|(key, _)| key != "a" && (key != "d" || !has_c))
            .map(|(key, value)| match key.as_str() {
                "b" => attribute("b", &hash(value.as_bytes())),
                "c" => attribute("d", value),
                _ => attribute(key, value),
            })
            .collect();
        let given: Vec<KeyValue> = list.iter().map(|(key, value)| attribute(key, value)).collect();
        for (signal, make) in SIGNALS {
            let message = make(&given);
            let changed = rules.apply(signal, &message).unwrap();
            prop_assert_eq!(changed.is_none(), expected == given);
            let changed = changed.unwrap_or(message);
            prop_assert_eq!(decoded(signal, &changed), decoded(signal, &make(&expected)));
        }
    }

    #[test]
    fn attribute_rules_never_panic_on_arbitrary_bytes(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        for (signal, _) in SIGNALS {
            let _ = test_rules().apply(signal, &bytes);
        }
    }
}
