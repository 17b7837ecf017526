//! One store, every format: the pages, byte for byte.

use super::{super::Translation, otlp::*, *};

const STEPS: [f64; 3] = [0.005, 1.0, 2_500_000.0];

/// A metric of every kind, with every character that a text format escapes.
fn world(config: &PrometheusConfig) -> World {
    let mut world = World::with(config);
    let resource = [
        ("service.namespace", "lab"),
        ("service.name", "trainer"),
        ("service.instance.id", "r1/0"),
        ("train.run.id", "r1"),
        ("train.run.name", "the \"first\" \\ run\nof all"),
        ("train.framework", "surogate"),
    ];
    let mut tokens = number(T0, T0 + SECOND, 123_456_789.0, &[]);
    tokens.exemplars = vec![exemplar(512.0, T0 + SECOND / 2, &[("train.step", "400")])];
    let mut durations = buckets(T0, T0 + SECOND, &STEPS, &[1, 2, 0, 4], 7.25);
    durations.exemplars = vec![
        exemplar(0.5, T0, &[]),
        exemplar(3e6, T0 + 1, &[("long", &"x".repeat(100))]),
    ];
    let mut native = exponential(CUMULATIVE, 9, -3, &[1, 0, 0, 2, 5]);
    if let opentelemetry_proto::tonic::metrics::v1::metric::Data::ExponentialHistogram(histogram) =
        &mut native
    {
        histogram.data_points[0].exemplars = vec![exemplar(1.0, T0 + 7, &[])];
    }
    let gpu = |index: &str, watts| number(0, T0, watts, &[("gpu.index", index)]);
    world.take(from(
        &resource,
        vec![
            metric(
                "train.loss",
                "{loss}",
                "Loss of the step.",
                gauge(vec![number(0, T0, f64::NAN, &[])]),
            ),
            metric(
                "gpu.power",
                "W",
                "Power \"drawn\" \\ now.",
                gauge(vec![gpu("0", 312.5), gpu("1", f64::INFINITY)]),
            ),
            metric("train.tokens", "{token}", "", sum(CUMULATIVE, true, vec![tokens])),
            metric(
                "queue.length",
                "{batch}",
                "",
                sum(CUMULATIVE, false, vec![number(T0, T0, -2.0, &[])]),
            ),
            metric(
                "train.step.duration",
                "s",
                "Time of a step.",
                histogram(CUMULATIVE, durations),
            ),
            metric("rl.latency", "s", "", native),
            metric("old.latency", "s", "", summary(&[(0.5, 4.0), (0.99, f64::NAN)])),
        ],
    ));
    world
}

fn text(world: &World, format: Format, escaping: Escaping) -> String {
    String::from_utf8(world.page(format, escaping)).expect("text is UTF-8")
}

#[test]
fn text_page() {
    let world = world(&PrometheusConfig::default());
    insta::assert_snapshot!(text(&world, Format::Text, Escaping::Underscores));
}

#[test]
fn open_metrics_page() {
    let world = world(&PrometheusConfig::default());
    insta::assert_snapshot!(text(&world, Format::OpenMetrics, Escaping::AllowUtf8));
}

#[test]
fn open_metrics_page_with_untranslated_names() {
    let world = world(&PrometheusConfig {
        translation: Translation::NoTranslation,
        scope_labels: true,
        ..PrometheusConfig::default()
    });
    insta::assert_snapshot!(text(&world, Format::OpenMetrics, Escaping::AllowUtf8));
}

#[test]
fn untranslated_names_are_escaped_for_clients_that_cannot_read_them() {
    let world = world(&PrometheusConfig {
        translation: Translation::NoTranslation,
        resource_labels: vec!["train.run.id".into()],
        ..PrometheusConfig::default()
    });
    for (escaping, line) in [
        (
            Escaping::Underscores,
            "gpu_power{gpu_index=\"0\",instance=\"r1/0\",job=\"lab/trainer\",train_run_id=\"r1\"} 312.5\n",
        ),
        (
            Escaping::Dots,
            "gpu_dot_power{gpu_dot_index=\"0\",instance=\"r1/0\",job=\"lab/trainer\",train_dot_run_dot_id=\"r1\"} 312.5\n",
        ),
        (
            Escaping::Values,
            "U__gpu_2e_power{U__gpu_2e_index=\"0\",instance=\"r1/0\",job=\"lab/trainer\",U__train_2e_run_2e_id=\"r1\"} 312.5\n",
        ),
        (
            Escaping::AllowUtf8,
            "{\"gpu.power\",\"gpu.index\"=\"0\",instance=\"r1/0\",job=\"lab/trainer\",\"train.run.id\"=\"r1\"} 312.5\n",
        ),
    ] {
        let page = text(&world, Format::Text, escaping);
        assert!(page.contains(line), "{page}");
    }
}

