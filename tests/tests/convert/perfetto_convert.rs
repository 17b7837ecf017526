//! `pulsetrain convert` as a user runs it: in both directions, with filters, with invalid inputs, and with traces of other
//! programs.

use std::{
    fs,
    path::{Path, PathBuf},
};

use pulsetrain_perfetto::{Process, TraceWriter};
use pulsetrain_tests::{
    Finished, Folder, Items, TraceProcessor, command, convert, corpus, otlp::integer, some_or_return,
};
use serde_json::{Value, json};

/// Returns the lines of a file as one line of JSON, as `Items` reads it.
fn items(file: &Path) -> Items {
    let text = fs::read_to_string(file).expect("the file can be read");
    match serde_json::from_str::<Value>(&text) {
        Ok(complete) => Items::parse(&complete.to_string()),
        Err(_) => Items::parse(&text),
    }
}

fn rich() -> PathBuf {
    corpus("perfetto/rich.json")
}

#[test]
fn spans_round_trip_through_a_full_trace() {
    let folder = Folder::new();
    for name in ["full.pftrace", "full.pftrace.gz"] {
        let (trace, back) = (folder.path(name), folder.path("back.jsonl"));
        convert(&[&rich()], &trace, &["--attributes", "full"]).expect_code(0);
        convert(&[&trace], &back, &[]).expect_code(0);
        assert_eq!(items(&rich()).of_kind("span").len(), 12);
        items(&back).assert_same(&items(&rich()));
    }
}

#[test]
fn inconsistent_spans_are_drawn_and_counted() {
    let folder = Folder::new();
    let trace = folder.path("lean.pftrace");
    let summary = convert(&[&rich()], &trace, &[]).expect_code(0).summary();
    let mapped = &summary["mapped"];
    for (what, count) in [
        ("processes", 2),
        ("spans", 12),
        ("events", 3),
        ("missing_parents", 1),
        ("cycles", 1),
        ("end_before_start", 1),
        ("unfinished", 2),
        ("same_ids", 1),
        ("without_time", 2),
        ("links_outside", 1),
        // One link, and two children on other tracks than their parent: in another process, on another device.
        ("flows", 3),
    ] {
        assert_eq!(mapped[what], count, "{what}: {mapped}");
    }
    let judge = some_or_return!(TraceProcessor::require_or_skip());
    let [processes, slices, flows] = judge.query(
        &trace,
        [
            "select name from process where name is not null order by name",
            "select s.name, s.dur, p.name as parent from slice s left join slice p on p.id = s.parent_id \
             where s.name in ('train.step', 'perf.forward', 'perf.backward', 'orphan that ends before it starts')",
            "select count(*) as arrows from flow",
        ],
    );
    assert_eq!(
        processes,
        [
            json!({"name": "rank 0 trainer"}),
            json!({"name": "rank 1 trainer"})
        ]
    );
    let mut slices: Vec<String> = slices.iter().map(Value::to_string).collect();
    slices.sort();
    assert_eq!(
        slices,
        [
            r#"{"dur":0,"name":"orphan that ends before it starts","parent":null}"#,
            r#"{"dur":100,"name":"train.step","parent":null}"#,
            r#"{"dur":30,"name":"perf.forward","parent":"train.step"}"#,
            r#"{"dur":60,"name":"perf.backward","parent":null}"#,
        ]
    );
    assert_eq!(flows, [json!({"arrows": 3})]);
}

#[test]
fn parent_cycles_are_counted_at_every_memory_limit() {
    const CIRCLES: u64 = 500;
    let folder = Folder::new();
    let spans: Vec<Value> = (1..=2 * CIRCLES)
        .map(|id| {
            let begin = 1_795_000_000_000_000_000 + id * 10;
            json!({
                "traceId": format!("{:032x}", id.div_ceil(2)),
                "spanId": format!("{id:016x}"),
                "parentSpanId": format!("{:016x}", if id % 2 == 0 { id - 1 } else { id + 1 }),
                "name": "circle",
                "startTimeUnixNano": begin.to_string(),
                "endTimeUnixNano": (begin + 5).to_string(),
            })
        })
        .collect();
    let otlp = json!({"resourceSpans": [{"scopeSpans": [{"spans": spans}]}]});
    let input = folder.file("circles.jsonl", otlp.to_string());
    for memory in ["4KiB", "64MiB"] {
        let finished = convert(&[&input], &folder.path("out.pftrace"), &["--memory", memory]).expect_code(0);
        let mapped = &finished.summary()["mapped"];
        assert_eq!(mapped["cycles"], CIRCLES, "{memory}: {mapped}");
        assert_eq!(mapped["spilled_bytes"] != 0, memory == "4KiB", "{mapped}");
    }
}

