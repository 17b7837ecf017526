//! Conversions into several traces.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
};

use pulsetrain_tests::{
    Folder, Items, TraceProcessor, convert,
    otlp::{messages, spans},
    some_or_return,
};
use serde_json::{Value, json};

use crate::large::input::{SPANS_A_TRACE, TRACES, one_tree, steps};

/// Returns the files of a conversion, in order.
fn written(summary: &Value) -> Vec<&str> {
    let files = summary["files"].as_array().expect("a summary names its files");
    files.iter().filter_map(Value::as_str).collect()
}

#[test]
fn tree_larger_than_a_part_continues_in_the_next_part_with_exact_times() {
    let folder = Folder::new();
    let input = folder.file("one.jsonl", one_tree(100, 300));
    for (memory, name) in [("128MiB", "held.pftrace"), ("64KiB", "spilled.pftrace")] {
        let arguments = ["--split", "32KiB", "--attributes", "full", "--memory", memory];
        let output = folder.path(name);
        let summary = convert(&[&input], &output, &arguments).expect_code(0).summary();
        let files = written(&summary);
        assert!(files.len() > 4, "{summary}");
        assert_eq!(summary["mapped"]["spans"], 1_001);
        assert_eq!(summary["over_size"], json!([]));
        for file in &files {
            let size = fs::metadata(file).unwrap().len();
            assert!(size < 36 << 10, "{file} has {size} bytes");
        }
        let judge = some_or_return!(TraceProcessor::require_or_skip());
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
        // All parts together equal the input.
        let parts: Vec<&Path> = files.iter().map(Path::new).collect();
        let (back, complete) = (folder.path("back.jsonl"), folder.path("complete.jsonl"));
        convert(&parts, &back, &[]).expect_code(0);
        convert(&[&input], &complete, &[]).expect_code(0);
        Items::read(&back).assert_same(&Items::read(&complete));
    }
}

#[test]
fn every_part_of_a_lean_tree_has_its_trace_id_also_when_converted_back() {
    let folder = Folder::new();
    let input = folder.file("one.jsonl", one_tree(100, 300));
    for memory in ["128MiB", "64KiB"] {
        let arguments = ["--split", "8KiB", "--memory", memory];
        let summary = convert(&[&input], &folder.path("lean.pftrace"), &arguments).expect_code(0);
        let summary = summary.summary();
        let files = written(&summary);
        assert!(files.len() > 2, "{summary}");
        for file in files {
            let back = folder.path("back.jsonl");
            convert(&[file], &back, &[]).expect_code(0);
            let messages = messages(&back);
            let ids: BTreeSet<&str> = messages
                .iter()
                .flat_map(spans)
                .filter_map(|span| span["traceId"].as_str())
                .collect();
            assert_eq!(ids, BTreeSet::from([format!("{:032x}", 1).as_str()]), "{file}");
        }
    }
}

#[test]
fn part_that_one_tree_makes_too_large_is_reported() {
    let folder = Folder::new();
    let input = folder.file("one.jsonl", one_tree(3, 20_000));
    let output = folder.path("large.pftrace");
    let finished = convert(&[&input], &output, &["--split", "10KiB"]).expect_code(0);
    let over = finished.summary()["over_size"].to_string();
    assert!(over.contains("large.001.pftrace"), "{over}");
}

/// Returns the files of a folder with their contents.
fn files_in(folder: &Folder) -> BTreeMap<String, Vec<u8>> {
    let entries = fs::read_dir(folder.root()).expect("the folder can be read");
    entries
        .map(|entry| {
            let entry = entry.expect("the folder can be read");
            let content = fs::read(entry.path()).unwrap_or_default();
            (entry.file_name().to_string_lossy().into_owned(), content)
        })
        .collect()
}

#[test]
fn split_trace_replaces_all_parts_of_an_earlier_run_or_none() {
    let folder = Folder::new();
    let inputs = Folder::new();
    let (large, small) = (
        inputs.file("large.jsonl", one_tree(100, 300)),
        inputs.file("small.jsonl", one_tree(50, 300)),
    );
    let others = [
        "run.0009.pftrace",
        "run.x.pftrace",
        "run.009.pftrace.gz",
        "run.pftrace",
    ];
    for name in others {
        folder.file(name, "another file");
    }
    let output = folder.path("run.pftrace");
    let split = ["--split", "32KiB", "--attributes", "full"];
    let summary = convert(&[&large], &output, &split).expect_code(0).summary();
    let before = files_in(&folder);
    let count = written(&summary).len();
    assert_eq!(before.len(), others.len() + count);

    // A later part that cannot be written leaves every part as it was.
    let last = folder.path(&format!("run.{:03}.pftrace", count - 1));
    fs::remove_file(&last).expect("it is there");
    fs::create_dir(&last).expect("a folder can be made");
    folder.file("run.000.pftrace", "the first part of before");
    let kept = files_in(&folder);
    convert(&[&large], &output, &split).expect_code(1);
    assert_eq!(files_in(&folder), kept);
    fs::remove_dir(&last).expect("it is there");

    let summary = convert(&[&small], &output, &split).expect_code(0).summary();
    let after = files_in(&folder);
    let fewer = written(&summary).len();
    assert!(fewer < count, "{summary}");
    assert_eq!(after.len(), others.len() + fewer);
    for name in others {
        assert_eq!(after[name], b"another file", "{name}");
    }
}

#[test]
fn each_part_of_a_split_trace_opens_on_its_own() {
    let folder = Folder::new();
    let input = folder.file("steps.jsonl", steps());
    let output = folder.path("steps.pftrace.gz");
    let summary = convert(&[&input], &output, &["--split", "64KiB"])
        .expect_code(0)
        .summary();
    let files = written(&summary);
    assert!(files.len() > 3, "{files:?}");
    assert_eq!(summary["mapped"]["files"], files.len());
    assert!(files[0].ends_with("steps.000.pftrace.gz") && !output.exists());
    let judge = some_or_return!(TraceProcessor::require_or_skip());
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
