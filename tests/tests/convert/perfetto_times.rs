//! Times that viewers cannot show, points without a time, and clock skew: each is drawn, counted and converted back.

use std::{fs, path::PathBuf};

use pulsetrain_tests::{Folder, Items, TraceProcessor, convert, some_or_return};
use serde_json::{Value, json};

/// The start of the items that have a time: 2026-11-23.
const BEGIN: u64 = 1_795_000_000_000_000_000;
/// The first time that does not fit into a signed 64-bit number.
const BEYOND: u64 = 1 << 63;

fn span(id: u64, parent: u64, start: u64, end: u64) -> Value {
    let mut span = json!({
        "traceId": format!("{:032x}", 7),
        "spanId": format!("{id:016x}"),
        "name": format!("span {id}"),
        "startTimeUnixNano": start.to_string(),
        "endTimeUnixNano": end.to_string(),
    });
    if parent > 0 {
        span["parentSpanId"] = format!("{parent:016x}").into();
    }
    span
}

fn service(name: &str, spans: &[Value]) -> Value {
    let resource = json!({"attributes": [{"key": "service.name", "value": {"stringValue": name}}]});
    json!({"resource": resource, "scopeSpans": [{"scope": {"name": "test"}, "spans": spans}]})
}

fn written(folder: &Folder, lines: &[Value]) -> PathBuf {
    let path = folder.path("in.jsonl");
    let lines: Vec<String> = lines.iter().map(Value::to_string).collect();
    fs::write(&path, lines.join("\n")).expect("a temporary file can be written");
    path
}

/// Converts to a full trace and back, which must give the same items; returns the summary of the first conversion.
fn there_and_back(folder: &Folder, lines: &[Value]) -> Value {
    let (input, trace, back) = (
        written(folder, lines),
        folder.path("full.pftrace"),
        folder.path("back.jsonl"),
    );
    let summary = convert(&[&input], &trace, &["--attributes", "full"])
        .expect_code(0)
        .summary();
    convert(&[&trace], &back, &[]).expect_code(0);
    Items::read(&back).assert_same(&Items::read(&input));
    summary
}

/// Returns one point of each kind and a log record, all at this time.
fn points_and_a_log(time: u64) -> [Value; 2] {
    let time = time.to_string();
    let number = json!({"timeUnixNano": time, "asInt": "3"});
    let histogram = json!({"timeUnixNano": time, "count": "2", "sum": 3.0, "bucketCounts": ["1", "1"], "explicitBounds": [1.0]});
    let exponential = json!({"timeUnixNano": time, "count": "1", "scale": 0, "positive": {"offset": 0, "bucketCounts": ["1"]}});
    let summary = json!({"timeUnixNano": time, "count": "1", "sum": 2.0, "quantileValues": [{"quantile": 0.5, "value": 2.0}]});
    let metrics = json!([
        {"name": "a.gauge", "gauge": {"dataPoints": [number]}},
        {"name": "a.sum", "sum": {"dataPoints": [number], "aggregationTemporality": 2, "isMonotonic": true}},
        {"name": "a.delta", "sum": {"dataPoints": [number], "aggregationTemporality": 1, "isMonotonic": true}},
        {"name": "a.histogram", "histogram": {"dataPoints": [histogram], "aggregationTemporality": 2}},
        {"name": "an.exponential", "exponentialHistogram": {"dataPoints": [exponential], "aggregationTemporality": 2}},
        {"name": "a.summary", "summary": {"dataPoints": [summary]}},
    ]);
    let record = json!({"timeUnixNano": time, "body": {"stringValue": "a line"}});
    [
        json!({"resourceMetrics": [{"scopeMetrics": [{"metrics": metrics}]}]}),
        json!({"resourceLogs": [{"scopeLogs": [{"logRecords": [record]}]}]}),
    ]
}

#[test]
fn timestamps_outside_the_viewer_range_are_clamped_and_counted() {
    let folder = Folder::new();
    let mut late = span(3, 1, BEGIN + 20, BEGIN + 50);
    late["events"] = json!([{"timeUnixNano": BEYOND.to_string(), "name": "late event"}]);
    let spans = [
        span(1, 0, BEGIN, BEGIN + 100),
        span(2, 1, BEGIN + 10, u64::MAX),
        late,
        span(4, 0, BEYOND, BEYOND + 5),
    ];
    let [points, log] = points_and_a_log(u64::MAX - 1);
    let lines = [
        json!({"resourceSpans": [service("trainer", &spans)]}),
        points,
        log,
    ];
    let summary = there_and_back(&folder, &lines);
    // Two spans, an event, six points and a log record.
    assert_eq!(summary["mapped"]["beyond_range"], 10, "{summary}");
    assert_eq!(summary["time_range"], json!([BEGIN, BEGIN + 100]));
    let judge = some_or_return!(TraceProcessor::require_or_skip());
    let [faults, slices] = judge.query(
        &folder.path("full.pftrace"),
        [
            "select name, value from stats where severity in ('error', 'data_loss') and value > 0",
            &format!(
                "select count(*) as shown from slice where name like 'span %' and dur >= 0 and ts between {BEGIN} and {}",
                BEGIN + 100
            ),
        ],
    );
    assert_eq!(faults, Vec::<Value>::new());
    assert_eq!(slices, [json!({"shown": 4})]);
}

