//! Series with equal names: each is a counter with its own values and its own name.

use std::path::Path;

use pulsetrain_tests::{Folder, Items, TraceProcessor, convert, some_or_return};
use serde_json::{Value, json};

/// Returns a time in nanoseconds after 2023-11-14T22:13:20Z.
fn at(nanos: u64) -> String {
    (1_700_000_000_000_000_000 + nanos).to_string()
}

fn scope(name: &str, metrics: &Value) -> Value {
    json!({"scope": {"name": name}, "metrics": metrics})
}

/// Returns one message of metrics of one resource.
fn metrics(scopes: &Value) -> String {
    let resource = json!({"attributes": [{"key": "service.name", "value": {"stringValue": "web"}}]});
    json!({"resourceMetrics": [{"resource": resource, "scopeMetrics": scopes}]}).to_string()
}

/// Returns each value of a counter with the counter's name, by name and time.
fn counters(judge: &TraceProcessor, trace: &Path) -> Vec<String> {
    let [rows] = judge.query(
        trace,
        ["select t.name, c.value from counter c join counter_track t on t.id = c.track_id order by t.name, c.ts"],
    );
    let row = |row: &Value| format!("{} {}", row["name"].as_str().unwrap_or_default(), row["value"]);
    rows.iter().map(row).collect()
}

/// Converts metrics to a lean trace and back, and returns the name, the unit and the value of each point in the order of names.
fn converted_back(scopes: &Value) -> Vec<String> {
    let folder = Folder::new();
    let input = folder.file("in.jsonl", metrics(scopes));
    let (trace, back) = (folder.path("lean.pftrace"), folder.path("back.jsonl"));
    convert(&[&input], &trace, &[]).expect_code(0);
    convert(&[&trace], &back, &[]).expect_code(0);
    let back = Items::read(&back);
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let point = |item: &Value| {
        let [name, unit] = ["name", "unit"].map(|key| text(&item["metric"][key]));
        format!("{name} [{unit}] {}", text(&item["point"]["asInt"]))
    };
    let mut points: Vec<String> = back.of_kind("point").into_iter().map(point).collect();
    points.sort();
    points
}

/// Returns a gauge with one value.
fn gauge(name: &str, unit: &str, value: u64) -> Value {
    let point = json!({"timeUnixNano": at(value), "asInt": value.to_string()});
    json!({"name": name, "unit": unit, "gauge": {"dataPoints": [point]}})
}

#[test]
fn metrics_of_one_name_with_two_units_are_two_counters() {
    let gauges = json!([
        gauge("sent", "By", 1),
        gauge("sent", "{packet}", 2),
        gauge("sent", "{packet}/s", 3)
    ]);
    let expected = [
        "sent (By) [By] 1",
        "sent (packet) [packet] 2",
        "sent (packet/s) [packet/s] 3",
    ];
    assert_eq!(converted_back(&json!([scope("A", &gauges)])), expected);
}

/// One row cannot show the states of several GPUs, or a state without a name.
#[test]
fn states_of_several_things_and_states_without_text_are_counters() {
    let state = |name: &str, value: u64, attributes: Value| {
        let mut state = gauge(name, "{state}", value);
        state["gauge"]["dataPoints"][0]["attributes"] = attributes;
        state
    };
    let throttle = |gpu: &str| json!([{"key": "gpu", "value": {"stringValue": gpu}}, {"key": "reason", "value": {"stringValue": "power"}}]);
    let states = json!([
        state("throttle", 1, throttle("a")),
        state("throttle", 2, throttle("b")),
        state("mode", 3, json!([{"key": "mode", "value": {"intValue": "7"}}])),
        state("mode", 4, json!([])),
    ]);
    let expected = [
        "mode [state] 3",
        "mode [state] 4",
        "throttle [state] 1",
        "throttle [state] 2",
    ];
    assert_eq!(converted_back(&json!([scope("A", &states)])), expected);
}

/// A metric can have the name that another one gets, or the name and the labels of another one.
#[test]
fn names_that_differ_by_a_property_are_distinct_from_names_in_the_input() {
    let mut labelled = gauge("free", "", 5);
    labelled["gauge"]["dataPoints"][0]["attributes"] = json!([{"key": "k", "value": {"intValue": "1"}}]);
    let scopes = json!([
        scope("A", &json!([gauge("sent", "By", 1), gauge("free {k=1}", "", 4)])),
        scope(
            "B",
            &json!([gauge("sent", "By", 2), gauge("sent (A)", "By", 3), labelled])
        ),
    ]);
    let expected = [
        "free (2) [] 5",
        "free [] 4",
        "sent (A) [By] 3",
        "sent (A, 2) [By] 1",
        "sent (B) [By] 2",
    ];
    assert_eq!(converted_back(&scopes), expected);
}

