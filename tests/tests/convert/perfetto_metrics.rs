//! Metrics and logs as counters, states and log lines: synthetic ones of every kind, and those of a real run.

use pulsetrain_tests::{Folder, Import, TraceProcessor, convert, corpus, some_or_return};
use serde_json::{Value, json};

/// Returns a metric of each kind, one state set, and a log record, in the first nanoseconds of 2023-11-14T22:13:20Z.
fn every_kind() -> String {
    let at = |nanos: u64| (1_700_000_000_000_000_000 + nanos).to_string();
    let metrics = json!([
        {"name": "gpu.power", "unit": "W", "gauge": {"dataPoints": [
            {"timeUnixNano": at(1), "asDouble": 250.5, "attributes": [{"key": "gpu", "value": {"intValue": 0}}]},
            {"timeUnixNano": at(2), "flags": 1, "attributes": [{"key": "gpu", "value": {"intValue": 0}}]}]}},
        {"name": "tokens", "unit": "{token}", "sum": {"aggregationTemporality": 1, "isMonotonic": true, "dataPoints": [
            {"timeUnixNano": at(2), "asInt": 5}, {"timeUnixNano": at(1), "asInt": 3}]}},
        {"name": "duration", "unit": "s", "histogram": {"aggregationTemporality": 2, "dataPoints": [
            {"timeUnixNano": at(3), "count": 4, "sum": 6, "explicitBounds": [1, 3], "bucketCounts": [2, 2, 0]}]}},
        {"name": "wait", "unit": "s", "exponentialHistogram": {"aggregationTemporality": 2, "dataPoints": [
            {"timeUnixNano": at(3), "count": 2, "sum": 3, "scale": 0, "positive": {"offset": 0, "bucketCounts": [2]}}]}},
        {"name": "old", "summary": {"dataPoints": [
            {"timeUnixNano": at(3), "count": 2, "sum": 3, "quantileValues": [{"quantile": 0.5, "value": 1.5}]}]}},
        {"name": "phase", "unit": "{state}", "sum": {"aggregationTemporality": 2, "dataPoints": [
            {"timeUnixNano": at(0), "asInt": 1, "attributes": [{"key": "phase", "value": {"stringValue": "warmup"}}]},
            {"timeUnixNano": at(0), "asInt": 0, "attributes": [{"key": "phase", "value": {"stringValue": "train"}}]},
            {"timeUnixNano": at(4), "asInt": 1, "attributes": [{"key": "phase", "value": {"stringValue": "train"}}]},
            {"timeUnixNano": at(9), "asInt": 1, "attributes": [{"key": "phase", "value": {"stringValue": "train"}}]}]}},
    ]);
    let log = json!({"timeUnixNano": at(5), "severityNumber": 17, "body": {"stringValue": "loss is not finite"},
        "attributes": [{"key": "train.step", "value": {"intValue": 7}}]});
    let resource = json!({"attributes": [{"key": "service.name", "value": {"stringValue": "trainer"}}]});
    let metrics =
        json!({"resourceMetrics": [{"resource": resource, "scopeMetrics": [{"metrics": metrics}]}]});
    let logs = json!({"resourceLogs": [{"resource": resource, "scopeLogs": [{"logRecords": [log]}]}]});
    format!("{metrics}\n{logs}\n")
}

