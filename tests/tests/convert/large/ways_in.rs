//! Every kind of input, also truncated and mixed.

use std::{
    fs,
    path::{Path, PathBuf},
};

use pulsetrain_tests::{Finished, Folder, command, convert, otlp::gzip};

use crate::large::input::{TRACES, steps};

#[test]
fn binary_gzip_and_split_inputs_give_the_same_trace() {
    let folder = Folder::new();
    let text = steps();
    let input = folder.file("steps.jsonl", &text);
    let plain = folder.path("plain.pftrace");
    convert(&[&input], &plain, &[]).expect_code(0);
    let expected = fs::read(&plain).unwrap();
    let binary = folder.path("steps.binpb");
    convert(&[&input], &binary, &[]).expect_code(0);
    let gzip = folder.file("steps.jsonl.gz", gzip(text.as_bytes()));
    let (first, rest) = text.split_once('\n').unwrap();
    let parts = [folder.file("first.jsonl", first), folder.file("rest.jsonl", rest)];
    let output = folder.path("other.pftrace");
    for inputs in [vec![&binary], vec![&gzip], parts.iter().collect()] {
        let inputs: Vec<&Path> = inputs.into_iter().map(PathBuf::as_path).collect();
        let summary = convert(&inputs, &output, &[]).expect_code(0).summary();
        assert_eq!(summary["inputs"].as_array().unwrap().len(), inputs.len());
        assert_eq!(fs::read(&output).unwrap(), expected, "{inputs:?}");
    }
    let mut convert = command(["convert", "-", "-o"]);
    let printed = Finished::with_input(convert.arg(&output), text.as_bytes()).expect_code(0);
    assert_eq!(fs::read(&output).unwrap(), expected);
    printed.expect_words(&["27 messages", "spans 10000", "flows 399"]);
}

#[test]
fn torn_or_mixed_input_is_read_partially_and_reported_by_line() {
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
    let complete = folder.file("complete.jsonl", lines[..3].join("\n"));
    convert(&[&complete], &binary, &[]).expect_code(0);
    let bytes = fs::read(&binary).unwrap();
    let torn = folder.file("torn.binpb", &bytes[..bytes.len() - 7]);
    let summary = convert(&[&torn], &output, &[]).expect_code(1).summary();
    assert_eq!(summary["mapped"]["spans"], 2 * TRACES);
    let problems = summary["inputs"][0]["problems"].to_string();
    assert!(
        problems.contains("byte ") && problems.contains("ends in the middle"),
        "{problems}"
    );
    // A valid input is converted although another one is invalid.
    let summary = convert(&[&torn, &complete], &output, &[])
        .expect_code(1)
        .summary();
    assert_eq!(summary["mapped"]["duplicates"], 2 * TRACES);
}