#[test]
fn steps_ranks_windows_and_attributes_can_be_selected() {
    let folder = Folder::new();
    let spans = |arguments: &[&str]| {
        let output = folder.path("some.pftrace");
        let summary = convert(&[&rich()], &output, arguments).expect_code(0).summary();
        summary["mapped"]["spans"].as_u64()
    };
    // All spans of one trace: four of rank 1 and one of rank 0.
    assert_eq!(spans(&["--step", "100..120"]), Some(5));
    assert_eq!(spans(&["--rank", "1"]), Some(4));
    assert_eq!(spans(&["--rank", "0,1"]), Some(12));
    assert_eq!(
        spans(&["--window", "..2023-11-14T22:13:20.000000003Z", "--rank", "1"]),
        Some(1)
    );
    let size = |attributes: &str| {
        let output = folder.path("sized.pftrace");
        let summary = convert(&[&rich()], &output, &["--attributes", attributes])
            .expect_code(0)
            .summary();
        summary["bytes"].as_u64().expect("the summary has the size")
    };
    let [one, lean, full] = ["loss", "lean", "full"].map(size);
    assert!(one < lean && lean < full, "{one} {lean} {full}");
}

#[test]
fn truncated_perfetto_trace_yields_complete_packets_and_reports_the_cut() {
    let folder = Folder::new();
    let (trace, cut, back) = (
        folder.path("t.pftrace"),
        folder.path("cut.pftrace"),
        folder.path("b.jsonl"),
    );
    convert(&[&rich()], &trace, &["--attributes", "full"]).expect_code(0);
    let bytes = fs::read(&trace).expect("the trace can be read");
    fs::write(&cut, &bytes[..bytes.len() - 3]).expect("a file can be written");
    let finished = convert(&[&cut], &back, &[]).expect_code(1);
    let problem = finished.summary()["inputs"][0]["problems"][0].to_string();
    assert!(
        problem.contains("the trace ends in the middle of a packet"),
        "{problem}"
    );
    assert!(!items(&back).is_empty());
}

#[test]
fn invalid_convert_arguments_are_usage_errors() {
    let folder = Folder::new();
    convert(&[&rich()], &folder.path("out.txt"), &[])
        .expect_code(2)
        .expect_words(&[".pftrace", ".jsonl"]);
    convert(&[&rich()], &rich(), &[])
        .expect_code(2)
        .expect_words(&["both input and output"]);
    convert(&[&rich()], &folder.path("o.pftrace"), &["--step", "nine"])
        .expect_code(2)
        .expect_words(&["100..120"]);
    let missing = folder.path("missing.jsonl");
    convert(&[&missing], &folder.path("o.pftrace"), &[])
        .expect_code(1)
        .expect_words(&["check the path"]);
}

#[test]
fn tunix_trace_converts_to_spans_and_back_to_a_trace() {
    let folder = Folder::new();
    // The number of SLICE_BEGIN events in the files, minus the groups that version 1 has on several timelines.
    for (name, spans) in [
        ("colocated/trace/perfetto_trace_1795219880.pb", 209 - 16),
        ("colocated/trace/perfetto_trace_v2_1795219880.pb", 154),
        ("rollout1_actor2/trace/perfetto_trace_1795219968.pb", 258 - 56),
        ("rollout1_actor2/trace/perfetto_trace_v2_1795219968.pb", 170),
    ] {
        let input = corpus(&format!("tunix/{name}"));
        let (otlp, trace) = (folder.path("tunix.jsonl"), folder.path("tunix.pftrace"));
        convert(&[&input], &otlp, &[]).expect_code(0);
        let read = items(&otlp);
        assert_eq!(read.of_kind("span").len(), spans, "{name}");
        let summary = convert(&[&otlp], &trace, &[]).expect_code(0).summary();
        assert_eq!(summary["mapped"]["spans"], spans, "{name}");
        let Some(judge) = TraceProcessor::require_or_skip() else {
            continue;
        };
        let [ended] = judge.query(
            &trace,
            ["select count(*) as ended from slice where dur >= 0 and name != 'resource'"],
        );
        assert_eq!(ended, [json!({"ended": spans})], "{name}");
    }
}