#[test]
fn every_metric_type_and_log_records_are_queryable_with_their_values() {
    let judge = some_or_return!(TraceProcessor::require_or_skip());
    let folder = Folder::new();
    let (otlp, trace) = (folder.file("in.jsonl", every_kind()), folder.path("out.pftrace"));
    let mapped = &convert(&[&otlp], &trace, &[]).expect_code(0).summary()["mapped"];
    assert_eq!(
        (&mapped["without_value"], &mapped["logs"]),
        (&json!(1), &json!(1)),
        "{mapped}"
    );
    let [counters, states, logs, instants] = judge.query(
        &trace,
        [
            "select t.name, c.value from counter c join counter_track t on t.id = c.track_id order by t.name, c.ts",
            "select s.name, s.dur from slice s join track t on t.id = s.track_id where t.name = 'phase' order by s.ts",
            "select prio, msg from android_logs",
            "select name, extract_arg(arg_set_id, 'debug.train_step') as step from slice where dur = 0 and name != 'resource'",
        ],
    );
    let counters: Vec<String> = counters
        .iter()
        .map(|row| format!("{} {}", row["name"].as_str().unwrap_or_default(), row["value"]))
        .collect();
    assert_eq!(
        counters,
        [
            "duration.count 4",
            "duration.p50 1",
            "duration.p90 2.6",
            "duration.p99 2.96",
            "duration.sum 6",
            "gpu.power {gpu=0} 250.5",
            "old.count 2",
            "old.p50 1.5",
            "old.sum 3",
            "tokens 3",
            "tokens 8",
            "wait.count 2",
            "wait.p50 1.5",
            "wait.p90 1.9",
            "wait.p99 1.99",
            "wait.sum 3",
        ]
    );
    assert_eq!(
        states,
        [
            json!({"name": "warmup", "dur": 4}),
            json!({"name": "train", "dur": 5})
        ]
    );
    assert_eq!(logs, [json!({"prio": 6, "msg": "loss is not finite"})]);
    assert_eq!(instants, [json!({"name": "loss is not finite", "step": 7})]);
}

#[test]
fn counters_of_one_metric_are_grouped_under_one_track() {
    let judge = some_or_return!(TraceProcessor::require_or_skip());
    let folder = Folder::new();
    let (otlp, trace) = (folder.file("in.jsonl", every_kind()), folder.path("out.pftrace"));
    convert(&[&otlp], &trace, &[]).expect_code(0);
    let [rows] = judge.query(
        &trace,
        ["include perfetto module viz.summary.track_event; \
          select heading.name as heading, count(*) as counters from _track_event_tracks_ordered_groups child \
          join track heading on heading.id = child.parent_id where child.is_counter \
          group by heading.name order by heading.name"],
    );
    assert_eq!(
        rows,
        [
            json!({"heading": "duration", "counters": 5}),
            // Metrics with one counter.
            json!({"heading": "metrics", "counters": 2}),
            json!({"heading": "old", "counters": 3}),
            json!({"heading": "wait", "counters": 5}),
        ]
    );
}

#[test]
fn histogram_bucket_that_becomes_empty_updates_its_counter() {
    let judge = some_or_return!(TraceProcessor::require_or_skip());
    let point = |time: u64, counts: [u64; 3]| {
        json!({"timeUnixNano": (1_700_000_000_000_000_000 + time).to_string(),
        "count": counts.iter().sum::<u64>().to_string(), "sum": 1, "explicitBounds": [1, 3], "bucketCounts": counts})
    };
    let points = [point(1, [1, 1, 0]), point(2, [3, 0, 0]), point(3, [0, 0, 0])];
    let folder = Folder::new();
    let trace = folder.path("out.pftrace");
    // Delta counts, and cumulative counts with a reset.
    for (temporality, counts) in [(1, [2, 5, 5]), (2, [2, 3, 0])] {
        let metric = json!({"name": "wait", "histogram": {"aggregationTemporality": temporality, "dataPoints": points}});
        let text = json!({"resourceMetrics": [{"scopeMetrics": [{"metrics": [metric]}]}]}).to_string();
        convert(&[folder.file("in.jsonl", text)], &trace, &["--buckets"]).expect_code(0);
        let values = ["wait.count", "wait.le_1", "wait.le_3"].map(|name| {
            let query = format!(
                "select c.value from counter c join counter_track t on t.id = c.track_id where t.name = '{name}' order by c.ts"
            );
            let [rows] = judge.query(&trace, [query.as_str()]);
            rows.iter().filter_map(|row| row["value"].as_u64()).collect::<Vec<_>>()
        });
        assert_eq!(values, [counts.to_vec(), vec![1, 3, 0], vec![2, 3, 0]]);
    }
}

