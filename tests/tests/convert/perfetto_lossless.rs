//! OTLP that is converted to a full Perfetto trace and back is unchanged, except for the losses in the documentation; that list
//! is complete and correct.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

use pulsetrain_otlp::{Signal, frames, write::Buffer};
use pulsetrain_tests::{Folder, Items, TraceProcessor, convert, corpus, some_or_return};
use serde_json::{Value, json};

/// The section of the documentation that lists the losses.
const LISTED: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../exporter/to-perfetto/PERFETTO.md");
const HEADING: &str = "## What a full trace does not give back";

/// Returns the items of an input, and those after a conversion to a full trace and back.
fn there_and_back(folder: &Folder, input: &Path) -> (Items, Items) {
    let (lines, trace, back) = (
        folder.path("in.jsonl"),
        folder.path("full.pftrace"),
        folder.path("back.jsonl"),
    );
    convert(&[input], &lines, &[]).expect_code(0);
    convert(&[input], &trace, &["--attributes", "full"]).expect_code(0);
    convert(&[&trace], &back, &[]).expect_code(0);
    (Items::read(&lines), Items::read(&back))
}

#[test]
fn output_of_sdks_and_the_collector_round_trips_through_a_full_trace() {
    let judge = TraceProcessor::require_or_skip();
    for (name, least) in [
        ("python_sdk.binpb", 13),
        ("rust_sdk.binpb", 6),
        ("collector.jsonl", 19),
        ("everything.jsonl", 25),
        ("web_service.jsonl", 8),
        ("llm_agent.jsonl", 6),
    ] {
        let folder = Folder::new();
        let (before, after) = there_and_back(&folder, &corpus(&format!("otlp/{name}")));
        assert!(before.len() >= least, "{name} has {} items", before.len());
        after.assert_same(&before);
        if let Some(judge) = &judge {
            judge.query(&folder.path("full.pftrace"), []);
        }
    }
}