/// `io.prometheus.client`, metrics.proto, the part that the page uses.
mod client {
    #[derive(Clone, PartialEq, prost::Message)]
    pub(super) struct MetricFamily {
        #[prost(string, optional, tag = "1")]
        name: Option<String>,
        #[prost(string, optional, tag = "2")]
        help: Option<String>,
        #[prost(int32, optional, tag = "3")]
        r#type: Option<i32>,
        #[prost(message, repeated, tag = "4")]
        metric: Vec<Metric>,
        #[prost(string, optional, tag = "5")]
        unit: Option<String>,
    }
    #[derive(Clone, PartialEq, prost::Message)]
    struct Metric {
        #[prost(message, repeated, tag = "1")]
        label: Vec<LabelPair>,
        #[prost(message, optional, tag = "2")]
        gauge: Option<Value>,
        #[prost(message, optional, tag = "3")]
        counter: Option<Counter>,
        #[prost(message, optional, tag = "4")]
        summary: Option<Summary>,
        #[prost(message, optional, tag = "7")]
        histogram: Option<Histogram>,
    }
    #[derive(Clone, PartialEq, prost::Message)]
    struct LabelPair {
        #[prost(string, optional, tag = "1")]
        name: Option<String>,
        #[prost(string, optional, tag = "2")]
        value: Option<String>,
    }
    #[derive(Clone, PartialEq, prost::Message)]
    struct Value {
        #[prost(double, optional, tag = "1")]
        value: Option<f64>,
    }
    #[derive(Clone, PartialEq, prost::Message)]
    struct Counter {
        #[prost(double, optional, tag = "1")]
        value: Option<f64>,
        #[prost(message, optional, tag = "2")]
        exemplar: Option<Exemplar>,
        #[prost(message, optional, tag = "3")]
        created_timestamp: Option<Timestamp>,
    }
    #[derive(Clone, PartialEq, prost::Message)]
    struct Summary {
        #[prost(uint64, optional, tag = "1")]
        sample_count: Option<u64>,
        #[prost(double, optional, tag = "2")]
        sample_sum: Option<f64>,
        #[prost(message, repeated, tag = "3")]
        quantile: Vec<Quantile>,
    }
    #[derive(Clone, PartialEq, prost::Message)]
    struct Quantile {
        #[prost(double, optional, tag = "1")]
        quantile: Option<f64>,
        #[prost(double, optional, tag = "2")]
        value: Option<f64>,
    }
    #[derive(Clone, PartialEq, prost::Message)]
    struct Histogram {
        #[prost(uint64, optional, tag = "1")]
        sample_count: Option<u64>,
        #[prost(double, optional, tag = "2")]
        sample_sum: Option<f64>,
        #[prost(message, repeated, tag = "3")]
        bucket: Vec<Bucket>,
        #[prost(sint32, optional, tag = "5")]
        schema: Option<i32>,
        #[prost(double, optional, tag = "6")]
        zero_threshold: Option<f64>,
        #[prost(uint64, optional, tag = "7")]
        zero_count: Option<u64>,
        #[prost(message, repeated, tag = "9")]
        negative_span: Vec<Span>,
        #[prost(sint64, repeated, tag = "10")]
        negative_delta: Vec<i64>,
        #[prost(message, repeated, tag = "12")]
        positive_span: Vec<Span>,
        #[prost(sint64, repeated, tag = "13")]
        positive_delta: Vec<i64>,
        #[prost(message, optional, tag = "15")]
        created_timestamp: Option<Timestamp>,
        #[prost(message, repeated, tag = "16")]
        exemplars: Vec<Exemplar>,
    }
    #[derive(Clone, PartialEq, prost::Message)]
    struct Bucket {
        #[prost(uint64, optional, tag = "1")]
        cumulative_count: Option<u64>,
        #[prost(double, optional, tag = "2")]
        upper_bound: Option<f64>,
        #[prost(message, optional, tag = "3")]
        exemplar: Option<Exemplar>,
    }
    #[derive(Clone, PartialEq, prost::Message)]
    struct Span {
        #[prost(sint32, optional, tag = "1")]
        offset: Option<i32>,
        #[prost(uint32, optional, tag = "2")]
        length: Option<u32>,
    }
    #[derive(Clone, PartialEq, prost::Message)]
    struct Exemplar {
        #[prost(message, repeated, tag = "1")]
        label: Vec<LabelPair>,
        #[prost(double, optional, tag = "2")]
        value: Option<f64>,
        #[prost(message, optional, tag = "3")]
        timestamp: Option<Timestamp>,
    }
    #[derive(Clone, PartialEq, prost::Message)]
    struct Timestamp {
        #[prost(int64, tag = "1")]
        seconds: i64,
        #[prost(int32, tag = "2")]
        nanos: i32,
    }
}

#[test]
fn protobuf_page() {
    use prost::Message;
    let world = world(&PrometheusConfig::default());
    let page = world.page(Format::Protobuf, Escaping::AllowUtf8);
    let mut rest = page.as_slice();
    let mut families = Vec::new();
    while !rest.is_empty() {
        families.push(client::MetricFamily::decode_length_delimited(&mut rest).expect("a family"));
    }
    insta::assert_debug_snapshot!(families);
}
