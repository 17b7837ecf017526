//! Log records on the rows of their spans, checked by trace_processor: in memory, and with a trace that exceeds the memory
//! budget.

use std::{
    fs,
    path::{Path, PathBuf},
};

use pulsetrain_tests::{Folder, Items, TraceProcessor, convert, some_or_return};
use serde_json::{Value, json};

const BEGIN: u64 = 1_795_000_000_000_000_000;
/// The number of spans `work`, which follow each other inside `job`.
const SPANS: u64 = 400;
/// Memory budgets: one that is sufficient, and one that is smaller than the trace.
const MEMORY: [&str; 2] = ["64MiB", "64KiB"];

fn resource(name: &str) -> Value {
    json!({"attributes": [{"key": "service.name", "value": {"stringValue": name}}]})
}

fn span(number: u64, name: &str, (begin, end): (u64, u64)) -> Value {
    let mut span = json!({
        "traceId": format!("{:032x}", 7), "spanId": format!("{number:016x}"), "name": name,
        "startTimeUnixNano": (BEGIN + begin).to_string(), "endTimeUnixNano": (BEGIN + end).to_string(),
    });
    if number > 1 {
        span["parentSpanId"] = format!("{:016x}", 1).into();
    }
    span
}

/// Returns a log record of the span with this number.
fn record(number: u64, time: u64, body: &str) -> Value {
    json!({
        "traceId": format!("{:032x}", 7), "spanId": format!("{number:016x}"),
        "timeUnixNano": (BEGIN + time).to_string(), "severityNumber": 13, "severityText": "WARN",
        "attributes": [{"key": "code.line.number", "value": {"intValue": "12"}}],
        "body": {"stringValue": body},
    })
}

/// Returns a job with its spans, and with log records of the same process and of a collector before the spans that they refer
/// to.
fn job() -> String {
    let (mut own, mut collected) = (
        vec![record(1, 0, "begins"), record(1, 999_999, "ends")],
        Vec::new(),
    );
    let mut spans = vec![span(1, "job", (0, 999_999))];
    for number in 2..SPANS + 2 {
        let begin = number * 1_000;
        spans.push(span(number, "work", (begin, begin + 500)));
        own.push(record(number, begin, "first"));
        own.push(record(number, begin + 200, "one"));
        own.push(record(number, begin + 200, "two"));
        own.push(record(1, begin + 300, "of the job"));
        own.push(record(number, begin + 500, "last"));
        own.push(record(number, begin + 501, "late"));
        collected.push(record(number, begin + 400, "collected"));
    }
    own.push(record(9_999, 100, "of a span that is not there"));
    let records = |name, records: Vec<Value>| json!({"resource": resource(name), "scopeLogs": [{"logRecords": records}]});
    let logs = json!({"resourceLogs": [records("job", own), records("collector", collected)]});
    let spans = json!({"resourceSpans": [{"resource": resource("job"), "scopeSpans": [{"spans": spans}]}]});
    format!("{logs}\n{spans}")
}

/// Converts the job with this memory budget, and returns the summary.
fn converted(folder: &Folder, trace: &Path, memory: &str, options: &[&str]) -> Value {
    let options = [options, &["--memory", memory]].concat();
    let finished = convert(&[folder.file("job.jsonl", job())], trace, &options).expect_code(0);
    let summary = finished.summary();
    let is_small = memory == MEMORY[1];
    assert_eq!(
        summary["mapped"]["spilled_bytes"] != json!(0),
        is_small,
        "{summary}"
    );
    assert_eq!(summary["mapped"]["logs"], json!(SPANS * 7 + 3), "{summary}");
    summary
}

/// The query for the log records by name, with the row, the enclosing slices on the track (outermost first) and the count.
const PLACES: &str = "select s.name, t.name as row, count(*) as records, \
    (select group_concat(a.name, ' > ') from (select name from ancestor_slice(s.id) order by depth) a) as slices \
    from slice s join track t on t.id = s.track_id \
    where extract_arg(s.arg_set_id, 'debug.otel.severity_number') is not null \
    group by 1, 2, 4 order by 1";

