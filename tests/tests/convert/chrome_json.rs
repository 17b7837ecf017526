//! Chrome JSON traces as an input of `convert`: a real profile of PyTorch with the OTLP of the same run, and every phase.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
};

use pulsetrain_tests::{
    Folder, TraceProcessor, convert, corpus,
    otlp::{gzip, number, spans, time},
    some_or_return,
};
use serde_json::{Value, json};

/// One millisecond.
const NEAR_NANOS: i64 = 1_000_000;

#[test]
fn pytorch_profile_is_aligned_with_the_otlp_of_its_run() {
    let judge = some_or_return!(TraceProcessor::require_or_skip());
    let folder = Folder::new();
    let (profile, otlp) = (
        corpus("kineto/run.pt.trace.json.gz"),
        corpus("kineto/run.otlp.jsonl"),
    );
    let both = folder.path("both.pftrace");
    convert(&[&profile, &otlp], &both, &[]).expect_code(0);
    let [slices, arrows, errors] = judge.query(
        &both,
        [
            "select name, ts, depth from slice",
            "select count() as arrows from flow",
            "select name, value from stats where severity in ('error', 'data_loss') and value > 0",
        ],
    );
    assert!(errors.is_empty(), "{errors:?}");
    let begin_of = |name: &str| {
        let mut begins: Vec<i64> = slices
            .iter()
            .filter(|slice| slice["name"].as_str().is_some_and(|own| own.starts_with(name)))
            .map(|slice| number(&slice["ts"]))
            .collect();
        begins.sort_unstable();
        begins
    };
    let (of_profile, of_otlp) = (begin_of("step "), begin_of("train.step"));
    assert_eq!((of_profile.len(), of_otlp.len()), (3, 3), "{slices:#?}");
    for (profile, otlp) in of_profile.iter().zip(&of_otlp) {
        assert!((profile - otlp).abs() < NEAR_NANOS, "{profile} and {otlp}");
    }
    let alone = convert(&[&profile], &folder.path("profile.jsonl"), &[]).expect_code(0);
    // Complete events, and instants.
    assert_eq!(alone.summary()["items"], json!({"spans": 262, "logs": 2}));
    assert_eq!(number(&arrows[0]["arrows"]), 12, "from forward to backward");
    let deepest = slices.iter().map(|slice| number(&slice["depth"])).max();
    assert!(deepest > Some(3), "operators are within their steps: {deepest:?}");
}

/// Returns a trace with an event of each kind, with times in microseconds.
fn trace() -> Value {
    let event = |phase: &str, name: &str, ts: f64, more: Value| {
        let mut event = json!({"ph": phase, "name": name, "pid": 7, "tid": 1, "ts": ts});
        let fields = event.as_object_mut().expect("an object");
        fields.extend(more.as_object().expect("an object").clone());
        event
    };
    json!({
        "baseTimeNanoseconds": 1_700_000_000_000_000_000_u64,
        "distributedInfo": {"rank": 3},
        "traceEvents": [
            event("X", "crossing", 5.0, json!({"dur": 7.0})),
            event("X", "outer", 0.0, json!({"dur": 10.0, "args": {"bytes": 4096, "shape": [2, 3]}})),
            event("X", "inner", 0.0, json!({"dur": 2.5})),
            event("X", "next", 2.5, json!({"dur": 2.5, "cat": "op"})),
            event("B", "begun", 20.0, json!({})),
            event("E", "", 30.0, json!({})),
            event("B", "empty", 31.0, json!({})),
            event("E", "", 31.0, json!({})),
            event("b", "request", 21.0, json!({"id": "0x1", "cat": "net"})),
            event("e", "request", 41.0, json!({"id": "0x1", "cat": "net"})),
            event("C", "memory", 22.0, json!({"args": {"used": 12, "peak": 40.5, "unit": "MB"}})),
            event("i", "saved", 23.0, json!({"s": "p"})),
            event("s", "launch", 20.0, json!({"id": 9, "cat": "ac2g"})),
            event("f", "launch", 50.0, json!({"id": 9, "cat": "ac2g", "bp": "e", "tid": 2})),
            event("X", "kernel", 50.0, json!({"dur": 1.0, "tid": 2})),
            event("O", "object", 24.0, json!({"id": 1})),
            event("X", "undated", 0.0, json!({"ts": null})),
            event("M", "process_name", 0.0, json!({"args": {"name": "python"}})),
            event("M", "process_labels", 0.0, json!({"args": {"labels": "GPU 0"}})),
            event("M", "thread_name", 0.0, json!({"tid": 2, "args": {"name": "stream 7"}})),
        ],
    })
}