/// Returns a trace of another program: two threads with a flow between them, instants inside and outside slices, a slice
/// without an end.
fn foreign() -> Vec<u8> {
    let write = || -> std::io::Result<Vec<u8>> {
        let mut trace = TraceWriter::new(Vec::new());
        let process = trace.process(&Process {
            pid: 7,
            name: "server",
            ..Process::default()
        })?;
        let (main, worker) = (
            trace.thread(process, 17, "main")?,
            trace.thread(process, 18, "worker")?,
        );
        trace.instant(process, 900, "garbage collected", |event| {
            event.category("gc").annotate("freed", 42_i64);
        })?;
        trace.begin(main, 1_000, "send", |event| {
            event.flow(5);
        })?;
        trace.instant(main, 1_050, "queued", |_| {})?;
        trace.end(main, 1_100)?;
        trace.begin(worker, 1_200, "receive", |event| {
            event.last_of_flow(5);
        })?;
        trace.end(worker, 1_300)?;
        // The id of the flow is reused.
        trace.begin(main, 1_400, "send again", |event| {
            event.flow(5);
        })?;
        trace.end(main, 1_450)?;
        trace.instant(worker, 1_460, "marker", |event| {
            event.flow(5);
        })?;
        trace.begin(worker, 1_500, "never ends", |_| {})?;
        trace.finish()
    };
    write().expect("writing into memory does not fail")
}

#[test]
fn foreign_instants_flows_and_threads_become_logs_links_and_attributes() {
    let folder = Folder::new();
    let input = folder.file("foreign.pftrace", foreign());
    let back = folder.path("back.jsonl");
    let summary = convert(&[&input], &back, &[]).expect_code(0).summary();
    assert_eq!(summary["items"], json!({"spans": 4, "logs": 2}), "{summary}");
    let notes = summary["inputs"][0]["notes"].to_string();
    for note in ["1 slices never end", "1 flow endpoints outside any slice"] {
        assert!(notes.contains(note), "{notes}");
    }
    let printed = Finished::run(command(["convert"]).arg(&input).arg("-o").arg(&back));
    printed.expect_words(&[
        "bytes): spans 4, logs 2",
        "foreign.pftrace: note: 1 slices never end",
    ]);
    let items = items(&back);
    let log = |name: &str| {
        let logs = items.of_kind("log").into_iter().map(|item| &item["log"]);
        logs.into_iter()
            .find(|log| log["eventName"] == name)
            .expect("the instant is a log record")
            .clone()
    };
    assert_eq!(integer(&log("garbage collected"), "freed"), Some(42));
    assert_eq!(integer(&log("marker"), "thread.id"), Some(18));
    let span = |name: &str| items.spans_of(name)[0]["span"].clone();
    let (send, receive) = (span("send"), span("receive"));
    assert_eq!(send["events"][0]["name"], "queued");
    assert_eq!(integer(&send, "thread.id"), Some(17));
    let link = json!([{"traceId": send["traceId"], "spanId": send["spanId"]}]);
    assert_eq!(receive["links"], link);
    for unlinked in ["send", "send again", "never ends"] {
        assert!(span(unlinked).get("links").is_none(), "{unlinked}");
    }
}

