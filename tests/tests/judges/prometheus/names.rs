//! The same names through three paths into Prometheus: scraped from us, scraped from the Collector's exporter, and pushed as
//! OTLP.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
    process::Command,
};

use pulsetrain_otlp::{
    UnixNanos,
    view::NumberValue,
    write::{Attribute, AttributeValue as OtlpValue, Envelope, HistogramParts, MetricsWriter, PointParts},
};
use pulsetrain_semconv::{AttributeKind, Instrument, Metric, metric, prometheus_label};
use pulsetrain_tests::{
    Folder, Judge, Process, Prometheus, free_port,
    http::{is_open, push_otlp},
    some_or_return, unix_nanos, wait_until,
};

use crate::prometheus::endpoint::Endpoint;

const RESOURCE: [(&str, &str); 5] = [
    ("service.namespace", "lab"),
    ("service.name", "trainer"),
    ("service.instance.id", "run-1/0"),
    ("train.run.id", "run-1"),
    ("train.framework", "surogate"),
];

/// A series: its labels, including its name.
type Series = BTreeMap<String, String>;

#[test]
fn every_registry_metric_has_the_same_series_via_scrape_and_collector() {
    let program = some_or_return!(Judge::Prometheus.require_or_skip());
    let collector = some_or_return!(Judge::Collector.require_or_skip());
    let keys = RESOURCE.map(|(key, _)| key);
    let mut endpoint = Endpoint::start(&keys);
    let (collector, receiver, page) = start_collector(&collector);
    let targets = [
        ("ours", endpoint.address()),
        ("collector", format!("127.0.0.1:{page}")),
    ];
    let prometheus = Prometheus::start(&program, &targets, &keys);
    for batch in one_of_each(&RESOURCE) {
        endpoint.take(&batch);
        push_otlp(receiver, "/v1/metrics", "", &batch);
        prometheus.push(&batch);
    }
    let expected = metric::ALL.len();
    wait_until("Prometheus has scraped every metric by each way", || {
        ["ours", "collector", ""]
            .iter()
            .all(|via| families(&prometheus, via) >= expected)
    });
    let [ours, theirs, pushed] = ["ours", "collector", ""].map(|via| series(&prometheus, via));
    assert_same(&ours, &theirs, "the Collector's exporter");
    assert_same(&ours, &pushed, "Prometheus' OTLP receiver");
    let ours: BTreeSet<Series> = ours
        .into_iter()
        .filter(|labels| labels["__name__"] != "target_info")
        .collect();
    assert_same(&ours, &expected_series(), "the registry");
    drop(collector);
}

/// Returns the expected series of [`one_of_each`]: every metric, every attribute, every bucket.
fn expected_series() -> BTreeSet<Series> {
    for instrument in [
        Instrument::Counter,
        Instrument::Gauge,
        Instrument::Histogram,
        Instrument::UpDownCounter,
    ] {
        assert!(metric::ALL.iter().any(|metric| metric.instrument == instrument));
    }
    metric::ALL
        .iter()
        .flat_map(|metric| expected_of(metric))
        .collect()
}

fn expected_of(metric: &Metric) -> Vec<Series> {
    let mut labels: Series = RESOURCE
        .iter()
        .map(|(key, value)| (prometheus_label(key), (*value).to_owned()))
        .collect();
    labels.insert("job".to_owned(), "lab/trainer".to_owned());
    labels.insert("instance".to_owned(), "run-1/0".to_owned());
    for used in metric.attributes {
        let value = match attribute(used.attribute, &RESOURCE).1 {
            OtlpValue::Text(text) => text.to_owned(),
            OtlpValue::Int(number) => number.to_string(),
            OtlpValue::Double(number) => number.to_string(),
            OtlpValue::Bool(truth) => truth.to_string(),
            other => panic!("no attribute is written as {other:?}"),
        };
        labels.insert(prometheus_label(used.attribute.name), value);
    }
    let named = |suffix: &str, bound: Option<f64>| {
        let mut labels = labels.clone();
        labels.insert(
            "__name__".to_owned(),
            format!("{}{suffix}", metric.prometheus_name),
        );
        labels.extend(bound.map(|bound| ("le".to_owned(), bound.to_string())));
        labels
    };
    if metric.instrument != Instrument::Histogram {
        return vec![named("", None)];
    }
    let bounds = bounds(metric).iter().copied().chain([f64::INFINITY]);
    let buckets = bounds.map(|bound| named("_bucket", Some(bound)));
    buckets
        .chain([named("_sum", None), named("_count", None)])
        .collect()
}

/// Returns the bounds of a histogram; for a metric without bounds, those of its points.
fn bounds(metric: &Metric) -> &'static [f64] {
    if metric.bounds.is_empty() {
        &[0.5, 1.0]
    } else {
        metric.bounds
    }
}

