//! Large conversions: through temporary files, in several traces, with short spans drawn together; and every way in.

use std::{
    fs,
    io::Write,
    path::{Path, PathBuf},
    process::Stdio,
};

use pulsetrain_tests::{Finished, Items, TraceProcessor, command, convert};
use serde_json::{Value, json};
use tempfile::TempDir;

const NOON: u64 = 1_792_000_000_000_000_000;
const TRACES: u64 = 400;
const SPANS_A_TRACE: u64 = 25;

struct Folder(TempDir);

impl Folder {
    fn new() -> Self {
        Self(tempfile::tempdir().expect("a temporary folder can be made"))
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// A file with this text, or these bytes.
    fn file(&self, name: &str, bytes: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(name);
        fs::write(&path, bytes).expect("a temporary file can be written");
        path
    }
}

fn span(trace: u64, number: u64, start: u64, end: u64) -> Value {
    let parent = match number {
        0 => String::new(),
        _ => format!("{:016x}", trace * 100 + 1),
    };
    json!({
        "traceId": format!("{:032x}", trace + 1),
        "spanId": format!("{:016x}", trace * 100 + number + 1),
        "parentSpanId": parent,
        "name": if number == 0 { "train.step" } else { "kernel" },
        "startTimeUnixNano": (NOON + start).to_string(),
        "endTimeUnixNano": (NOON + end).to_string(),
        "attributes": [{"key": "n", "value": {"intValue": (trace * 100 + number).to_string()}}],
    })
}

fn message(rank: u64, spans: &[Value]) -> String {
    let resource = json!({"attributes": [{"key": "train.rank", "value": {"intValue": rank.to_string()}}]});
    json!({"resourceSpans": [{"resource": resource, "scopeSpans": [{"scope": {"name": "trainer"}, "spans": spans}]}]})
        .to_string()
}

/// Steps with short children, one behind the other; the spans of a trace are far apart in the file. Besides, a link from each
/// step to the one before, a point and a log record a step.
fn steps() -> String {
    let mut by_number: Vec<Vec<Value>> = vec![Vec::new(); SPANS_A_TRACE as usize];
    for trace in 0..TRACES {
        let begin = trace * 10_000;
        let mut step = span(trace, 0, begin, begin + 9_000);
        if trace > 0 {
            let before = (trace - 1) * 100 + 1;
            step["links"] = json!([{"traceId": format!("{trace:032x}"), "spanId": format!("{before:016x}")}]);
        }
        by_number[0].push(step);
        for number in 1..SPANS_A_TRACE {
            let start = begin + number * 300;
            by_number[number as usize].push(span(trace, number, start, start + 250));
        }
    }
    let mut lines: Vec<String> = by_number.iter().map(|spans| message(0, spans)).collect();
    let time = |trace: u64| (NOON + trace * 10_000).to_string();
    let point = |trace| json!({"timeUnixNano": time(trace), "asDouble": trace});
    let points: Vec<Value> = (0..TRACES).rev().map(point).collect();
    lines.push(json!({"resourceMetrics": [{"scopeMetrics": [{"metrics": [{"name": "loss", "gauge": {"dataPoints": points}}]}]}]}).to_string());
    let record = |trace| json!({"timeUnixNano": time(trace), "body": {"stringValue": "step"}});
    let records: Vec<Value> = (0..TRACES).map(record).collect();
    lines.push(json!({"resourceLogs": [{"scopeLogs": [{"logRecords": records}]}]}).to_string());
    lines.join("\n")
}

/// What a trace shows, in numbers that depend on everything in it.
const SHOWN: [&str; 4] = [
    "select count(*) as n, sum(s.dur) as dur, sum(s.depth) as depth, sum(s.ts % 1000003) as ts, \
     sum(extract_arg(s.arg_set_id, 'debug.n')) as numbers, \
     sum(extract_arg(s.arg_set_id, 'debug.n') * extract_arg(p.arg_set_id, 'debug.n')) as parents \
     from slice s left join slice p on p.id = s.parent_id where s.dur > 0",
    "select count(*) as n, sum(b.ts - a.ts) as dur from flow f join slice a on a.id = slice_out join slice b on b.id = slice_in",
    "select count(*) as n, sum(value) as value, sum(ts % 1000003) as ts from counter",
    "select count(*) as n, sum(ts % 1000003) as ts from android_logs",
];

#[test]
fn what_goes_through_temporary_files_is_drawn_as_what_stays_in_memory() {
    let folder = Folder::new();
    let input = folder.file("steps.jsonl", steps());
    let (held, spilled) = (folder.path("held.pftrace"), folder.path("spilled.pftrace"));
    let temporary = folder.0.path().to_str().unwrap();
    let in_memory = convert(&[&input], &held, &[]).expect_code(0).summary();
    let limits = ["--memory", "64KiB", "--temporary-folder", temporary];
    let in_files = convert(&[&input], &spilled, &limits).expect_code(0).summary();
    assert_eq!(in_memory["mapped"]["spilled_bytes"], 0);
    let bytes = in_files["mapped"]["spilled_bytes"].as_u64().unwrap();
    assert!(bytes > 1_000_000, "{in_files}");
    for counted in [
        "spans",
        "flows",
        "points",
        "logs",
        "lanes",
        "processes",
        "missing_parents",
    ] {
        assert_eq!(
            in_files["mapped"][counted], in_memory["mapped"][counted],
            "{counted}"
        );
    }
    assert_eq!(in_memory["mapped"]["spans"], TRACES * SPANS_A_TRACE);
    assert_eq!(in_memory["mapped"]["flows"], TRACES - 1);
    let Some(judge) = TraceProcessor::require_or_skip() else {
        return;
    };
    let expected = judge.query(&held, SHOWN);
    assert_eq!(expected[0][0]["n"], TRACES * SPANS_A_TRACE);
    assert_eq!(judge.query(&spilled, SHOWN), expected);
    // Nothing is left in the folder of temporary files.
    let left = fs::read_dir(folder.0.path()).unwrap().count();
    assert_eq!(left, 3);
}

/// One trace with one tree: a run around steps around kernels, with events of the run between them and a link from each step to
/// the one before. With `padding` bytes in each span.
fn one_tree(steps: u64, padding: usize) -> String {
    let text = "x".repeat(padding);
    let padded = |mut span: Value, parent: u64| {
        span["traceId"] = json!(format!("{:032x}", 1));
        span["parentSpanId"] = json!(format!("{parent:016x}"));
        let attributes = span["attributes"].as_array_mut().expect("a span has attributes");
        attributes.push(json!({"key": "padding", "value": {"stringValue": text}}));
        span
    };
    const RUN: u64 = 0xffff;
    let mut spans = Vec::new();
    for step in 0..steps {
        let begin = step * 10_000;
        for number in 1..10 {
            let start = begin + number * 900;
            let mut kernel = padded(span(step, number, start, start + 800), step * 100 + 1);
            if number == 5 && step % 50 == 7 {
                kernel["status"] = json!({"code": 2});
            }
            spans.push(kernel);
        }
        let mut whole = padded(span(step, 0, begin, begin + 9_900), RUN);
        if step > 0 {
            let before = format!("{:016x}", (step - 1) * 100 + 1);
            whole["links"] = json!([{"traceId": whole["traceId"], "spanId": before}]);
        }
        spans.push(whole);
    }
    let mut run = padded(span(steps, 0, 0, steps * 10_000), 0);
    run["spanId"] = json!(format!("{RUN:016x}"));
    run["parentSpanId"] = json!("");
    run["name"] = json!("train.run");
    let event =
        |step: u64| json!({"timeUnixNano": (NOON + step * 10_000 + 9_950).to_string(), "name": "saved"});
    run["events"] = (0..steps).map(event).collect();
    spans.push(run);
    let messages: Vec<String> = spans.chunks(64).map(|spans| message(0, spans)).collect();
    messages.join("\n")
}

/// The events of a trace, and what they stand in.
const EVENTS: &str = "select count(*) as n, sum(e.depth) as depth, sum(e.ts % 1000003) as ts from slice e \
                      where e.name = 'saved'";

#[test]
fn one_trace_with_one_tree_that_is_larger_than_memory_is_drawn_as_in_memory() {
    let folder = Folder::new();
    let input = folder.file("one.jsonl", one_tree(300, 700));
    let (held, spilled) = (folder.path("held.pftrace"), folder.path("spilled.pftrace"));
    for (option, value, spans) in [
        // The run, the steps, and what failed.
        ("--downsample", "1us", 1 + 300 + 6),
        ("--attributes", "lean", 3_001),
        ("--attributes", "full", 3_001),
    ] {
        let more = [option, value, "--memory", "64KiB"];
        let in_memory = convert(&[&input], &held, &more[..2]).expect_code(0).summary();
        let in_files = convert(&[&input], &spilled, &more).expect_code(0).summary();
        let bytes = in_files["mapped"]["spilled_bytes"].as_u64().unwrap();
        assert!(bytes > 3_000_000, "{in_files}");
        for counted in [
            "spans",
            "events",
            "flows",
            "lanes",
            "links_outside",
            "merged",
            "merged_slices",
        ] {
            let (files, memory) = (&in_files["mapped"][counted], &in_memory["mapped"][counted]);
            assert_eq!(files, memory, "{counted}");
        }
        assert_eq!(in_files["mapped"]["spans"], spans);
    }
    let Some(judge) = TraceProcessor::require_or_skip() else {
        return;
    };
    let queries = [SHOWN[0], SHOWN[1], EVENTS];
    let expected = judge.query(&held, queries);
    assert_eq!(
        (&expected[0][0]["n"], &expected[2][0]["n"]),
        (&json!(3_001), &json!(300))
    );
    assert_eq!(judge.query(&spilled, queries), expected);
}

#[test]
fn a_tree_that_is_larger_than_a_part_goes_on_in_the_next_with_true_times() {
    let folder = Folder::new();
    let input = folder.file("one.jsonl", one_tree(100, 300));
    for (memory, name) in [("128MiB", "held.pftrace"), ("64KiB", "spilled.pftrace")] {
        let arguments = ["--split", "32KiB", "--attributes", "full", "--memory", memory];
        let output = folder.path(name);
        let summary = convert(&[&input], &output, &arguments).expect_code(0).summary();
        let files: Vec<&str> = summary["files"]
            .as_array()
            .unwrap()
            .iter()
            .filter_map(Value::as_str)
            .collect();
        assert!(files.len() > 4, "{summary}");
        assert_eq!(summary["mapped"]["spans"], 1_001);
        assert_eq!(summary["over_size"], json!([]));
        for file in &files {
            let size = fs::metadata(file).unwrap().len();
            assert!(size < 36 << 10, "{file} has {size} bytes");
        }
        let Some(judge) = TraceProcessor::require_or_skip() else {
            return;
        };
        let (mut slices, mut events, mut again) = (0, 0, 0);
        for file in &files {
            let [drawn, continued, odd, saved] = judge.query(
                Path::new(file),
                [
                    "select count(*) as n from slice where dur > 0 and extract_arg(arg_set_id, 'debug.continued') is null",
                    "select name, dur, depth from slice where extract_arg(arg_set_id, 'debug.continued') = 1 order by depth",
                    "select count(*) as n from slice where dur > 0 and (name, dur, depth) not in \
                     (values ('train.run', 1000000, 0), ('train.step', 9900, 1), ('kernel', 800, 2))",
                    "select count(*) as n from slice where name = 'saved'",
                ],
            );
            slices += drawn[0]["n"].as_u64().unwrap();
            events += saved[0]["n"].as_u64().unwrap();
            again += continued.len() as u64;
            assert_eq!(odd[0]["n"], 0, "{file}");
            assert_eq!(continued.is_empty(), *file == files[0], "{file}: {continued:?}");
        }
        assert_eq!((slices, events), (1_001, 100));
        assert_eq!(summary["mapped"]["continued"], again);
        // All parts together are what the input was.
        let parts: Vec<&Path> = files.iter().map(Path::new).collect();
        let (back, whole) = (folder.path("back.jsonl"), folder.path("whole.jsonl"));
        convert(&parts, &back, &[]).expect_code(0);
        convert(&[&input], &whole, &[]).expect_code(0);
        Items::read(&back).assert_same(&Items::read(&whole));
    }
}

#[test]
fn a_part_that_one_span_makes_too_large_is_named() {
    let folder = Folder::new();
    let input = folder.file("one.jsonl", one_tree(3, 20_000));
    let output = folder.path("large.pftrace");
    let finished = convert(&[&input], &output, &["--split", "10KiB"]).expect_code(0);
    let over = finished.summary()["over_size"].to_string();
    assert!(over.contains("large.001.pftrace"), "{over}");
}

#[test]
fn a_split_trace_is_a_row_of_traces_that_open_by_themselves() {
    let folder = Folder::new();
    let input = folder.file("steps.jsonl", steps());
    let output = folder.path("steps.pftrace.gz");
    let summary = convert(&[&input], &output, &["--split", "64KiB"])
        .expect_code(0)
        .summary();
    let files: Vec<&str> = summary["files"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(Value::as_str)
        .collect();
    assert!(files.len() > 3, "{files:?}");
    assert_eq!(summary["mapped"]["files"], files.len());
    assert!(files[0].ends_with("steps.000.pftrace.gz") && !output.exists());
    let Some(judge) = TraceProcessor::require_or_skip() else {
        return;
    };
    let (mut slices, mut end) = (0, 0);
    for file in &files {
        let [row] = judge.query(
            Path::new(file),
            ["select count(*) as n, min(ts - 1792000000000000000) as first, max(ts + dur - 1792000000000000000) as last, \
              min(dur) as shortest from slice where dur <> 0"],
        );
        assert!(row[0]["first"].as_u64() >= Some(end), "{row:?}");
        assert_eq!(row[0]["shortest"], 250);
        end = row[0]["last"].as_u64().unwrap();
        slices += row[0]["n"].as_u64().unwrap();
    }
    assert_eq!(slices, TRACES * SPANS_A_TRACE);
    let usage = convert(&[&input], &folder.path("x.jsonl"), &["--split", "1MiB"]).expect_code(2);
    usage.expect_words(&["only a Perfetto trace can be split"]);
}

#[test]
fn short_spans_are_drawn_together_and_what_failed_is_kept() {
    let folder = Folder::new();
    let mut spans: Vec<Value> = vec![span(1, 0, 0, 100_000)];
    spans.extend((1..=20).map(|number| span(1, number, number * 100, number * 100 + 60)));
    spans[5]["status"] = json!({"code": 2});
    spans[9]["name"] = json!("copy");
    // Short and alone, and long.
    spans.push(span(1, 30, 50_000, 50_100));
    spans.push(span(1, 31, 60_000, 90_000));
    let input = folder.file("short.jsonl", message(0, &spans));
    let output = folder.path("short.pftrace");
    let summary = convert(&[&input], &output, &["--downsample", "1us"])
        .expect_code(0)
        .summary();
    assert_eq!(summary["mapped"]["merged"], 19);
    assert_eq!(summary["mapped"]["merged_slices"], 2);
    assert_eq!(summary["mapped"]["spans"], 4);
    let Some(judge) = TraceProcessor::require_or_skip() else {
        return;
    };
    let [slices, totals] = judge.query(
        &output,
        [
            "select s.name, s.dur, p.name as parent, extract_arg(s.arg_set_id, 'debug.merged.count') as count, \
             extract_arg(s.arg_set_id, 'debug.merged.duration_nanos') as nanos from slice s \
             left join slice p on p.id = s.parent_id where s.dur > 0 order by s.ts, s.dur desc",
            "select extract_arg(arg_set_id, 'debug.merged.names.copy.count') as copies, \
             extract_arg(arg_set_id, 'debug.merged.names.kernel.duration_nanos') as nanos from slice where name = 'short spans'",
        ],
    );
    let row = |name: &str, dur: u64, parent: Option<&str>, merged: Option<(u64, u64)>| json!({"name": name, "dur": dur, "parent": parent, "count": merged.map(|merged| merged.0), "nanos": merged.map(|merged| merged.1)});
    let step = Some("train.step");
    assert_eq!(
        slices,
        [
            row("train.step", 100_000, None, None),
            row("kernel", 360, step, Some((4, 240))),
            row("kernel", 60, step, None),
            row("short spans", 1_460, step, Some((15, 900))),
            row("kernel", 100, step, None),
            row("kernel", 30_000, step, None),
        ]
    );
    assert_eq!(totals, [json!({"copies": 1, "nanos": 840})]);
}

#[test]
fn every_way_in_gives_the_same_trace() {
    let folder = Folder::new();
    let text = steps();
    let input = folder.file("steps.jsonl", &text);
    let plain = folder.path("plain.pftrace");
    convert(&[&input], &plain, &[]).expect_code(0);
    let expected = fs::read(&plain).unwrap();
    let binary = folder.path("steps.binpb");
    convert(&[&input], &binary, &[]).expect_code(0);
    let gzip = {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(text.as_bytes()).unwrap();
        folder.file("steps.jsonl.gz", encoder.finish().unwrap())
    };
    let (first, rest) = text.split_once('\n').unwrap();
    let parts = [folder.file("first.jsonl", first), folder.file("rest.jsonl", rest)];
    let output = folder.path("other.pftrace");
    for inputs in [vec![&binary], vec![&gzip], parts.iter().collect()] {
        let inputs: Vec<&Path> = inputs.into_iter().map(PathBuf::as_path).collect();
        let summary = convert(&inputs, &output, &[]).expect_code(0).summary();
        assert_eq!(summary["inputs"].as_array().unwrap().len(), inputs.len());
        assert_eq!(fs::read(&output).unwrap(), expected, "{inputs:?}");
    }
    let mut child = command(["convert", "-", "-o"])
        .arg(&output)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(text.as_bytes()).unwrap();
    drop(stdin);
    let said = Finished::new(child.wait_with_output().unwrap()).expect_code(0);
    assert_eq!(fs::read(&output).unwrap(), expected);
    said.expect_words(&["27 messages", "spans 10000", "flows 399"]);
}

#[test]
fn what_is_torn_or_mixed_is_read_as_far_as_it_goes_and_told_with_its_place() {
    let folder = Folder::new();
    let text = steps();
    let lines: Vec<&str> = text.lines().collect();
    let mixed = [lines[0], "no JSON at all", lines[1], &lines[2][..200]].join("\n");
    let input = folder.file("mixed.jsonl", &mixed);
    let output = folder.path("mixed.pftrace");
    let finished = convert(&[&input], &output, &[]).expect_code(1);
    let summary = finished.summary();
    assert_eq!(summary["mapped"]["spans"], 2 * TRACES);
    assert_eq!(summary["inputs"][0]["lost"], 2);
    let problems = summary["inputs"][0]["problems"].to_string();
    assert!(
        problems.contains("line 2:") && problems.contains("line 4:"),
        "{problems}"
    );
    let binary = folder.path("steps.binpb");
    let whole = folder.file("whole.jsonl", lines[..3].join("\n"));
    convert(&[&whole], &binary, &[]).expect_code(0);
    let bytes = fs::read(&binary).unwrap();
    let torn = folder.file("torn.binpb", &bytes[..bytes.len() - 7]);
    let summary = convert(&[&torn], &output, &[]).expect_code(1).summary();
    assert_eq!(summary["mapped"]["spans"], 2 * TRACES);
    let problems = summary["inputs"][0]["problems"].to_string();
    assert!(
        problems.contains("byte ") && problems.contains("ends in the middle"),
        "{problems}"
    );
    // A good input beside a bad one is converted all the same.
    let summary = convert(&[&torn, &whole], &output, &[]).expect_code(1).summary();
    assert_eq!(summary["mapped"]["duplicates"], 2 * TRACES);
}

#[test]
fn nesting_beyond_what_viewers_draw_goes_on_beside_it() {
    let folder = Folder::new();
    let chain = (0..1_200_u64).map(|depth| {
        let mut span = span(7, depth, depth, 10_000 - depth);
        span["spanId"] = json!(format!("{:016x}", depth + 1));
        if depth > 0 {
            span["parentSpanId"] = json!(format!("{depth:016x}"));
        }
        span
    });
    let input = folder.file("deep.jsonl", message(0, &chain.collect::<Vec<_>>()));
    let output = folder.path("deep.pftrace");
    let summary = convert(&[&input], &output, &[]).expect_code(0).summary();
    assert_eq!(summary["mapped"]["too_deep"], 2);
    let Some(judge) = TraceProcessor::require_or_skip() else {
        return;
    };
    let [slices, flows] = judge.query(
        &output,
        [
            "select count(*) as n, max(depth) as deepest, min(dur) as shortest, count(distinct dur) as lengths from slice where dur <> 0",
            "select count(*) as n from flow",
        ],
    );
    assert_eq!(
        slices,
        [json!({"n": 1200, "deepest": 499, "shortest": 7602, "lengths": 1200})]
    );
    assert_eq!(flows, [json!({"n": 2})]);
}

#[test]
fn devices_have_rows_of_their_own_and_a_phase_is_a_state() {
    let folder = Folder::new();
    let mut spans = vec![span(1, 0, 0, 1_000)];
    for (number, device) in [(1, "0"), (2, "1")] {
        let mut kernel = span(1, number, 100, 900);
        kernel["attributes"] = json!([{"key": "device.id", "value": {"stringValue": device}}]);
        spans.push(kernel);
    }
    let state = |time: u64, state: &str, value: u64| json!({"timeUnixNano": (NOON + time).to_string(), "asInt": value, "attributes": [{"key": "phase", "value": {"stringValue": state}}]});
    let points = [
        state(0, "warmup", 1),
        state(0, "train", 0),
        state(400, "train", 1),
        state(800, "train", 1),
    ];
    let phase = json!({"name": "train.phase", "unit": "{state}", "gauge": {"dataPoints": points}});
    let metrics = json!({"resourceMetrics": [{"resource": {"attributes": [{"key": "train.rank", "value": {"intValue": "0"}}]}, "scopeMetrics": [{"metrics": [phase]}]}]});
    let input = folder.file("devices.jsonl", format!("{}\n{metrics}", message(0, &spans)));
    let output = folder.path("devices.pftrace");
    convert(&[&input], &output, &[]).expect_code(0);
    let Some(judge) = TraceProcessor::require_or_skip() else {
        return;
    };
    let [rows, processes] = judge.query(
        &output,
        [
            "select t.name as row, s.name, s.dur from slice s join process_track t on t.id = s.track_id where s.dur > 0 \
             order by t.name, s.ts",
            "select name from process where name like '%rank%'",
        ],
    );
    let row = |row: &str, name: &str, dur: u64| json!({"row": row, "name": name, "dur": dur});
    assert_eq!(
        rows,
        [
            row("device 0", "kernel", 800),
            row("device 1", "kernel", 800),
            row("train.phase", "warmup", 400),
            row("train.phase", "train", 400),
            row("trainer", "train.step", 1_000),
        ]
    );
    assert_eq!(processes.len(), 1);
}