#[test]
fn metrics_of_one_name_in_two_scopes_are_two_counters() {
    let folder = Folder::new();
    let sum = |values: [u64; 2], times: [u64; 2]| {
        let point = |(value, time): (u64, u64)| json!({"timeUnixNano": at(time), "asInt": value.to_string()});
        let points: Vec<Value> = values.into_iter().zip(times).map(point).collect();
        json!([{"name": "sent", "unit": "By", "sum": {"aggregationTemporality": 1, "dataPoints": points}}])
    };
    let scopes = json!([
        scope("A", &sum([1, 2], [1, 3])),
        scope("B", &sum([100, 200], [2, 4]))
    ]);
    let input = folder.file("in.jsonl", metrics(&scopes));
    let (lean, full, back) = (
        folder.path("lean.pftrace"),
        folder.path("full.pftrace"),
        folder.path("back.jsonl"),
    );
    convert(&[&input], &full, &["--attributes", "full"]).expect_code(0);
    convert(&[&full], &back, &[]).expect_code(0);
    Items::read(&back).assert_same(&Items::read(&input));
    let mapped = &convert(&[&input], &lean, &[]).expect_code(0).summary()["mapped"];
    assert_eq!(mapped["counters"], 2, "{mapped}");
    let judge = some_or_return!(TraceProcessor::require_or_skip());
    let expected = ["sent (A) 1", "sent (A) 3", "sent (B) 100", "sent (B) 300"];
    assert_eq!(counters(&judge, &lean), expected);
}

/// The schema URL is a property of the message, not of the series.
#[test]
fn schema_url_does_not_divide_a_series() {
    let folder = Folder::new();
    let gauge = |time: u64| json!([{"name": "free", "gauge": {"dataPoints": [{"timeUnixNano": at(time), "asInt": "7"}]}}]);
    let mut later = scope("A", &gauge(2));
    later["schemaUrl"] = "https://opentelemetry.io/schemas/1.30.0".into();
    let input = folder.file("in.jsonl", metrics(&json!([scope("A", &gauge(1)), later])));
    let mapped = &convert(&[&input], &folder.path("out.pftrace"), &[])
        .expect_code(0)
        .summary()["mapped"];
    assert_eq!(mapped["counters"], 1, "{mapped}");
}

#[test]
fn gauge_and_statistic_with_equal_names_are_two_counters() {
    let judge = some_or_return!(TraceProcessor::require_or_skip());
    let folder = Folder::new();
    let both = json!([
        {"name": "lat.count", "gauge": {"dataPoints": [{"timeUnixNano": at(1), "asDouble": 7}]}},
        {"name": "lat", "unit": "ms", "histogram": {"aggregationTemporality": 2, "dataPoints": [
            {"timeUnixNano": at(2), "count": "5", "bucketCounts": [], "explicitBounds": []}]}},
    ]);
    let input = folder.file("in.jsonl", metrics(&json!([scope("s", &both)])));
    let trace = folder.path("out.pftrace");
    convert(&[&input], &trace, &[]).expect_code(0);
    assert_eq!(
        counters(&judge, &trace),
        ["lat.count (gauge) 7", "lat.count (histogram) 5"]
    );
}

#[test]
fn labels_of_different_types_are_distinct_and_their_texts_convert_back() {
    let folder = Folder::new();
    let point = |value: u64, labels: &[(&str, Value)]| {
        let attributes: Vec<Value> = labels
            .iter()
            .map(|(key, value)| json!({"key": key, "value": value}))
            .collect();
        json!({"timeUnixNano": at(1), "asInt": value.to_string(), "attributes": attributes})
    };
    let text = |text: &str| json!({"stringValue": text});
    let points = json!([
        point(10, &[("k", json!({"intValue": "1"}))]),
        point(20, &[("k", text("1"))]),
        point(30, &[("k", text("a, b=c"))]),
        point(40, &[("k", text("a")), ("b", text("c"))]),
    ]);
    let gauge = json!([{"name": "g", "gauge": {"dataPoints": points}}]);
    let input = folder.file("in.jsonl", metrics(&json!([scope("s", &gauge)])));
    let (trace, back) = (folder.path("out.pftrace"), folder.path("back.jsonl"));
    convert(&[&input], &trace, &[]).expect_code(0);
    convert(&[&trace], &back, &[]).expect_code(0);
    let back = Items::read(&back);
    let labels = |value: u64| {
        let points = back.of_kind("point").into_iter();
        let mut points =
            points.filter(|item| item["point"]["asInt"].to_string().trim_matches('"') == value.to_string());
        let point = points.next().unwrap_or_else(|| panic!("the point {value}"));
        point["point"]["attributes"].clone()
    };
    let one = |value: &str| json!([{"key": "k", "value": {"stringValue": value}}]);
    assert_eq!(labels(20), one("1"));
    assert_eq!(labels(30), one("a, b=c"));
    let judge = some_or_return!(TraceProcessor::require_or_skip());
    let expected = [
        r#"g {b=c, k=a} 40"#,
        r#"g {k="1"} 20"#,
        r#"g {k="a, b=c"} 30"#,
        r#"g {k=1} 10"#,
    ];
    assert_eq!(counters(&judge, &trace), expected);
}
