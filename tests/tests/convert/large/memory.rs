//! Conversions that exceed the memory budget and use temporary files.

use std::fs;

use pulsetrain_tests::{Folder, TraceProcessor, convert, some_or_return};
use serde_json::json;

use crate::large::input::{SPANS_A_TRACE, TRACES, one_tree, steps};

/// Queries for aggregates that depend on all content of a trace.
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
fn spilled_conversion_draws_the_same_trace_as_in_memory() {
    let folder = Folder::new();
    let input = folder.file("steps.jsonl", steps());
    let (held, spilled) = (folder.path("held.pftrace"), folder.path("spilled.pftrace"));
    let temporary = folder.root().to_str().unwrap();
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
    let judge = some_or_return!(TraceProcessor::require_or_skip());
    let expected = judge.query(&held, SHOWN);
    assert_eq!(expected[0][0]["n"], TRACES * SPANS_A_TRACE);
    assert_eq!(judge.query(&spilled, SHOWN), expected);
    // Nothing is left in the folder of temporary files.
    let left = fs::read_dir(folder.root()).unwrap().count();
    assert_eq!(left, 3);
}

/// The query for the events of a trace and their tracks.
const EVENTS: &str = "select count(*) as n, sum(e.depth) as depth, sum(e.ts % 1000003) as ts from slice e \
                      where e.name = 'saved'";

#[test]
fn spilled_single_tree_is_drawn_the_same_as_in_memory() {
    let folder = Folder::new();
    let input = folder.file("one.jsonl", one_tree(300, 700));
    let (held, spilled) = (folder.path("held.pftrace"), folder.path("spilled.pftrace"));
    for (option, value, spans) in [
        // The run, the steps, and the failed spans.
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
    let judge = some_or_return!(TraceProcessor::require_or_skip());
    let queries = [SHOWN[0], SHOWN[1], EVENTS];
    let expected = judge.query(&held, queries);
    assert_eq!(
        (&expected[0][0]["n"], &expected[2][0]["n"]),
        (&json!(3_001), &json!(300))
    );
    assert_eq!(judge.query(&spilled, queries), expected);
}