#[test]
fn perfetto_trace_without_a_wall_clock_requires_the_start_time() {
    let folder = Folder::new();
    // One sequence, one instant at 5 ns of the boot clock.
    let packet = [0x40, 5, 0x50, 1, 0x5a, 7, 0x48, 3, 0xba, 0x01, 2, b'g', b'c'];
    let input = folder.file(
        "boot.pftrace",
        [&[0x0a, packet.len() as u8][..], &packet].concat(),
    );
    let back = folder.path("back.jsonl");
    convert(&[&input], &back, &[])
        .expect_code(1)
        .expect_words(&["1970", "--start-time"]);
    convert(&[&input], &back, &["--start-time", "2026-11-21T00:18:40Z"]).expect_code(0);
    assert_eq!(items(&back).of_kind("log").len(), 1);
}

#[test]
fn lean_trace_converts_back_with_its_resources_and_each_log_record_once() {
    let folder = Folder::new();
    let (trace, back) = (folder.path("lean.pftrace"), folder.path("back.jsonl"));
    let logs = |path: &Path| items(path).of_kind("log").len();
    let everything = corpus("otlp/everything.jsonl");
    convert(&[&everything], &trace, &[]).expect_code(0);
    convert(&[&trace], &back, &[]).expect_code(0);
    assert_eq!(logs(&back), logs(&everything));
    convert(&[corpus("otlp/web_service.jsonl")], &trace, &[]).expect_code(0);
    convert(&[&trace], &back, &[]).expect_code(0);
    let services = |path: &Path| {
        let items = items(path);
        let spans = items
            .of_kind("span")
            .into_iter()
            .map(|item| item["resource"].to_string());
        spans.collect::<std::collections::BTreeSet<_>>()
    };
    assert_eq!(services(&back), services(&corpus("otlp/web_service.jsonl")));
}

/// Returns one span on a row that sorts last by name and one on a thread, a log record, a gauge and a state, all of one
/// process.
fn every_row() -> String {
    let resource = json!({"attributes": [{"key": "service.name", "value": {"stringValue": "trainer"}}]});
    let at = "1700000000000000005";
    let attribute = |key: &str, value: &str| json!([{"key": key, "value": {"stringValue": value}}]);
    let span = |id: &str, name: &str, attributes: Value| {
        json!({"traceId": "0".repeat(31) + "1", "spanId": id, "name": name, "startTimeUnixNano": at,
            "endTimeUnixNano": "1700000000000000900", "attributes": attributes})
    };
    let spans = [
        span("0000000000000001", "train.step", json!([])),
        span("0000000000000002", "x", attribute("thread.name", "main")),
    ];
    let gauge = json!({"name": "loss", "gauge": {"dataPoints": [{"timeUnixNano": at, "asDouble": 1}]}});
    let state = json!({"name": "train.phase", "unit": "{state}", "sum": {"aggregationTemporality": 2, "dataPoints": [
        {"timeUnixNano": at, "asInt": 1, "attributes": attribute("phase", "warmup")}]}});
    let record = json!({"timeUnixNano": at, "body": {"stringValue": "hello"}});
    [
        json!({"resourceSpans": [{"resource": resource, "scopeSpans": [{"spans": spans}]}]}),
        json!({"resourceMetrics": [{"resource": resource, "scopeMetrics": [{"metrics": [gauge, state]}]}]}),
        json!({"resourceLogs": [{"resource": resource, "scopeLogs": [{"logRecords": [record]}]}]}),
    ]
    .map(|line| line.to_string())
    .join("\n")
}

#[test]
fn tracks_of_a_process_keep_their_order_and_are_not_sorted_by_name() {
    let judge = some_or_return!(TraceProcessor::require_or_skip());
    let folder = Folder::new();
    let (input, trace) = (
        folder.file("rows.jsonl", every_row()),
        folder.path("rows.pftrace"),
    );
    convert(&[input], &trace, &[]).expect_code(0);
    // The viewer shows the children of a process in this order.
    let [rows] = judge.query(
        &trace,
        ["include perfetto module viz.summary.track_event; \
          select child.name from _track_event_tracks_ordered_groups child \
          join track heading on heading.id = child.parent_id where heading.name = 'tracks' order by child.order_id"],
    );
    let names: Vec<&str> = rows.iter().filter_map(|row| row["name"].as_str()).collect();
    assert_eq!(names, ["train.phase", "steps", "thread main", "metrics", "logs"]);
}