#[test]
fn every_chrome_event_phase_is_converted_or_reported() {
    let folder = Folder::new();
    let input = folder.file("trace.json", trace().to_string());
    let out = folder.path("out.jsonl");
    let finished = convert(&[input], &out, &[]).expect_code(1);
    let problems = finished.summary()["inputs"][0]["problems"].to_string();
    assert!(
        problems.contains("1 events of the phase \\\"O\\\" cannot be represented"),
        "{problems}"
    );
    assert!(problems.contains("it has no `ts`"), "{problems}");
    let spans = spans_of(&out);
    let text = fs::read_to_string(out).expect("the output can be read");
    let base = 1_700_000_000_000_000_000;
    let expected = [
        ("begun", 20_000, 30_000),
        ("crossing", 5_000, 12_000),
        ("empty", 31_000, 31_000),
        ("inner", 0, 2_500),
        ("kernel", 50_000, 51_000),
        ("next", 2_500, 5_000),
        ("outer", 0, 10_000),
        ("request", 21_000, 41_000),
    ];
    let expected = expected.map(|(name, start, end)| (name.to_owned(), (base + start, base + end)));
    assert_eq!(spans, expected.into());
    for part in [
        r#""stringValue":"rank 3 python GPU 0""#,
        r#""key":"thread.name","value":{"stringValue":"stream 7"}"#,
        r#""key":"bytes","value":{"intValue":"4096"}"#,
        r#""name":"memory used""#,
        r#""name":"memory peak""#,
        r#""asDouble":40.5"#,
        r#""name":"saved""#,
        r#""links":[{"#,
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
}

/// Returns the start and end of each span of a file, by name.
fn spans_of(out: &Path) -> BTreeMap<String, (u64, u64)> {
    spans_in(&fs::read_to_string(out).expect("the output can be read"))
}

/// Returns the start and end of each span of OTLP/JSON lines, by name.
fn spans_in(text: &str) -> BTreeMap<String, (u64, u64)> {
    let spans_with_times = |span: &Value| {
        let name = span["name"].as_str().unwrap_or_default().to_owned();
        (
            name,
            (time(span, "startTimeUnixNano"), time(span, "endTimeUnixNano")),
        )
    };
    let messages: Vec<Value> = text
        .lines()
        .filter_map(|line| serde_json::from_str(line).ok())
        .collect();
    messages.iter().flat_map(spans).map(spans_with_times).collect()
}

#[test]
fn invalid_multiline_event_is_reported_on_one_line() {
    let folder = Folder::new();
    let pretty = serde_json::to_string_pretty(&trace()).expect("invariant: a value is JSON");
    let input = folder.file("pretty.json", pretty);
    let finished = convert(&[input], &folder.path("out.jsonl"), &[]).expect_code(1);
    let problems = finished.summary()["inputs"][0]["problems"].clone();
    let problems: Vec<&str> = problems
        .as_array()
        .expect("a list")
        .iter()
        .filter_map(Value::as_str)
        .collect();
    assert!(
        problems.contains(
            &r#"event 17, { "name": "undated", "ph": "X", "pid": 7, "tid": 1, "ts": null }: it has no `ts`"#
        ),
        "{problems:#?}"
    );
    assert!(
        problems.iter().all(|problem| !problem.contains('\n')),
        "{problems:#?}"
    );
}

#[test]
fn truncated_chrome_trace_is_read_up_to_the_cut() {
    let folder = Folder::new();
    let events = trace()["traceEvents"].to_string();
    let cut = &events[..events.find("request").expect("it is there")];
    let input = folder.file("cut.json", cut);
    let out = folder.path("out.jsonl");
    let finished = convert(&[input], &out, &["--start-time", "2026-01-01T00:00:00Z"]).expect_code(1);
    let problems = finished.summary()["inputs"][0]["problems"].to_string();
    assert!(problems.contains("cannot be read to its end"), "{problems}");
    let text = fs::read_to_string(out).expect("the output can be read");
    assert!(
        text.contains(r#""name":"crossing""#) && text.contains("17672256000000"),
        "{text}"
    );
}

/// Returns a trace with these events and this time 0.
fn trace_of(base: u64, events: &Value) -> String {
    json!({"baseTimeNanoseconds": base, "traceEvents": events}).to_string()
}

#[test]
fn every_trace_of_a_chrome_json_file_is_read_and_trailing_garbage_is_reported() {
    const BASE: u64 = 1_700_000_000_000_000_000;
    let folder = Folder::new();
    let slice = |name: &str| json!([{"ph": "X", "name": name, "pid": 1, "tid": 1, "ts": 1, "dur": 2}]);
    let first = trace_of(BASE, &slice("a"));
    let second = trace_of(BASE + 1_000_000, &slice("b"));
    let both = format!("{first}\n{second}\n");
    let out = folder.path("out.jsonl");
    for (name, bytes) in [
        ("both.json", both.clone().into_bytes()),
        (
            "both.json.gz",
            [gzip(first.as_bytes()), gzip(second.as_bytes())].concat(),
        ),
    ] {
        let input = folder.file(name, bytes);
        convert(&[input], &out, &[]).expect_code(0);
        let text = fs::read_to_string(&out).expect("the output can be read");
        let spans = spans_in(&text);
        assert_eq!(spans["a"], (BASE + 1_000, BASE + 3_000), "{name}");
        assert_eq!(spans["b"], (BASE + 1_001_000, BASE + 1_003_000), "{name}");
        let ids: BTreeSet<&str> = text
            .split("\"spanId\":\"")
            .skip(1)
            .filter_map(|rest| rest.get(..16))
            .collect();
        assert_eq!(ids.len(), 2, "{text}");
    }
    for trace in [&first, &slice("a").to_string()] {
        let others = format!("{trace}\n{{\"foo\": 1}}\n{second}\n{{}}");
        let input = folder.file("others.json", others);
        let finished = convert(&[input], &out, &["--start-time", "2026-01-02T03:04:05Z"]).expect_code(1);
        finished.expect_words(&["without `traceEvents` was skipped at line 2", "skipped at line 4"]);
        assert_eq!(spans_in(&fs::read_to_string(&out).expect("it is there")).len(), 2);
    }
    let input = folder.file("garbage.json", format!("{both}garbage"));
    let finished = convert(&[input], &out, &[]).expect_code(1);
    finished.expect_words(&[
        "cannot be read to its end",
        "line 3",
        "its first 2 events are used",
    ]);
    assert_eq!(spans_in(&fs::read_to_string(&out).expect("it is there")).len(), 2);
}

#[test]
fn chrome_json_is_recognised_by_metadata_before_its_events_and_by_the_first_event() {
    let folder = Folder::new();
    let slice = json!({"args": {"traceId": "x", "deep": {"y": 1}}, "name": "a", "ph": "X", "ts": 1_700_000_000_000_000_u64,
        "dur": 5, "pid": 1, "tid": 1});
    // A job of many GPUs has the properties and the groups of all of them before its events.
    let devices = vec![json!({"name": "n".repeat(1000)}); 200];
    let kineto = format!(
        r#"{{"schemaVersion": 1, "deviceProperties": {}, "traceEvents": [{slice}]}}"#,
        json!(devices)
    );
    for (name, text) in [
        ("kineto", kineto),
        ("events", format!("[{slice}]")),
        ("compact", format!("[\n{slice},{slice}]")),
        (
            "xla",
            format!(r#"{{"displayTimeUnit": "ns", "metadata": {{}}, "traceEvents": [{slice}, {{}}]}}"#),
        ),
    ] {
        let out = folder.path("out.jsonl");
        let input = folder.file(name, text);
        let summary = convert(&[input], &out, &[]).expect_code(0).summary();
        assert_eq!(summary["inputs"][0]["form"], "chrome json", "{name}");
        let text = fs::read_to_string(&out).expect("the output can be read");
        assert!(spans_in(&text).contains_key("a"), "{name}: {text}");
    }
}

/// Converts events that begin at 1,700,000,000 s; returns the problems and the output.
fn converted(events: &Value, code: i32) -> (Value, String) {
    let folder = Folder::new();
    let input = folder.file("trace.json", trace_of(1_700_000_000_000_000_000, events));
    let out = folder.path("out.jsonl");
    let summary = convert(&[input], &out, &[]).expect_code(code).summary();
    let text = fs::read_to_string(out).expect("the output can be read");
    (summary["inputs"][0]["problems"].clone(), text)
}

#[test]
fn operations_are_matched_by_local_and_global_ids() {
    let event = |phase: &str, name: &str, ts: u64, pid: u64, id: Value| json!({"ph": phase, "cat": "net", "name": name, "ts": ts, "pid": pid, "tid": 1, "id2": id});
    let (local, global) = (|id: u64| json!({"local": id}), || json!({"global": "0x9"}));
    let events = json!([
        event("b", "first", 2, 1, local(1)),
        event("b", "second", 3, 1, local(2)),
        event("b", "elsewhere", 3, 2, local(1)),
        event("b", "remote", 4, 1, global()),
        event("e", "first", 5, 1, local(1)),
        event("e", "elsewhere", 6, 2, local(1)),
        event("e", "remote", 7, 2, global()),
        event("e", "second", 8, 1, local(2)),
    ]);
    let (_, text) = converted(&events, 0);
    let base = 1_700_000_000_000_000_000;
    let expected = [
        ("elsewhere", 3_000, 6_000),
        ("first", 2_000, 5_000),
        ("remote", 4_000, 7_000),
        ("second", 3_000, 8_000),
    ];
    let expected = expected.map(|(name, start, end)| (name.to_owned(), (base + start, base + end)));
    assert_eq!(spans_in(&text), expected.into());
}

#[test]
fn counters_with_texts_are_read_and_other_values_are_counted() {
    let counter =
        |ts: u64, args: Value| json!({"ph": "C", "name": "memory", "ts": ts, "pid": 1, "args": args});
    let events = json!([
        counter(1, json!({"used": "5"})),
        counter(2, json!({"used": "6.5", "unit": "MB", "list": [1]})),
        counter(3, json!({})),
    ]);
    let (problems, text) = converted(&events, 1);
    let problems = problems.to_string();
    assert!(
        problems.contains("2 values of counters are not numbers"),
        "{problems}"
    );
    assert!(problems.contains("it has no values in `args`"), "{problems}");
    assert!(
        text.contains(r#""asDouble":5"#) && text.contains(r#""asDouble":6.5"#),
        "{text}"
    );
}

#[test]
fn arrows_between_slices_with_the_same_bind_id_become_links() {
    let slice = |name: &str, ts: u64, more: Value| {
        let mut slice =
            json!({"ph": "X", "name": name, "ts": ts, "dur": 5, "pid": 1, "tid": ts, "bind_id": "0x5"});
        let fields = slice.as_object_mut().expect("an object");
        fields.extend(more.as_object().expect("an object").clone());
        slice
    };
    let events = json!([
        slice("a", 1, json!({"flow_out": true})),
        slice("b", 10, json!({"flow_in": true})),
        slice("c", 20, json!({"flow_in": false})),
    ]);
    let (_, text) = converted(&events, 0);
    assert_eq!(text.matches(r#""links":[{"#).count(), 1, "{text}");
    let linked = text
        .split(r#"{"traceId""#)
        .find(|span| span.contains(r#""links":["#));
    assert!(
        linked.is_some_and(|span| span.contains(r#""name":"b""#)),
        "{text}"
    );
}

#[test]
fn numbers_that_json_lacks_do_not_end_a_chrome_trace() {
    let folder = Folder::new();
    let text = r#"{"baseTimeNanoseconds": 1700000000000000000, "traceEvents": [
        {"name": "a", "ph": "X", "ts": 1, "dur": 5, "pid": 1, "tid": 1, "args": {"loss": NaN, "list": [-Infinity, 1]}},
        {"name": "lost", "ph": "X", "ts": Infinity, "dur": 5, "pid": 1, "tid": 1},
        {"name": "b", "ph": "X", "ts": 9, "dur": 5, "pid": 1, "tid": 1}]}"#;
    let input = folder.file("trace.json", text);
    let out = folder.path("out.jsonl");
    let finished = convert(&[input], &out, &[]).expect_code(1);
    let problems = finished.summary()["inputs"][0]["problems"].clone();
    assert_eq!(problems.as_array().map(Vec::len), Some(1), "{problems}");
    assert!(problems.to_string().contains("event 2, "), "{problems}");
    let text = fs::read_to_string(out).expect("the output can be read");
    assert!(
        spans_in(&text).keys().map(String::as_str).eq(["a", "b"]),
        "{text}"
    );
    for part in [
        r#"{"key":"loss","value":{"stringValue":"NaN"}}"#,
        r#"{"values":[{"stringValue":"-Infinity"},{"intValue":"1"}]}"#,
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
}

#[test]
fn arrow_from_a_slice_on_a_further_row_becomes_a_link() {
    let slice = |name: &str, ts: u64, dur: u64, tid: u64| json!({"ph": "X", "name": name, "ts": ts, "dur": dur, "pid": 1, "tid": tid});
    let arrow = |phase: &str, ts: u64, tid: u64| json!({"ph": phase, "name": "f", "cat": "x", "id": 1, "ts": ts, "pid": 1, "tid": tid, "bp": "e"});
    let events = json!([
        slice("before", 1, 5, 1),
        slice("crosses", 3, 10, 1),
        arrow("s", 7, 1),
        slice("after", 10, 5, 2),
        arrow("f", 12, 2),
    ]);
    let (_, text) = converted(&events, 0);
    assert_eq!(text.matches(r#""links":[{"#).count(), 1, "{text}");
    assert!(!text.contains("resourceLogs"), "{text}");
}

#[test]
fn chrome_trace_without_a_wall_clock_asks_for_the_start_time() {
    let folder = Folder::new();
    let input = folder.file("trace.json", trace()["traceEvents"].to_string());
    let finished = convert(&[input], &folder.path("out.jsonl"), &[]).expect_code(1);
    let problems = finished.summary()["inputs"][0]["problems"].to_string();
    assert!(problems.contains("--start-time"), "{problems}");
}

#[test]
fn overlapping_slice_keeps_its_duration_and_null_arguments_stay_null() {
    let folder = Folder::new();
    let event = |phase: &str, name: &str, ts: u64, more: Value| {
        let mut event = json!({"ph": phase, "name": name, "pid": 1, "tid": 1, "ts": ts});
        let fields = event.as_object_mut().expect("an object");
        fields.extend(more.as_object().expect("an object").clone());
        event
    };
    let trace = json!({"baseTimeNanoseconds": 1_700_000_000_000_000_000_u64, "traceEvents": [
        event("B", "begun", 10, json!({"args": {"first": 1}})),
        event("X", "crosses", 15, json!({"dur": 10, "args": {"none": null, "list": [null, 2]}})),
        event("X", "inside", 12, json!({"dur": 2})),
        event("E", "", 20, json!({"args": {"last": 2}})),
        event("E", "", 40, json!({})),
        event("B", "open", 50, json!({})),
    ]});
    let input = folder.file("trace.json", trace.to_string());
    let out = folder.path("out.jsonl");
    let summary = convert(&[input], &out, &[]).expect_code(1).summary();
    assert_eq!(
        summary["inputs"][0]["problems"],
        json!(["1 ends of slices that never began"])
    );
    let notes = summary["inputs"][0]["notes"].to_string();
    assert!(notes.contains("1 slices never end"), "{notes}");
    let spans = spans_of(&out);
    let text = fs::read_to_string(out).expect("the output can be read");
    let base = 1_700_000_000_000_000_000;
    for (name, start, end) in [
        ("begun", 10_000, 20_000),
        ("crosses", 15_000, 25_000),
        ("inside", 12_000, 14_000),
    ] {
        assert_eq!(spans[name], (base + start, base + end), "{name}");
    }
    for part in [
        r#"{"key":"none","value":{}}"#,
        r#""arrayValue":{"values":[{},{"intValue":"2"}]}"#,
        r#"{"key":"first","value":{"intValue":"1"}}"#,
        r#"{"key":"last","value":{"intValue":"2"}}"#,
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
}