#[test]
fn log_record_is_on_the_track_of_its_span_at_every_memory_limit() {
    let judge = some_or_return!(TraceProcessor::require_or_skip());
    let folder = Folder::new();
    let trace = folder.path("job.pftrace");
    for (by, row) in [("process", "spans"), ("trace", "job 00000000")] {
        let place = |name: &str, row: &str, records: u64, slices: Option<&str>| json!({"name": name, "row": row, "records": records, "slices": slices});
        let expected = [
            place("begins", row, 1, Some("job")),
            place("collected", row, SPANS, Some("job > work")),
            place("ends", row, 1, Some("job")),
            place("first", row, SPANS, Some("job > work")),
            place("last", row, SPANS, Some("job > work")),
            place("late", "logs", SPANS, None),
            place("of a span that is not there", "logs", 1, None),
            place("of the job", row, SPANS, Some("job > work")),
            place("one", row, SPANS, Some("job > work")),
            // trace_processor nests instants with the same time.
            place("two", row, SPANS, Some("job > work > one")),
        ];
        for memory in MEMORY {
            converted(&folder, &trace, memory, &["--by", by]);
            let [places, arguments, lines, arrows] = judge.query(
                &trace,
                [
                    PLACES,
                    "select extract_arg(arg_set_id, 'debug.otel.severity_text') as severity, \
                     extract_arg(arg_set_id, 'debug.code_line_number') as line, \
                     extract_arg(arg_set_id, 'debug.otel.span_id') as span, dur from slice where name = 'ends'",
                    "select p.name as process, l.prio, count(*) as lines from android_logs l \
                     join thread using (utid) join process p using (upid) group by 1, 2 order by 1",
                    "select o.name as begin, i.name as end, count(*) as arrows from flow f \
                     join slice o on o.id = f.slice_out join slice i on i.id = f.slice_in group by 1, 2",
                ],
            );
            assert_eq!(places, expected, "{by} {memory}");
            assert_eq!(
                arguments,
                [json!({"severity": "WARN", "line": 12, "span": format!("{:016x}", 1), "dur": 0})]
            );
            let line = |process: &str, lines: u64| json!({"process": process, "prio": 5, "lines": lines});
            assert_eq!(lines, [line("collector", SPANS), line("job", SPANS * 6 + 3)]);
            assert_eq!(arrows, [json!({"begin": "work", "end": "late", "arrows": SPANS})]);
        }
    }
}

#[test]
fn log_records_on_span_tracks_convert_back_with_their_resources() {
    let folder = Folder::new();
    let (trace, back) = (folder.path("job.pftrace"), folder.path("back.jsonl"));
    for memory in MEMORY {
        converted(&folder, &trace, memory, &["--attributes", "full"]);
        convert(&[&trace], &back, &["--memory", memory]).expect_code(0);
        Items::read(&back).assert_same(&Items::parse(&job()));
    }
}

#[test]
fn lean_trace_converts_back_log_records_but_not_span_events() {
    let folder = Folder::new();
    let (trace, back) = (folder.path("job.pftrace"), folder.path("back.jsonl"));
    converted(&folder, &trace, MEMORY[0], &[]);
    convert(&[&trace], &back, &[]).expect_code(0);
    let items = Items::read(&back);
    assert_eq!(items.of_kind("log").len() as u64, SPANS * 7 + 3);
    let spans = items.of_kind("span");
    assert_eq!(spans.len() as u64, SPANS + 1);
    assert!(spans.iter().all(|item| item["span"].get("events").is_none()));
}