/// Returns a span of a resource with these attributes.
fn of_resource(attributes: &[(&str, &str)]) -> Value {
    let attributes: Vec<Value> = attributes
        .iter()
        .map(|(key, value)| json!({"key": key, "value": {"stringValue": value}}))
        .collect();
    let span = json!({"name": "work", "startTimeUnixNano": "1700000000000000000", "endTimeUnixNano": "1700000000000001000"});
    json!({"resourceSpans": [{"resource": {"attributes": attributes}, "scopeSpans": [{"spans": [span]}]}]})
}

#[test]
fn replicas_are_named_by_differing_attributes_regardless_of_order() {
    let judge = some_or_return!(TraceProcessor::require_or_skip());
    let folder = Folder::new();
    let (input, trace) = (folder.path("in.jsonl"), folder.path("out.pftrace"));
    let [web, version] = [("service.name", "web"), ("service.version", "2")];
    let lines = [
        of_resource(&[web, version, ("k8s.pod.name", "web-a")]),
        of_resource(&[("k8s.pod.name", "web-a"), version, web]),
        of_resource(&[web, version, ("k8s.pod.name", "web-b")]),
        of_resource(&[("service.name", "db"), ("db.role", "primary")]),
        of_resource(&[("service.name", "db"), ("db.role", "replica")]),
        of_resource(&[("service.name", "alone")]),
    ];
    fs::write(&input, lines.map(|line| line.to_string()).join("\n"))
        .expect("a temporary file can be written");
    convert(&[&input], &trace, &[]).expect_code(0);
    let names = |query| -> Vec<String> {
        let [rows] = judge.query(&trace, [query]);
        rows.iter()
            .map(|row| row["name"].as_str().unwrap_or_default().to_owned())
            .collect()
    };
    let processes = "select name from process where name is not null order by name";
    assert_eq!(
        names(processes),
        [
            "alone",
            "db (primary)",
            "db (replica)",
            "web (web-a)",
            "web (web-b)"
        ]
    );

    convert(
        &[&input],
        &trace,
        &[
            "--process-by",
            "k8s.pod.name,db.role,service.name",
            "--rows",
            "none",
        ],
    )
    .expect_code(0);
    assert_eq!(
        names(processes),
        ["alone", "primary", "replica", "web-a", "web-b"]
    );
}

#[test]
fn empty_selection_fails_and_keeps_the_previous_file() {
    let folder = Folder::new();
    let request = folder.file("request.jsonl", request());
    let later = "2030-01-01T00:00:00Z..";
    for (input, items, selection) in [
        (&rich(), 12, &["--step", "101..120"][..]),
        (&request, 4, &["--rank", "7"]),
        (&request, 4, &["--window", later]),
        (&request, 4, &["--window", later, "--split", "1MiB"]),
    ] {
        for name in ["kept.pftrace", "kept.pftrace.gz"] {
            let output = folder.file(name, "before");
            let summary = convert(&[input], &output, selection).expect_code(1).summary();
            let problem = summary["problems"][0].to_string();
            assert!(problem.contains(&format!("leave out all {items} ")), "{problem}");
            assert_eq!(
                (&summary["files"], &summary["mapped"]["files"]),
                (&json!([]), &json!(0))
            );
            assert_eq!(fs::read(&output).expect("the file of before is there"), b"before");
        }
    }
}

/// A trace id, as a user pastes it.
const TRACE_ID: &str = "4bf92f3577b34da6a3ce929d0e0e4736";