#[test]
fn quantiles_of_histograms_are_between_the_smallest_and_the_largest_value() {
    let judge = some_or_return!(TraceProcessor::require_or_skip());
    let histogram = |name: &str, limits: Value, counts: &[u64], bounds: &[u64]| {
        let mut point = json!({"timeUnixNano": "1700000000000000000", "count": counts.iter().sum::<u64>().to_string(),
            "bucketCounts": counts, "explicitBounds": bounds});
        for (key, value) in limits.as_object().expect("limits are fields") {
            point[key] = value.clone();
        }
        json!({"name": name, "histogram": {"aggregationTemporality": 2, "dataPoints": [point]}})
    };
    let metrics = json!([
        histogram("open", json!({"min": 8000, "max": 10000}), &[0, 0, 10], &[10, 100]),
        histogram("limits", json!({"min": 400, "max": 600, "sum": 5000}), &[10], &[]),
        histogram("mean", json!({"sum": 5000}), &[10], &[]),
        histogram("single", json!({"sum": 70, "min": 70, "max": 70}), &[0, 1, 0], &[10, 100]),
        histogram("unbucketed", json!({"count": "10", "sum": 50, "min": 1, "max": 9}), &[], &[]),
        {"name": "old", "summary": {"dataPoints": [{"timeUnixNano": "1700000000000000000", "count": "1",
            "quantileValues": [{"quantile": 0.55, "value": 3}]}]}},
    ]);
    let folder = Folder::new();
    let otlp_text = json!({"resourceMetrics": [{"scopeMetrics": [{"metrics": metrics}]}]}).to_string();
    let (otlp, trace) = (folder.file("in.jsonl", otlp_text), folder.path("out.pftrace"));
    convert(&[otlp], &trace, &[]).expect_code(0);
    let [quantiles, limits] = judge.query(
        &trace,
        [
            "select t.name, c.value from counter c join counter_track t on t.id = c.track_id
          where t.name glob '*.p*' and t.name not glob '*.p90' order by t.name",
            "select t.name, c.value from counter c join counter_track t on t.id = c.track_id
          where t.name glob '*.min' or t.name glob '*.max' order by t.name",
        ],
    );
    let row = |row: &Value| format!("{} {}", row["name"].as_str().unwrap_or_default(), row["value"]);
    assert_eq!(
        quantiles.iter().map(row).collect::<Vec<_>>(),
        [
            "limits.p50 500",
            "limits.p99 598",
            "mean.p50 500",
            "mean.p99 500",
            "old.p55 3",
            "open.p50 9000",
            "open.p99 9980",
            "single.p50 70",
            "single.p99 70",
        ]
    );
    assert_eq!(
        limits.iter().map(row).collect::<Vec<_>>(),
        [
            "limits.max 600",
            "limits.min 400",
            "open.max 10000",
            "open.min 8000",
            "single.max 70",
            "single.min 70",
            "unbucketed.max 9",
            "unbucketed.min 1",
        ]
    );
}

#[test]
fn real_run_has_a_counter_value_for_every_point() {
    let judge = some_or_return!(TraceProcessor::require_or_skip());
    let folder = Folder::new();
    let (otlp, trace) = (folder.path("in.jsonl"), folder.path("out.pftrace"));
    Import::new(corpus("surogate/training_dense.json"))
        .to(&otlp)
        .run();
    let mapped = &convert(&[&otlp], &trace, &[]).expect_code(0).summary()["mapped"];
    let [losses, steps] = judge.query(
        &trace,
        [
            "select count(*) as n from counter c join counter_track t on t.id = c.track_id where t.name = 'train.loss'",
            "select count(*) as n from slice where name = 'train.step'",
        ],
    );
    let read = pulsetrain_tests::Items::read(&otlp);
    assert_eq!(losses[0]["n"], read.values("train.loss").len());
    let drawn = read.spans_of("train.step").len();
    assert_eq!(steps[0]["n"], drawn);
    assert!(drawn > 0 && mapped["counters"].as_u64() > Some(5), "{mapped}");
}

