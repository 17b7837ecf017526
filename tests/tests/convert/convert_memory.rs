//! Conversions that exceed the memory budget: in both directions, their memory stays close to the budget and no item is lost.

use std::{
    fmt::Write,
    fs,
    io::Write as _,
    path::{Path, PathBuf},
    process::Stdio,
};

use flate2::{Compression, write::GzEncoder};
use opentelemetry_proto::tonic::{
    common::v1::{AnyValue, any_value},
    logs::v1::{LogRecord, LogsData, ResourceLogs, ScopeLogs},
};
use prost::Message;
use pulsetrain_tests::{Finished, Folder, Items, command, wait_until};
use serde_json::{Value, json};

const SPANS: u64 = 24_000;
/// The length of a text in each span.
const TEXT_BYTES: usize = 2_000;
/// The memory budget of a conversion, and the overhead of the program: its own pages and its current work.
const MEMORY_KIB: u64 = 8 << 10;
const PROGRAM_KIB: u64 = 56 << 10;
/// The memory limit if an object is read in pieces, each as text and decoded.
const PIECES_KIB: u64 = 160 << 10;

/// Runs a conversion until it exits; returns its output and its peak resident memory, in KiB.
pub(crate) fn measured(input: &Path, output: &Path, more: &[&str]) -> (Finished, u64) {
    let mut child = command(["convert", "--json"])
        .arg(input)
        .arg("-o")
        .arg(output)
        .args(more)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("pulsetrain can be started");
    let status = format!("/proc/{}/status", child.id());
    let mut peak = 0;
    wait_until("the conversion is done", || {
        let status = fs::read_to_string(&status).unwrap_or_default();
        let resident = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let kib = resident.and_then(|resident| resident.split_whitespace().next()?.parse().ok());
        peak = peak.max(kib.unwrap_or(0));
        child.try_wait().expect("a child can be waited for").is_some()
    });
    let output = child.wait_with_output().expect("a child can be waited for");
    (Finished::new(output), peak)
}