#[test]
fn metric_without_points_round_trips() {
    let folder = Folder::new();
    there_and_back(&folder, &corpus("otlp/everything.jsonl"));
    let text = fs::read_to_string(folder.path("back.jsonl")).unwrap();
    assert!(text.contains(r#"{"name":"empty","gauge":{}}"#), "{text}");
}

/// Writes a file with one message of traces, whose only span has these fields in addition to its ids.
fn one_span(folder: &Folder, copies: usize, fields: impl Fn(&mut Buffer)) -> PathBuf {
    let mut span = Buffer::default();
    span.delimited(1, &[1; 16]);
    span.delimited(2, &[2; 8]);
    span.fixed64(7, 1_000);
    span.fixed64(8, 2_000);
    fields(&mut span);
    let mut spans = Buffer::default();
    (0..copies).for_each(|_| spans.delimited(2, span.as_slice()));
    let mut resource = Buffer::default();
    resource.delimited(2, spans.as_slice());
    let mut uncut = Buffer::default();
    uncut.delimited(1, resource.as_slice());
    let mut file = Vec::new();
    frames::append_binary(uncut.as_slice(), &mut file).expect("a small message has a length");
    folder.file("in.binpb", file)
}

fn name_of(items: &Items) -> &Value {
    &items.of_kind("span")[0]["span"]["name"]
}

/// A row of the list, by its first words, with a case that demonstrates it.
type Loss = (&'static str, fn(&Folder));

fn losses() -> Vec<Loss> {
    vec![
        ("A duplicate span", |folder| {
            let (before, after) = there_and_back(folder, &one_span(folder, 2, |_| {}));
            assert_eq!((before.len(), after.len()), (2, 1));
        }),
        ("Text that is not UTF-8", |folder| {
            let input = one_span(folder, 1, |span| span.delimited(5, b"a\xffb"));
            let (_, after) = there_and_back(folder, &input);
            assert_eq!(name_of(&after), &json!("a\u{fffd}b"));
        }),
        ("Fields that OTLP does not have", |folder| {
            let input = one_span(folder, 1, |span| span.uint(99, 7));
            there_and_back(folder, &input);
            let binary = folder.path("back.binpb");
            convert(&[&folder.path("full.pftrace")], &binary, &[]).expect_code(0);
            let read = fs::read(&binary).expect("the file can be read");
            let field = [0x98, 0x06, 7];
            let has = |bytes: &[u8]| bytes.windows(3).any(|window| window == field);
            assert!(has(&fs::read(&input).expect("the file can be read")) && !has(&read));
        }),
        ("An empty resource or scope", |folder| {
            let empty = json!({"resourceLogs": [{"scopeLogs": [{"scope": {"name": "silent"}}]}]});
            let mut line = Vec::new();
            let span = fs::read(one_span(folder, 1, |_| {})).expect("the file can be read");
            frames::append_json_line(Signal::Traces, &span[4..], &mut line).expect("the span is one");
            let text = format!("{empty}\n{}", String::from_utf8(line).expect("JSON is UTF-8"));
            let input = folder.file("in.jsonl", text);
            convert(&[&input], &folder.path("full.pftrace"), &["--attributes", "full"]).expect_code(0);
            convert(&[&folder.path("full.pftrace")], &folder.path("back.jsonl"), &[]).expect_code(0);
            let back = fs::read_to_string(folder.path("back.jsonl")).expect("the file can be read");
            assert!(!back.contains("silent"), "{back}");
        }),
    ]
}

#[test]
fn documented_list_of_conversion_losses_is_complete_and_correct() {
    let text = fs::read_to_string(LISTED).unwrap();
    let section = text.split_once(HEADING).expect("the section is there").1;
    let section = section.split("\n## ").next().unwrap_or_default();
    let rows = section.lines().filter_map(|line| line.strip_prefix("- **"));
    let listed: BTreeSet<&str> = rows.filter_map(|row| row.split("**").next()).collect();
    let shown: BTreeSet<&str> = losses().iter().map(|(name, _)| *name).collect();
    assert_eq!(listed, shown);
    for (_, case) in losses() {
        case(&Folder::new());
    }
}

#[test]
fn pid_is_kept_up_to_the_linux_maximum() {
    let judge = some_or_return!(TraceProcessor::require_or_skip());
    let folder = Folder::new();
    let of = |pid: u64| {
        let span = json!({
            "traceId": format!("{pid:032x}"), "spanId": format!("{pid:016x}"), "name": "span",
            "startTimeUnixNano": "1795000000000000000", "endTimeUnixNano": "1795000000000000005",
        });
        let attributes = json!([{"key": "process.pid", "value": {"intValue": pid.to_string()}}]);
        json!({"resource": {"attributes": attributes}, "scopeSpans": [{"spans": [span]}]})
    };
    let otlp = json!({"resourceSpans": [of(7), of(4_194_304), of(4_000_000_000)]});
    let (input, trace) = (
        folder.file("in.jsonl", otlp.to_string()),
        folder.path("out.pftrace"),
    );
    convert(&[&input], &trace, &[]).expect_code(0);
    let [pids] = judge.query(&trace, ["select pid from process where pid > 0 order by pid"]);
    assert_eq!(
        pids,
        [
            json!({"pid": 7}),
            json!({"pid": 4_194_304}),
            json!({"pid": 10_000_002})
        ]
    );
}

#[test]
fn dots_in_keys_become_underscores_in_sql_and_colliding_keys_show_one_value() {
    let judge = some_or_return!(TraceProcessor::require_or_skip());
    let folder = Folder::new();
    let attribute = |key: &str, value: u64| json!({"key": key, "value": {"intValue": value.to_string()}});
    let span = json!({
        "traceId": format!("{:032x}", 1), "spanId": format!("{:016x}", 1), "name": "span",
        "startTimeUnixNano": "1795000000000000000", "endTimeUnixNano": "1795000000000000005",
        "attributes": [attribute("http.route", 3), attribute("a.b", 1), attribute("a_b", 2)],
    });
    let otlp = json!({"resourceSpans": [{"scopeSpans": [{"spans": [span]}]}]});
    let (input, trace) = (
        folder.file("in.jsonl", otlp.to_string()),
        folder.path("out.pftrace"),
    );
    convert(&[&input], &trace, &["--attributes", "full"]).expect_code(0);
    let [keys] = judge.query(
        &trace,
        ["select flat_key as key from args where flat_key like 'debug.%' and flat_key not like 'debug.otel%' order by 1"],
    );
    assert_eq!(
        keys,
        [json!({"key": "debug.a_b"}), json!({"key": "debug.http_route"})]
    );
    // The trace itself contains all three.
    let back = folder.path("back.jsonl");
    convert(&[&trace], &back, &[]).expect_code(0);
    Items::read(&back).assert_same(&Items::read(&input));
}