#[test]
fn log_record_shows_a_body_of_any_type_and_long_text_only_once() {
    let judge = some_or_return!(TraceProcessor::require_or_skip());
    let at = |nanos: u64| (1_700_000_000_000_000_000 + nanos).to_string();
    let field = |key: &str, text: &str| json!({"key": key, "value": {"stringValue": text}});
    let map =
        json!({"kvlistValue": {"values": [field("level", "error"), field("msg", "connection refused")]}});
    let long = format!("first line\n{}", "x".repeat(100_000));
    let records = json!([
        {"timeUnixNano": at(1), "severityNumber": 17, "severityText": "ERR", "body": map},
        {"timeUnixNano": at(2), "eventName": "gen_ai.choice", "body": {"arrayValue": {"values": [{"intValue": 42}]}}},
        {"timeUnixNano": at(3), "body": {"bytesValue": "aGk="}},
        {"timeUnixNano": at(4), "body": {"stringValue": long}},
        {"timeUnixNano": at(5), "severityText": "NOTICE"},
        {"timeUnixNano": at(6), "eventName": "checkpoint", "body": {"stringValue": "saved"}},
    ]);
    let folder = Folder::new();
    let trace = folder.path("out.pftrace");
    let logs = json!({"resourceLogs": [{"scopeLogs": [{"logRecords": records}]}]});
    convert(&[folder.file("in.jsonl", logs.to_string())], &trace, &[]).expect_code(0);
    let [lines, instants] = judge.query(
        &trace,
        [
            "select msg from android_logs order by ts",
            "select name, extract_arg(arg_set_id, 'debug.otel.severity_text') as severity, \
             coalesce(extract_arg(arg_set_id, 'debug.otel.body'), extract_arg(arg_set_id, 'debug.otel.body.msg'), \
             extract_arg(arg_set_id, 'debug.otel.body[0]'), \
             extract_arg(arg_set_id, 'debug.otel.body.otel_bytes')) as body \
             from slice where name != 'resource' order by ts",
        ],
    );
    let json = r#"{"level":"error","msg":"connection refused"}"#;
    let lines: Vec<&str> = lines
        .iter()
        .map(|row| row["msg"].as_str().unwrap_or_default())
        .collect();
    assert_eq!(lines, [json, "[42]", "aGk=", &long, "", "saved"]);
    let shown = |row: &Value| ["name", "severity", "body"].map(|key| row[key].to_string());
    let instants: Vec<[String; 3]> = instants.iter().map(shown).collect();
    let body = format!("first line\\n{}...", "x".repeat((1 << 10) - 14));
    let texts = |name: &str, severity: &str, body: &str| [name, severity, body].map(str::to_owned);
    assert_eq!(
        instants,
        [
            texts(&json!(json).to_string(), "\"ERR\"", "\"connection refused\""),
            texts("\"gen_ai.choice\"", "null", "42"),
            texts("\"aGk=\"", "null", "\"aGk=\""),
            texts("\"first line\"", "null", &format!("\"{body}\"")),
            texts("\"NOTICE\"", "\"NOTICE\"", "null"),
            texts("\"checkpoint\"", "null", "\"saved\""),
        ]
    );
    let size = trace.metadata().expect("the trace is there").len();
    assert!(size < 110_000, "the long body is written twice: {size}");
}

#[test]
fn list_attributes_are_distinct_and_a_nan_delta_does_not_corrupt_the_sum() {
    let judge = some_or_return!(TraceProcessor::require_or_skip());
    let at = |nanos: u64| (1_700_000_000_000_000_000 + nanos).to_string();
    let list =
        |number: i64| json!([{"key": "mesh", "value": {"arrayValue": {"values": [{"intValue": number}]}}}]);
    let metrics = json!([
        {"name": "free", "gauge": {"dataPoints": [
            {"timeUnixNano": at(1), "asInt": 5, "attributes": list(1)},
            {"timeUnixNano": at(1), "asInt": 6, "attributes": list(2)}]}},
        {"name": "tokens", "sum": {"aggregationTemporality": 1, "dataPoints": [
            {"timeUnixNano": at(1), "asDouble": 3}, {"timeUnixNano": at(2), "asDouble": "NaN"},
            {"timeUnixNano": at(3), "asDouble": 4}]}},
    ]);
    let folder = Folder::new();
    let trace = folder.path("out.pftrace");
    let metrics = json!({"resourceMetrics": [{"scopeMetrics": [{"metrics": metrics}]}]});
    convert(&[folder.file("in.jsonl", metrics.to_string())], &trace, &[]).expect_code(0);
    let [counters] = judge.query(
        &trace,
        ["select t.name, c.value from counter c join counter_track t on t.id = c.track_id order by t.name, c.ts"],
    );
    let row = |row: &Value| format!("{} {}", row["name"].as_str().unwrap_or_default(), row["value"]);
    let counters: Vec<String> = counters.iter().map(row).collect();
    let expected = [
        "free {mesh=[1]} 5",
        "free {mesh=[2]} 6",
        "tokens 3",
        "tokens 3",
        "tokens 7",
    ];
    assert_eq!(counters, expected);
}