/// Writes a file of `traces` traces with steps that have children, events, a point and a log record each: about 70 MB.
fn large(folder: &Folder, traces: u64) -> PathBuf {
    let path = folder.path("large.jsonl");
    let mut text = String::new();
    for number in 0..SPANS {
        let (trace, step) = (number % traces + 1, number / 8);
        let begin = 1_792_000_000_000_000_000 + step * 10_000;
        let (start, end) = match number % 8 {
            0 if traces == 1 && number == 0 => (begin, begin + SPANS * 10_000),
            0 => (begin, begin + 9_000),
            child => (begin + child * 1_000, begin + child * 1_000 + 900),
        };
        let parent = match number % 8 {
            // A single trace is one tree.
            0 if traces == 1 && number > 0 => format!("{:016x}", 1),
            0 => String::new(),
            _ => format!("{:016x}", step * 8 + 1),
        };
        let padding = format!("{number:x}.").repeat(TEXT_BYTES / 5);
        writeln!(
            text,
            r#"{{"resourceSpans":[{{"resource":{{"attributes":[{{"key":"train.rank","value":{{"intValue":"0"}}}}]}},"scopeSpans":[{{"scope":{{"name":"trainer"}},"spans":[{{"traceId":"{trace:032x}","spanId":"{:016x}","parentSpanId":"{parent}","name":"work","startTimeUnixNano":"{start}","endTimeUnixNano":"{end}","attributes":[{{"key":"padding","value":{{"stringValue":"{padding}"}}}}],"events":[{{"timeUnixNano":"{start}","name":"began"}}]}}]}}]}}]}}"#,
            number + 1,
        )
        .expect("a string can be written");
        if number % 8 == 0 {
            writeln!(text, r#"{{"resourceMetrics":[{{"scopeMetrics":[{{"metrics":[{{"name":"loss","gauge":{{"dataPoints":[{{"timeUnixNano":"{start}","asDouble":{number}}}]}}}}]}}]}}]}}"#).expect("a string can be written");
            // The id of the step, or of the span that contains all steps.
            let of = if traces == 1 && step % 2 == 0 {
                1
            } else {
                number + 1
            };
            writeln!(text, r#"{{"resourceLogs":[{{"scopeLogs":[{{"logRecords":[{{"timeUnixNano":"{start}","traceId":"{trace:032x}","spanId":"{of:016x}","body":{{"stringValue":"step {step} {padding}"}}}}]}}]}}]}}"#).expect("a string can be written");
        }
    }
    fs::write(&path, text).expect("a temporary file can be written");
    path
}

/// Converts with a small memory budget and returns the number of bytes in temporary files.
#[expect(clippy::print_stderr, reason = "the figures are kept in benches/results")]
fn with_little_memory(input: &Path, output: &Path, more: &[&str]) -> u64 {
    let memory = format!("{MEMORY_KIB}KiB");
    let (finished, peak) = measured(input, output, &[&["--memory", &memory], more].concat());
    let summary = finished.expect_code(0).summary();
    let most = MEMORY_KIB + PROGRAM_KIB;
    let bytes = fs::metadata(input).map_or(0, |file| file.len());
    let name = |path: &Path| path.file_name().unwrap_or_default().display().to_string();
    eprintln!(
        "{} -> {}: {bytes} bytes with --memory {memory}, peak {peak} KiB",
        name(input),
        name(output)
    );
    assert!(
        (1..most).contains(&peak),
        "{peak} KiB of {most} were taken: {summary}"
    );
    let (read, drawn) = (
        &summary["inputs"][0]["spilled_bytes"],
        &summary["mapped"]["spilled_bytes"],
    );
    read.as_u64().unwrap_or_default() + drawn.as_u64().unwrap_or_default()
}

/// Converts traces that exceed the memory budget to Perfetto and back.
fn goes_there_and_back(traces: u64) {
    let folder = Folder::new();
    let input = large(&folder, traces);
    let size = fs::metadata(&input).expect("the input is there").len();
    let (trace, back) = (folder.path("full.pftrace"), folder.path("back.jsonl"));
    assert!(with_little_memory(&input, &trace, &["--attributes", "full"]) > size / 2);
    assert!(with_little_memory(&trace, &back, &[]) > size / 2);
    Items::read(&back).assert_same(&Items::read(&input));
}

#[test]
fn object_above_the_message_limit_is_read_in_pieces() {
    let folder = Folder::new();
    let lines = fs::read_to_string(large(&folder, 3_000)).unwrap();
    let of_line = |line| str::strip_prefix(line, "{\"resourceSpans\":[")?.strip_suffix("]}");
    let resources: Vec<&str> = lines.lines().filter_map(of_line).collect();
    // As in a file, as Tempo responds, and as Jaeger responds, each span twice.
    for (before, after) in [
        ("{\"resourceSpans\":[\n", "]}"),
        ("{\"batches\":[", "]}"),
        ("{\"result\":{\"resourceSpans\":[", "]}}"),
    ] {
        let all = resources.join(",\n");
        let text = format!("{before}{all},{all}{after}");
        assert!(text.len() > 100 << 20);
        let (input, output) = (folder.file("one.json", text), folder.path("one.pftrace"));
        let (finished, peak) = measured(&input, &output, &["--memory", "8MiB"]);
        let summary = finished.expect_code(0).summary();
        assert_eq!(summary["mapped"]["spans"], SPANS, "{summary}");
        assert_eq!(summary["mapped"]["duplicates"], SPANS, "{summary}");
        assert!((1..PIECES_KIB).contains(&peak), "{before}: {peak} KiB were taken");
    }
}

#[test]
fn one_trace_larger_than_memory_round_trips_within_the_limit() {
    goes_there_and_back(1);
}

#[test]
fn many_traces_larger_than_memory_round_trip_within_the_limit() {
    goes_there_and_back(3_000);
}

#[test]
fn log_records_of_spans_need_no_memory_beyond_their_message() {
    const RECORDS: u64 = 12_000;
    const BODY_BYTES: usize = 4_000;
    let record = |number: u64| LogRecord {
        time_unix_nano: 1_795_000_000_000_000_000 + number,
        trace_id: (number % 100 + 1).to_be_bytes().repeat(2),
        span_id: (number + 1).to_be_bytes().to_vec(),
        body: Some(AnyValue {
            value: Some(any_value::Value::StringValue("x".repeat(BODY_BYTES))),
        }),
        ..LogRecord::default()
    };
    let message = LogsData {
        resource_logs: vec![ResourceLogs {
            scope_logs: vec![ScopeLogs {
                log_records: (0..RECORDS).map(record).collect(),
                ..ScopeLogs::default()
            }],
            ..ResourceLogs::default()
        }],
    };
    let folder = Folder::new();
    let message = message.encode_to_vec();
    let (input, output) = (folder.file("logs.binpb", &message), folder.path("out.pftrace"));
    let (finished, peak) = measured(&input, &output, &["--memory", "8MiB"]);
    let summary = finished.expect_code(0).summary();
    assert_eq!(summary["mapped"]["logs"], RECORDS, "{summary}");
    let most = MEMORY_KIB + PROGRAM_KIB + message.len() as u64 / 1024;
    assert!((1..most).contains(&peak), "{peak} KiB of {most} were taken");
}

#[test]
fn unbounded_nesting_is_rejected_before_it_uses_memory() {
    const BYTES: usize = 300 << 20;
    let folder = Folder::new();
    let (input, output) = (folder.path("deep.json.gz"), folder.path("deep.pftrace"));
    let file = fs::File::create(&input).unwrap();
    let mut file = GzEncoder::new(file, Compression::fast());
    file.write_all(br#"{"resourceSpans":[{"resource":{"attributes":"#)
        .unwrap();
    let brackets = [b'['; 1 << 20];
    (0..BYTES / brackets.len()).for_each(|_| file.write_all(&brackets).unwrap());
    file.finish().unwrap();
    let (finished, peak) = measured(&input, &output, &["--memory", "8MiB"]);
    let problems = finished.expect_code(1).summary()["inputs"][0]["problems"].to_string();
    assert!(problems.contains("line 1"), "{problems}");
    assert!((1..PIECES_KIB).contains(&peak), "{peak} KiB were taken");
}

/// The additional memory of resources, their rows and their series, in KiB.
const TRACKS_KIB: u64 = 64 << 10;

fn resource(number: u64) -> Value {
    let attribute = |key: &str, value: String| json!({"key": key, "value": {"stringValue": value}});
    json!({"attributes": [
        attribute("service.name", "web".to_owned()),
        attribute("service.instance.id", format!("pod-{number}")),
    ]})
}

fn short_span(number: u64) -> Value {
    let begin = 1_795_000_000_000_000_000 + number * 1_000;
    let span = json!({
        "traceId": format!("{:032x}", number + 1), "spanId": format!("{:016x}", number + 1), "name": "handle",
        "startTimeUnixNano": begin.to_string(), "endTimeUnixNano": (begin + 900).to_string(),
    });
    json!({"resourceSpans": [{"resource": resource(number), "scopeSpans": [{"spans": [span]}]}]})
}

fn record(number: u64) -> Value {
    let record = json!({"timeUnixNano": (1_795_000_000_000_000_000 + number).to_string(), "body": {"stringValue": "hello"}});
    json!({"resourceLogs": [{"resource": resource(number), "scopeLogs": [{"logRecords": [record]}]}]})
}

fn series(number: u64) -> Value {
    let point = json!({
        "timeUnixNano": (1_795_000_000_000_000_000 + number).to_string(), "asDouble": 0.5,
        "attributes": [{"key": "k", "value": {"stringValue": number.to_string()}}],
    });
    let metric = json!({"name": "m", "gauge": {"dataPoints": [point]}});
    json!({"resourceMetrics": [{"resource": resource(0), "scopeMetrics": [{"metrics": [metric]}]}]})
}

#[test]
fn memory_per_process_row_and_series_is_bounded() {
    type Lines = fn(u64) -> Vec<Value>;
    let cases: [(&str, u64, Lines, &str); 4] = [
        ("processes", 50_000, |number| vec![short_span(number)], "lean"),
        (
            "logs",
            20_000,
            |number| vec![short_span(number), record(number)],
            "lean",
        ),
        ("series", 20_000, |number| vec![series(number)], "lean"),
        ("full series", 20_000, |number| vec![series(number)], "full"),
    ];
    let folder = Folder::new();
    for (name, count, lines, attributes) in cases {
        let lines: Vec<String> = (0..count).flat_map(lines).map(|line| line.to_string()).collect();
        let input = folder.file("in.jsonl", lines.join("\n"));
        let output = folder.path("out.pftrace");
        let (finished, peak) = measured(&input, &output, &["--memory", "8MiB", "--attributes", attributes]);
        let notes = finished.expect_code(0).summary()["notes"].to_string();
        // More than 10,000 rows each.
        assert!(
            notes.contains("rows and counters make viewers slow"),
            "{name}: {notes}"
        );
        let most = MEMORY_KIB + PROGRAM_KIB + TRACKS_KIB;
        assert!(
            (1..most).contains(&peak),
            "{name}: {peak} KiB of {most} were taken"
        );
    }
}