/// Returns one point of every metric of the registry, with all its attributes.
pub(crate) fn one_of_each(resource: &[(&str, &'static str)]) -> Vec<Vec<u8>> {
    let values: Vec<_> = resource
        .iter()
        .map(|(key, value)| (*key, OtlpValue::Text(value)))
        .collect();
    let envelope = Envelope::new(&values, "test", "1", "");
    let mut writer = MetricsWriter::default();
    for metric in metric::ALL {
        write(metric, resource, &mut writer);
    }
    writer
        .finish(&envelope)
        .into_iter()
        .map(|encoded| encoded.bytes)
        .collect()
}

fn write(metric: &'static Metric, resource: &[(&str, &'static str)], writer: &mut MetricsWriter) {
    let attributes: Vec<_> = metric
        .attributes
        .iter()
        .map(|used| attribute(used.attribute, resource))
        .collect();
    let sum = metric.instrument != Instrument::Gauge;
    let point = PointParts {
        start_unix_nanos: if sum {
            UnixNanos(unix_nanos() - 60_000_000_000)
        } else {
            UnixNanos::UNKNOWN
        },
        time_unix_nanos: UnixNanos(unix_nanos()),
        attributes: &attributes,
    };
    if metric.instrument == Instrument::Histogram {
        let bounds = bounds(metric);
        let buckets: Vec<u64> = (0..=bounds.len() as u64).collect();
        let parts = HistogramParts {
            count: buckets.iter().sum(),
            sum: 1.5,
            min: 0.1,
            max: 0.2,
            bucket_counts: &buckets,
        };
        writer.distribution(metric, point, parts, bounds);
    } else {
        writer.number(metric, point, NumberValue::Double(0.5));
    }
}

/// Returns a value of the attribute's type; an attribute that the resource also has gets the same value, as in the series of
/// one run.
fn attribute(
    attribute: &'static pulsetrain_semconv::Attribute,
    resource: &[(&str, &'static str)],
) -> Attribute<'static> {
    let of_resource = resource.iter().find(|(key, _)| *key == attribute.name);
    let value = match attribute.kind {
        _ if let Some((_, value)) = of_resource => OtlpValue::Text(value),
        AttributeKind::Int => OtlpValue::Int(3),
        AttributeKind::Double => OtlpValue::Double(0.5),
        AttributeKind::Boolean => OtlpValue::Bool(true),
        AttributeKind::Enum(members) => OtlpValue::Text(members[0]),
        _ => OtlpValue::Text("some \"text\""),
    };
    (attribute, value)
}

/// Returns the number of families that Prometheus has through one path.
fn families(prometheus: &Prometheus, via: &str) -> usize {
    let names: BTreeSet<_> = series(prometheus, via)
        .into_iter()
        .filter_map(|mut labels| labels.remove("__name__"))
        .map(|name| {
            let family = ["_bucket", "_sum", "_count"]
                .iter()
                .find_map(|suffix| name.strip_suffix(suffix));
            family
                .filter(|family| metric::ALL.iter().any(|metric| metric.prometheus_name == *family))
                .map_or(name.clone(), str::to_owned)
        })
        .collect();
    names.iter().filter(|name| *name != "target_info").count()
}

/// Returns the series that Prometheus has through one path, without the label of that path and without its own series.
fn series(prometheus: &Prometheus, via: &str) -> BTreeSet<Series> {
    let of_scrapes = |labels: &Series| {
        let name = &labels["__name__"];
        name == "up" || name.starts_with("scrape_")
    };
    prometheus
        .series(&format!("{{__name__!=\"\",via=\"{via}\"}}"))
        .into_iter()
        .map(|labels| serde_json::from_value::<Series>(labels).expect("labels are text"))
        .filter(|labels| !of_scrapes(labels))
        .map(|mut labels| {
            labels.remove("via");
            // Prometheus itself writes a bound in two forms: 1 if it is pushed, 1.0 if it is scraped.
            if let Some(bound) = labels.get_mut("le") {
                *bound = bound
                    .replace("Inf", "inf")
                    .parse::<f64>()
                    .expect("a bound is a number")
                    .to_string();
            }
            labels
        })
        .collect()
}

fn assert_same(ours: &BTreeSet<Series>, theirs: &BTreeSet<Series>, who: &str) {
    let (only_ours, only_theirs): (Vec<_>, Vec<_>) = (
        ours.difference(theirs).take(5).collect(),
        theirs.difference(ours).take(5).collect(),
    );
    assert!(
        only_ours.is_empty() && only_theirs.is_empty(),
        "not the same as {who}: only ours {only_ours:#?}, only theirs {only_theirs:#?}"
    );
}

/// Starts a Collector with its Prometheus exporter: the process, the port of its OTLP receiver, and that of its page.
fn start_collector(program: &Path) -> (Process, u16, u16) {
    let folder = Folder::new();
    let [receiver, page] = [free_port(), free_port()];
    let text = format!(
        "receivers: {{otlp: {{protocols: {{http: {{endpoint: 127.0.0.1:{receiver}}}}}}}}}
exporters:
  prometheus:
    endpoint: 127.0.0.1:{page}
    without_scope_info: true
    resource_to_telemetry_conversion: {{enabled: true}}
service:
  telemetry: {{metrics: {{level: none}}}}
  pipelines: {{metrics: {{receivers: [otlp], exporters: [prometheus]}}}}
"
    );
    let config = folder.file("config.yaml", text);
    let mut process = Process::start("collector", Command::new(program).arg("--config").arg(config));
    process.wait_until_ready(|| [receiver, page].into_iter().all(is_open));
    (process, receiver, page)
}
