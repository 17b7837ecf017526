//! `pulsetrain convert`, run as a user runs it: there and back, filters, broken inputs, and traces of others.

use std::{
    fs,
    path::{Path, PathBuf},
};

use pulsetrain_tests::{Folder, Items, TraceProcessor, convert, corpus};
use serde_json::{Value, json};

/// One line of JSON, as `Items` reads it.
fn items(file: &Path) -> Items {
    let text = fs::read_to_string(file).expect("the file can be read");
    match serde_json::from_str::<Value>(&text) {
        Ok(whole) => Items::parse(&whole.to_string()),
        Err(_) => Items::parse(&text),
    }
}

fn rich() -> PathBuf {
    corpus("perfetto/rich.json")
}

#[test]
fn spans_come_back_as_they_were_through_a_full_trace() {
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
fn what_makes_no_sense_is_drawn_and_counted() {
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
        // One link, and two children that are drawn elsewhere than their parent: another process, another device.
        ("flows", 3),
    ] {
        assert_eq!(mapped[what], count, "{what}: {mapped}");
    }
    let Some(judge) = TraceProcessor::require_or_skip() else {
        return;
    };
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
fn steps_ranks_windows_and_attributes_can_be_asked_for() {
    let folder = Folder::new();
    let spans = |arguments: &[&str]| {
        let output = folder.path("some.pftrace");
        let summary = convert(&[&rich()], &output, arguments).expect_code(0).summary();
        summary["mapped"]["spans"].as_u64()
    };
    // All that one trace holds: four spans of rank 1 and one of rank 0.
    assert_eq!(spans(&["--step", "100..120"]), Some(5));
    assert_eq!(spans(&["--step", "101..120"]), Some(0));
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
fn a_trace_that_was_cut_gives_what_was_whole_and_says_where() {
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
fn a_command_line_that_makes_no_sense_is_a_usage_error() {
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
fn what_tunix_wrote_becomes_spans_and_a_trace_again() {
    let folder = Folder::new();
    // As many as there are SLICE_BEGIN events in the files, less the groups that version 1 has on several timelines.
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
