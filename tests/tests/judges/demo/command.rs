//! The command itself: its output, its rejected arguments, and its exit.

use std::{fs, net::TcpListener};

use pulsetrain_tests::{
    Finished, Folder, Items, Process, command, free_port,
    otlp::{integer, time},
    unix_nanos,
};
use serde_json::Value;

use crate::demo::world::{Counts, demo, run};

/// Runs a demo with text output in a folder of its own.
fn for_people(folder: &Folder, arguments: &[&str]) -> Finished {
    Finished::run(command(["demo"]).args(arguments).current_dir(folder.root()))
}

#[test]
fn demo_without_options_prints_the_page_url_and_the_output_folder() {
    let folder = Folder::new();
    let finished = for_people(&folder, &["--rate", "25", "--steps", "50"]).expect_code(0);
    finished.expect_words(&[
        "page      http://127.0.0.1:",
        "/metrics",
        "first curve after ",
        "50 steps: ",
    ]);
    let made = fs::read_dir(folder.root())
        .unwrap()
        .next()
        .expect("a folder")
        .unwrap();
    let name = made.file_name().into_string().unwrap();
    assert!(name.starts_with("pulsetrain-demo-"), "{name}");
    finished.expect_words(&[&name]);
    let files = fs::read_dir(made.path()).unwrap();
    let mut files: Vec<_> = files
        .map(|file| file.unwrap().file_name().into_string().unwrap())
        .collect();
    files.sort();
    assert_eq!(files.len(), 2, "{files:?}");
    assert_eq!(files[0], "telemetry.binpb");
    assert!(files[1].ends_with(".pftrace"), "{files:?}");
}

#[test]
fn default_port_in_use_is_replaced_but_a_requested_port_fails() {
    // The test also works if another program has the port.
    let _usual = TcpListener::bind("127.0.0.1:9464");
    let folder = Folder::new();
    let finished = for_people(&folder, &["--rate", "25", "--steps", "3"]).expect_code(0);
    assert!(!finished.stderr.contains("127.0.0.1:9464"), "{}", finished.stderr);
    let listener = TcpListener::bind(("127.0.0.1", free_port())).unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let finished = for_people(&folder, &["--listen", &address]).expect_code(1);
    finished.expect_words(&["cannot serve the page at", &address, "--listen"]);
}

#[test]
fn invalid_demo_arguments_are_rejected_with_the_expected_value() {
    let folder = Folder::new();
    for (arguments, words) in [
        (
            &["--fault", "stragler"][..],
            &["unknown fault `stragler`", "telemetry-loss", "NAME[@STEP]"][..],
        ),
        (&["--fault", "straggler:rank=9"], &["ranks 0 to 3"]),
        (&["--ranks", "0"], &["0 ranks", "1 to 512"]),
        (&["--steps", "0"], &["at least 1 step"]),
        (&["--rate", "0"], &["expected a number above 0"]),
        (&["--workload", "dpo"], &["sft or rl"]),
        (&["--history", "6"], &["like 500ms"]),
        (&["--to", "out.csv"], &["out.csv"]),
    ] {
        let finished = for_people(&folder, arguments).expect_code(2);
        finished.expect_words(words);
    }
    assert_eq!(fs::read_dir(folder.root()).unwrap().count(), 0, "nothing is left");
}

#[test]
fn demo_refuses_a_non_empty_output_folder() {
    let folder = Folder::new();
    folder.file("notes.txt", "mine");
    let root = folder.root().to_str().unwrap();
    let finished = for_people(&folder, &["--out", root, "--steps", "3"]).expect_code(1);
    finished.expect_words(&["is not empty", "--out"]);
}

#[test]
fn interrupted_demo_leaves_complete_files() {
    let folder = Folder::new();
    let file = folder.path("demo.jsonl");
    let demo = demo(["--to", file.to_str().unwrap()]);
    let mut demo = Process::start("demo", &mut pulsetrain_tests::with_default_signals(&demo));
    demo.wait_until_ready(|| !Items::read_complete_lines(&file).of_kind("span").is_empty());
    demo.interrupt();
    let log = demo.end_well();
    let summary: Value = serde_json::from_str(log.lines().last().expect("a summary")).unwrap();
    let counts = Counts::of_summary(&summary);
    assert_eq!(counts, Counts::of_items(&Items::read(&file)));
}

/// Returns the start and end times of the steps of rank 0.
fn steps(items: &Items) -> Vec<(u64, u64)> {
    let steps = items.spans_of("train.step").into_iter();
    let of_zero = steps.filter(|item| integer(&item["resource"], "train.rank") == Some(0));
    let mut steps: Vec<_> = of_zero
        .map(|item| {
            let span = &item["span"];
            (time(span, "startTimeUnixNano"), time(span, "endTimeUnixNano"))
        })
        .collect();
    steps.sort_unstable();
    steps
}

#[test]
fn history_is_written_with_past_timestamps() {
    let folder = Folder::new();
    let file = folder.path("demo.jsonl");
    let past = ["--history", "10m", "--steps", "260", "--ranks", "2"];
    let mut demo = command(["demo", "--json", "--to"]);
    let finished = Finished::run(demo.arg(&file).args(past)).expect_code(0);
    let summary = finished.summary();
    assert_eq!(summary["steps"], 260);
    let steps = steps(&Items::read(&file));
    assert_eq!(steps.len(), 260);
    let (first, last) = (steps[0].0, steps[259].1);
    let minutes = (last - first) as f64 / 60e9;
    assert!((8.5..10.0).contains(&minutes), "{minutes}");
    assert!(last < unix_nanos(), "the past is over");
}

#[test]
fn job_with_history_continues_live_without_a_gap() {
    let folder = Folder::new();
    let file = folder.path("demo.jsonl");
    let to = [
        "--history",
        "3s",
        "--steps",
        "200",
        "--to",
        file.to_str().unwrap(),
    ];
    run(to).expect_code(0);
    let steps = steps(&Items::read(&file));
    assert_eq!(steps.len(), 200);
    for pair in steps.windows(2) {
        let gap = (pair[1].0 - pair[0].1) as f64 / 1e9;
        // An evaluation and a checkpoint together last five steps of 20 ms.
        assert!(gap < 0.2, "{gap}");
    }
}
