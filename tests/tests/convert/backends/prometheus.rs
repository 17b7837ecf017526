//! Metrics of a real Prometheus, converted with spans of the same time range.

use std::{fs, path::Path};

use pulsetrain_tests::{Judge, Prometheus, TraceProcessor, some_or_return, wait_until};
use serde_json::{Value, json};

use crate::backends::world::{Conversion, Steps, protobuf};

const LOSSES: [&str; 4] = ["2.5", "NaN", "2.25", "-Infinity"];

/// Returns a loss for each of the first steps of rank 0, at the end of the step, and one from long before.
fn losses(first: u64) -> String {
    let point = |(step, value): (usize, &&str)| {
        let time = first + (step as u64 + 1) * 1_000_000_000;
        json!({"timeUnixNano": time.to_string(), "asDouble": value.parse::<f64>().ok().filter(|v| v.is_finite()).map_or(json!(value), |v| json!(v)),
            "attributes": [{"key": "train.component", "value": {"stringValue": "lm"}}]})
    };
    let points: Vec<Value> = LOSSES.iter().enumerate().map(point).collect();
    json!({"resourceMetrics": [{
        "resource": {"attributes": [
            {"key": "service.name", "value": {"stringValue": "trainer"}},
            {"key": "service.instance.id", "value": {"stringValue": "rank-0"}},
        ]},
        "scopeMetrics": [{"metrics": [
            {"name": "train.loss", "unit": "{loss}", "gauge": {"dataPoints": points}},
            {"name": "disk.read", "unit": "By", "sum": {"isMonotonic": true, "aggregationTemporality": 2, "dataPoints": [
                {"timeUnixNano": (first + 1_000_000_000).to_string(), "asInt": "4096"}]}},
        ]}],
    }]})
    .to_string()
}

/// Starts a Prometheus that has the losses of these steps.
fn with_losses(program: &Path, steps: &Steps) -> Prometheus {
    let prometheus = Prometheus::start(program, &[], &[]);
    prometheus.push(&protobuf(&losses(steps.first)));
    wait_until("Prometheus has the losses", || {
        prometheus.series("train_loss").len() == 1 && prometheus.series("disk_read_bytes_total").len() == 1
    });
    prometheus
}

#[test]
fn prometheus_samples_in_the_span_window_become_counters_of_their_process() {
    let program = some_or_return!(Judge::Prometheus.require_or_skip());
    let steps = Steps::new("trainer", 8);
    let prometheus = with_losses(&program, &steps);
    let url = prometheus.url();
    let asked = [
        "--prometheus",
        &url,
        "--match",
        "train_loss",
        "--match",
        "{__name__=~\"disk_.*\"}",
    ];
    let conversion = Conversion::new(&asked);
    let spans = conversion.path("spans.jsonl");
    fs::write(&spans, &steps.text).unwrap();
    let with_spans = Conversion::new(&[&asked[..], &[spans.to_str().unwrap()]].concat());

    let items = with_spans.items();
    let of_loss = items.values("train.loss");
    let expected: Vec<u64> = (1..=4).map(|step| steps.first + step * 1_000_000_000).collect();
    assert_eq!(
        of_loss.iter().map(|(time, _)| *time).collect::<Vec<_>>(),
        expected
    );
    let values: Vec<f64> = of_loss.iter().map(|(_, value)| *value).collect();
    assert!(values[0] == 2.5 && values[1].is_nan() && values[2] == 2.25 && values[3] == f64::NEG_INFINITY);
    let resource = |kind: &str, name: &str| {
        let found = items
            .of_kind(kind)
            .into_iter()
            .find(|item| item.to_string().contains(name));
        found.expect("there is one")["resource"].clone()
    };
    assert_eq!(resource("point", "train.loss"), resource("span", "rank-0"));

    let judge = some_or_return!(TraceProcessor::require_or_skip());
    with_spans.run("out.pftrace").expect_code(0);
    let [counters, units] = judge.query(
        &with_spans.path("out.pftrace"),
        [
            "select count(*) as samples, count(c.value) as numbers from counter c join counter_track t on t.id = c.track_id \
             where t.name like 'train.loss%'",
            "select unit from counter_track where name like 'disk_read%'",
        ],
    );
    assert_eq!(counters, [json!({"samples": 4, "numbers": 3})]);
    assert_eq!(units, [json!({"unit": "bytes"})]);
}

#[test]
fn empty_prometheus_match_is_reported_and_expressions_are_evaluated() {
    let program = some_or_return!(Judge::Prometheus.require_or_skip());
    let prometheus = with_losses(&program, &Steps::new("trainer", 8));
    let url = prometheus.url();
    let none = Conversion::new(&["--prometheus", &url, "--match", "nothing_of_the_kind"]);
    let finished = none.run("none.jsonl").expect_code(1);
    assert!(crate::backends::world::problems(&finished).contains("no series matches nothing_of_the_kind"));
    let twice = Conversion::new(&[
        "--prometheus",
        &url,
        "--match",
        "disk_read_bytes_total * 2",
        "--since",
        "1m",
    ]);
    let values = twice.items().values("value");
    assert!(
        !values.is_empty() && values.iter().all(|(_, value)| *value == 8192.0),
        "{values:?}"
    );
    Conversion::new(&["--prometheus", &url, "--match", "rate("])
        .run("bad.jsonl")
        .expect_code(1)
        .expect_words(&["400 Bad Request", "parse error"]);
}