#[test]
fn lean_trace_converts_back_complete_log_records_with_their_resources() {
    let folder = Folder::new();
    let (trace, back) = (folder.path("out.pftrace"), folder.path("back.jsonl"));
    let logs = |items: Items| items.changed(|item| item.get("log").is_some(), |_| {});
    for by in ["process", "trace"] {
        converted(&folder, &trace, MEMORY[0], &["--by", by]);
        convert(&[&trace], &back, &[]).expect_code(0);
        logs(Items::read(&back)).assert_same(&logs(Items::parse(&job())));
    }
    let at = |time: u64| (BEGIN + time).to_string();
    let level = json!([{"key": "level", "value": {"stringValue": "error"}}]);
    let records = json!([
        {"timeUnixNano": at(1), "severityNumber": 18, "severityText": "ERROR2", "eventName": "gen_ai.choice"},
        {"timeUnixNano": at(2), "severityNumber": 9, "body": {"stringValue": format!("first\n{}", "x".repeat(5_000))}},
        {"timeUnixNano": at(3), "body": {"kvlistValue": {"values": level}}, "attributes": level},
        {"timeUnixNano": at(4), "severityText": "NOTICE"},
        {"timeUnixNano": at(5), "eventName": "checkpoint", "body": {"intValue": "7"}},
    ]);
    // The second service has the name of the process of traces, the next resource has no service, and the last one no attributes.
    let host = json!({"attributes": [{"key": "host.name", "value": {"stringValue": "a"}}]});
    for resource in [resource("web"), resource("traces"), host, json!({})] {
        let logs = json!({"resourceLogs": [{"resource": resource, "scopeLogs": [{"logRecords": records}]}]});
        let input = folder.file("in.jsonl", logs.to_string());
        for by in ["process", "trace"] {
            convert(&[&input], &trace, &["--by", by]).expect_code(0);
            convert(&[&trace], &back, &[]).expect_code(0);
            Items::read(&back).assert_same(&Items::read(&input));
        }
    }
}

/// Returns the files of a trace in a folder.
fn parts_in(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).expect("the folder is there");
    let paths = entries.map(|entry| entry.expect("the folder can be listed").path());
    paths
        .filter(|path| path.extension().is_some_and(|name| name == "pftrace"))
        .collect()
}

#[test]
fn log_records_of_a_split_tree_are_in_its_files_and_convert_back() {
    let folder = Folder::new();
    let back = folder.path("back.jsonl");
    for memory in MEMORY {
        let options = ["--attributes", "full", "--split", "64KiB"];
        let summary = converted(&folder, &folder.path("job.pftrace"), memory, &options);
        let files = summary["mapped"]["files"].as_u64().unwrap_or_default();
        assert!(files > 3, "{memory}: {summary}");
        let parts = parts_in(folder.root());
        convert(&parts, &back, &[]).expect_code(0);
        Items::read(&back).assert_same(&Items::parse(&job()));
        parts
            .iter()
            .for_each(|part| fs::remove_file(part).expect("the file is there"));
    }
}

#[test]
fn log_records_of_merged_spans_are_on_the_logs_track() {
    let judge = some_or_return!(TraceProcessor::require_or_skip());
    let folder = Folder::new();
    let trace = folder.path("job.pftrace");
    for memory in MEMORY {
        converted(&folder, &trace, memory, &["--downsample", "600ns"]);
        let [rows] = judge.query(
            &trace,
            ["select t.name as row, count(*) as records, sum(s.parent_id is not null) as nested \
              from slice s join track t on t.id = s.track_id \
              where extract_arg(s.arg_set_id, 'debug.otel.severity_number') is not null group by 1 order by 1"],
        );
        let row =
            |row: &str, records: u64, nested: u64| json!({"row": row, "records": records, "nested": nested});
        assert_eq!(
            rows,
            // `two` is inside `one`, because they have the same time.
            [
                row("logs", SPANS * 6 + 1, SPANS),
                row("spans", SPANS + 2, SPANS + 2)
            ],
            "{memory}"
        );
    }
}

#[test]
fn flow_links_a_span_to_a_log_record_outside_its_time_range() {
    let judge = some_or_return!(TraceProcessor::require_or_skip());
    let folder = Folder::new();
    let spans = [span(1, "job", (500, 900)), span(2, "work", (600, 700))];
    let records = [
        record(2, 800, "first"),
        record(2, 850, "second"),
        record(1, 400, "early"),
        record(3, 650, "of no span"),
    ];
    let logs =
        json!({"resourceLogs": [{"resource": resource("log"), "scopeLogs": [{"logRecords": records}]}]});
    let spans = json!({"resourceSpans": [{"resource": resource("job"), "scopeSpans": [{"spans": spans}]}]});
    let input = folder.file("job.jsonl", format!("{logs}\n{spans}"));
    let (trace, back) = (folder.path("job.pftrace"), folder.path("back.jsonl"));
    for memory in ["64MiB", "1KiB"] {
        let summary = convert(&[&input], &trace, &["--memory", memory])
            .expect_code(0)
            .summary();
        assert_eq!(summary["mapped"]["links_outside"], 0, "{memory}");
        let [arrows] = judge.query(
            &trace,
            [
                "select o.name as begin, i.name as end from flow f join slice o on o.id = f.slice_out \
              join slice i on i.id = f.slice_in order by o.ts",
            ],
        );
        assert_eq!(
            arrows,
            [
                // Viewers order the ends of an arrow by time.
                json!({"begin": "early", "end": "job"}),
                json!({"begin": "work", "end": "first"}),
                json!({"begin": "first", "end": "second"}),
            ],
            "{memory}"
        );
        let summary = convert(&[&trace], &back, &[]).expect_code(0).summary();
        assert_eq!(summary["inputs"][0]["notes"], json!([]), "{memory}");
    }
}