/// Returns a request through two services with a failure, an event after the end of its span, and a log record.
fn request() -> String {
    let of =
        |service: &str| json!({"attributes": [{"key": "service.name", "value": {"stringValue": service}}]});
    let span = |id: u8, parent: &str, name: &str, kind: u8| {
        json!({"traceId": TRACE_ID, "spanId": format!("{id:016x}"), "parentSpanId": parent, "name": name, "kind": kind,
            "startTimeUnixNano": (1_700_000_000_000_000_000 + u64::from(id)).to_string(),
            "endTimeUnixNano": (1_700_000_000_000_001_000 - u64::from(id)).to_string()})
    };
    let (mut root, within, mut remote) = (
        span(1, "", "GET /", 2),
        span(2, "0000000000000001", "render", 1),
        span(3, "0000000000000001", "charge", 2),
    );
    root["events"] = json!([{"name": "flushed", "timeUnixNano": "1700000000000005000"}]);
    remote["status"] = json!({"code": 2, "message": "card declined"});
    let record = json!({"timeUnixNano": "1700000000000000100", "traceId": TRACE_ID, "body": {"stringValue": "declined"}});
    [
        json!({"resourceSpans": [{"resource": of("web"), "scopeSpans": [{"spans": [root, within]}]}]}),
        json!({"resourceSpans": [{"resource": of("payment"), "scopeSpans": [{"spans": [remote]}]}]}),
        json!({"resourceLogs": [{"resource": of("payment"), "scopeLogs": [{"logRecords": [record]}]}]}),
    ]
    .map(|line| line.to_string())
    .join("\n")
}

#[test]
fn trace_id_is_searchable_in_a_lean_trace_and_converts_back() {
    let folder = Folder::new();
    let input = folder.file("request.jsonl", request());
    let (trace, back) = (folder.path("request.pftrace"), folder.path("back.jsonl"));
    let summary = convert(&[&input], &trace, &[]).expect_code(0).summary();
    // The event after the end of its span has the latest time.
    let range = [1_700_000_000_000_000_001_u64, 1_700_000_000_000_005_000];
    assert_eq!(summary["time_range"], json!(range));

    convert(&[&trace], &back, &[]).expect_code(0);
    let items = items(&back);
    // The log record, and the event that is in no slice; the row of errors repeats a span.
    assert_eq!(items.of_kind("log").len(), 2);
    for (name, kind, status) in [
        ("GET /", json!(2), json!(null)),
        ("render", json!(1), json!(null)),
        ("charge", json!(2), json!({"code": 2, "message": "card declined"})),
    ] {
        let span = &items.spans_of(name)[0]["span"];
        assert_eq!(
            (&span["traceId"], &span["kind"]),
            (&json!(TRACE_ID), &kind),
            "{name}"
        );
        assert_eq!(span.get("status").unwrap_or(&json!(null)), &status, "{name}");
        let attributes = span["attributes"].as_array().expect("a span has attributes");
        let keys: Vec<_> = attributes.iter().map(|attribute| &attribute["key"]).collect();
        assert_eq!(keys, ["thread.name"], "{name}");
    }

    let judge = some_or_return!(TraceProcessor::require_or_skip());
    let query = format!(
        "select s.name, extract_arg(s.arg_set_id, 'debug.otel.kind') as kind from args join slice s using (arg_set_id) \
         where display_value = '{TRACE_ID}' order by s.ts"
    );
    let errors = "select i.name, i.ts = s.ts + s.dur as is_at_end, p.name as process, \
                  extract_arg(i.arg_set_id, 'debug.otel.status_message') as message \
                  from slice i join process_track t on t.id = i.track_id join process p using (upid) \
                  join slice s on s.name || ' failed' = i.name where t.name = 'errors'";
    let [found, errors] = judge.query(&trace, [&query, errors]);
    assert_eq!(
        errors,
        [json!({"name": "charge failed", "is_at_end": 1, "process": "payment", "message": "card declined"})]
    );
    assert_eq!(
        found,
        [
            json!({"name": "GET /", "kind": "server"}),
            json!({"name": "charge", "kind": "server"}),
            json!({"name": "declined", "kind": null}),
        ]
    );
}

#[test]
fn converting_back_a_trace_drawn_by_trace_notes_missing_data() {
    let folder = Folder::new();
    let input = folder.file("request.jsonl", request());
    let (trace, back) = (folder.path("request.pftrace"), folder.path("back.jsonl"));
    for (arguments, notes) in [(vec!["--by", "trace"], 1), (vec![], 0)] {
        convert(&[&input], &trace, &arguments).expect_code(0);
        let summary = convert(&[&trace], &back, &[]).expect_code(0).summary();
        let recorded = summary["inputs"][0]["notes"].to_string();
        assert_eq!(
            recorded.matches("drawn with `--by trace`").count(),
            notes,
            "{recorded}"
        );
    }
}