#[test]
fn points_and_log_records_with_timestamp_zero_round_trip() {
    let folder = Folder::new();
    let [points, log] = points_and_a_log(0);
    let spans = json!({"resourceSpans": [service("trainer", &[span(1, 0, BEGIN, BEGIN + 100)])]});
    let summary = there_and_back(&folder, &[spans, points, log]);
    assert_eq!(summary["mapped"]["without_time"], 7, "{summary}");
}

#[test]
fn child_that_begins_before_its_parent_in_one_process_is_no_clock_skew() {
    let folder = Folder::new();
    let spans = [
        span(1, 0, BEGIN + 1_000, BEGIN + 2_000),
        span(2, 1, BEGIN, BEGIN + 500),
    ];
    let input = written(&folder, &[json!({"resourceSpans": [service("web", &spans)]})]);
    let summary = convert(&[&input], &folder.path("out.pftrace"), &[])
        .expect_code(0)
        .summary();
    let mapped = &summary["mapped"];
    assert_eq!(mapped["backward_flows"].as_u64(), Some(1), "{mapped}");
    assert_eq!(
        mapped["clock_skew_ns"].as_u64().unwrap_or_default(),
        0,
        "{mapped}"
    );
    let notes = summary["notes"].to_string();
    assert!(
        notes.contains("1 children begin before their parents on the rows of one process"),
        "{notes}"
    );
    assert!(!notes.contains("clock"), "{notes}");
}

#[test]
fn window_excludes_unfinished_spans_that_begin_after_it() {
    let folder = Folder::new();
    let spans = [
        span(1, 0, BEGIN, BEGIN + 10),
        span(2, 0, BEGIN + 5_000, 0),
        span(3, 0, BEGIN - 5_000, 0),
    ];
    let input = written(&folder, &[json!({"resourceSpans": [service("trainer", &spans)]})]);
    let window = "2026-11-18T11:06:40Z..2026-11-18T11:06:40.000001Z";
    let mapped = &convert(&[&input], &folder.path("out.pftrace"), &["--window", window])
        .expect_code(0)
        .summary()["mapped"];
    let counts = ["spans", "unfinished", "filtered"].map(|name| mapped[name].as_u64());
    assert_eq!(counts, [2, 1, 1].map(Some), "{mapped}");
}

/// In memory, and with a budget that is too small even for the nodes of the trees.
#[test]
fn children_that_begin_before_their_parents_are_counted_with_the_skew() {
    const CHILDREN: u64 = 40_000;
    let folder = Folder::new();
    let child = |id: u64| {
        // One in four begins up to 2 ms before its parent in the other process.
        let start = match id % 4 {
            0 => BEGIN - id * 50,
            _ => BEGIN + id * 50,
        };
        let mut span = span(id, 1, start, start + 10);
        span["attributes"] = json!([{"key": "text", "value": {"stringValue": "x".repeat(200)}}]);
        span
    };
    let children: Vec<Value> = (2..CHILDREN + 2).map(child).collect();
    let parent = span(1, 0, BEGIN, BEGIN + CHILDREN * 100);
    let spans = json!({"resourceSpans": [service("client", &[parent]), service("server", &children)]});
    let input = written(&folder, &[spans]);
    for memory in ["64MiB", "1MiB"] {
        let finished = convert(&[&input], &folder.path("out.pftrace"), &["--memory", memory]).expect_code(0);
        let summary = finished.summary();
        let mapped = &summary["mapped"];
        assert_eq!(mapped["backward_flows"], CHILDREN / 4, "{memory}: {mapped}");
        assert_eq!(mapped["clock_skew_ns"], CHILDREN * 50, "{memory}: {mapped}");
        assert_eq!(
            mapped["spilled_bytes"] != json!(0),
            memory == "1MiB",
            "{memory}: {mapped}"
        );
        let note = summary["notes"].to_string();
        assert!(
            note.contains("10000 children begin before their parents, by up to 2ms"),
            "{note}"
        );
        let skews = json!([{"parents": "client", "children": "server", "count": CHILDREN / 4, "nanos": CHILDREN * 50}]);
        assert_eq!(summary["clock_skews"], skews, "{memory}");
        let skew = "the clock of server is at least 2ms earlier than that of client (10000 children)";
        assert!(note.contains(skew), "{note}");

        for by in ["process", "trace"] {
            let options = ["--memory", memory, "--align-clocks", "--by", by];
            let aligned = convert(&[&input], &folder.path("out.pftrace"), &options)
                .expect_code(0)
                .summary();
            let mapped = &aligned["mapped"];
            assert_eq!(
                (&mapped["backward_flows"], &mapped["spans"]),
                (&json!(0), &json!(CHILDREN + 1)),
                "{memory} {by}"
            );
            let moved = "the times of server are 2ms later than its clock had them";
            assert_eq!(aligned["inputs"][0]["notes"], json!([moved]), "{memory} {by}");
        }
    }
}