/// Returns two ranks with two steps of a microsecond each, with log records in the middle of each step.
fn steps() -> String {
    let numbered = |key: &str, value: u64| json!([{"key": key, "value": {"intValue": value.to_string()}}]);
    let (mut spans, mut logs) = (Vec::new(), Vec::new());
    for rank in 0..2 {
        let resource = json!({"attributes": numbered("train.rank", rank)});
        let (mut of_rank, mut records) = (Vec::new(), Vec::new());
        for step in 1..=2 {
            let (id, begin) = (10 * step + rank, step * 10_000);
            let trace = format!("{step:032x}");
            let mut span = span(id, "train.step", (begin, begin + 1_000));
            span["traceId"] = trace.clone().into();
            span["attributes"] = numbered("train.step", step);
            span["parentSpanId"] = "".into();
            of_rank.push(span);
            let mut record = record(id, begin + 500, &format!("rank {rank} step {step}"));
            record["traceId"] = trace.into();
            records.push(record);
        }
        spans.push(json!({"resource": resource, "scopeSpans": [{"spans": of_rank}]}));
        logs.push(json!({"resource": resource, "scopeLogs": [{"logRecords": records}]}));
    }
    format!(
        "{}\n{}",
        json!({"resourceLogs": logs}),
        json!({"resourceSpans": spans})
    )
}

#[test]
fn log_records_of_selected_spans_are_on_their_rows() {
    let judge = some_or_return!(TraceProcessor::require_or_skip());
    let folder = Folder::new();
    let (input, trace) = (folder.file("steps.jsonl", steps()), folder.path("steps.pftrace"));
    let window = "..2026-11-18T11:06:40.000015Z";
    let on = |row: &str, name: &str| json!({"row": row, "name": name});
    // A log record whose span is not selected is kept if its own time and rank are selected.
    let cases = [
        (
            ["--step", "2"],
            vec![
                on("logs", "rank 0 step 1"),
                on("logs", "rank 1 step 1"),
                on("steps", "rank 0 step 2"),
                on("steps", "rank 1 step 2"),
            ],
        ),
        (
            ["--rank", "1"],
            vec![on("steps", "rank 1 step 1"), on("steps", "rank 1 step 2")],
        ),
        (
            ["--window", window],
            vec![on("steps", "rank 0 step 1"), on("steps", "rank 1 step 1")],
        ),
    ];
    for ((selection, expected), memory) in cases
        .iter()
        .flat_map(|case| ["64MiB", "1KiB"].map(|memory| (case, memory)))
    {
        let options = [selection.as_slice(), &["--memory", memory]].concat();
        let summary = convert(&[&input], &trace, &options).expect_code(0).summary();
        let has_spilled = summary["mapped"]["spilled_bytes"] != json!(0);
        assert_eq!(has_spilled, memory == "1KiB", "{options:?}: {summary}");
        let [rows, arrows] = judge.query(
            &trace,
            [
                "select t.name as row, s.name from slice s join track t on t.id = s.track_id \
                 where extract_arg(s.arg_set_id, 'debug.otel.severity_number') is not null order by 1, 2",
                "select count(*) as arrows from flow",
            ],
        );
        assert_eq!(&rows, expected, "{options:?}");
        assert_eq!(arrows, [json!({"arrows": 0})], "{options:?}");
    }
}
