//! One log per rank: each becomes a separate rank, and logs that claim the same rank are reported.

use std::{collections::BTreeSet, path::PathBuf};

use pulsetrain_tests::{
    Finished, Folder, Import, Items, command,
    otlp::{integer, text_of},
};
use serde_json::Value;

/// Returns the log of a rank with two steps.
fn log(rank: usize) -> String {
    let line = |step| {
        format!(
            "2026-01-02 10:00:0{step}.{rank} step={step} train.loss=2.{rank}{step} train.step.duration=0.5\n"
        )
    };
    line(1) + &line(2)
}

/// Writes the logs of four ranks under these names.
fn logs(folder: &Folder, name: impl Fn(usize) -> String) -> Vec<PathBuf> {
    let log = |rank| {
        let path = folder.path(&name(rank));
        std::fs::create_dir_all(path.parent().expect("a log is in a folder")).expect("a folder can be made");
        folder.file(&name(rank), log(rank))
    };
    (0..4).map(log).collect()
}

/// Imports logs as one run with a mapping that parses the time at the start of a line.
fn import(folder: &Folder, logs: &[PathBuf], arguments: &[&str]) -> (Finished, Items) {
    let mapping = folder.file("m.yaml", "line: '^(?<time>\\S+ \\S+) (?<record>.*)'\n");
    let out = folder.path("out.jsonl");
    let import = Import::for_people(&logs[0])
        .arg("--format=keyvalue")
        .arg("--run-id=job7")
        .arg("--mapping")
        .arg(mapping);
    let import = logs[1..].iter().fold(import, Import::arg);
    let import = arguments.iter().fold(import, Import::arg);
    let finished = import.to(&out).run().expect_code(0);
    (finished, Items::read(&out))
}

/// Returns the value of a resource attribute of an item.
fn resource(item: &Value, key: &str) -> Option<i64> {
    integer(&item["resource"], key)
}

fn ranks(items: &Items) -> BTreeSet<i64> {
    let spans = items.of_kind("span");
    spans
        .iter()
        .filter_map(|span| resource(span, "train.rank"))
        .collect()
}

fn distinct(items: &Items, id: &str) -> usize {
    let spans = items.of_kind("span");
    let ids = spans.iter().map(|item| item["span"][id].to_string());
    ids.collect::<BTreeSet<_>>().len()
}

#[track_caller]
fn expect_four_ranks(finished: &Finished, items: &Items) {
    assert_eq!(ranks(items), [0, 1, 2, 3].into());
    assert_eq!(items.of_kind("span").len(), 8);
    assert_eq!(distinct(items, "spanId"), 8, "no two spans have one id");
    assert_eq!(distinct(items, "traceId"), 2, "one trace per step");
    assert!(!finished.stderr.contains("collide"), "{}", finished.stderr);
}

#[test]
fn path_pattern_option_sets_the_rank_of_each_log() {
    let folder = Folder::new();
    let logs = logs(&folder, |rank| format!("rank_{rank}.log"));
    let (finished, items) = import(&folder, &logs, &[r"--rank-pattern=rank_(\d+)"]);
    expect_four_ranks(&finished, &items);
}

#[test]
fn torchrun_log_layout_sets_the_rank_and_attempt_of_each_log() {
    let folder = Folder::new();
    let logs = logs(&folder, |rank| format!("attempt_1/{rank}/stdout.log"));
    let (finished, items) = import(&folder, &logs, &[]);
    expect_four_ranks(&finished, &items);
    for span in items.of_kind("span") {
        assert_eq!(resource(span, "train.attempt"), Some(1));
        assert_eq!(resource(span, "train.local_rank"), resource(span, "train.rank"));
    }
}

#[test]
fn logs_without_a_detectable_rank_are_reported_with_the_fix() {
    let folder = Folder::new();
    let logs = logs(&folder, |rank| format!("rank_{rank}.log"));
    let (finished, items) = import(&folder, &logs, &[]);
    assert_eq!(ranks(&items), [0].into(), "a name is not guessed");
    let names: Vec<&str> = logs.iter().filter_map(|log| log.to_str()).collect();
    finished.expect_words(&names);
    finished.expect_words(&["job7", "rank 0", "attempt 0", "--rank N", "from: path"]);
    let warnings = finished.stderr.lines().filter(|line| line.contains("collide"));
    assert_eq!(warnings.count(), 3, "{}", finished.stderr);
}

#[test]
fn rank_pattern_that_does_not_match_is_reported() {
    let folder = Folder::new();
    let logs = logs(&folder, |rank| format!("worker{rank}.log"));
    let (finished, _) = import(&folder, &logs[..1], &[r"--rank-pattern=rank_(\d+)"]);
    finished.expect_words(&["worker0.log", r"rank_(\d+)", "finds no rank"]);
}

#[test]
fn rank_option_overrides_the_environment_which_overrides_zero() {
    let folder = Folder::new();
    let log = folder.file("train.log", log(0));
    let rank_of = |arguments: &[&str], variables: &[(&str, &str)]| {
        let out = folder.path("out.jsonl");
        let import = Import::new(&log).arg("--format=keyvalue").to(&out);
        let import = arguments.iter().fold(import, Import::arg);
        let import = (variables.iter()).fold(import, |import, (name, value)| import.env(name, value));
        import.run().expect_code(0);
        let items = Items::read(&out);
        let points = items.of_kind("point");
        let numbers = ["train.rank", "train.local_rank", "train.attempt"];
        numbers.map(|key| resource(points[0], key))
    };
    let torchrun = [
        ("RANK", "3"),
        ("LOCAL_RANK", "1"),
        ("TORCHELASTIC_RESTART_COUNT", "2"),
    ];
    assert_eq!(rank_of(&[], &[]), [Some(0), None, Some(0)]);
    assert_eq!(rank_of(&[], &torchrun), [3, 1, 2].map(Some));
    assert_eq!(rank_of(&[], &[("SLURM_PROCID", "5")]), [Some(5), None, Some(0)]);
    assert_eq!(rank_of(&["--rank=7"], &torchrun), [Some(7), None, Some(2)]);
}

/// Runs a trainer that prints the log of a rank, with the environment variables of a launcher.
fn run_rank(folder: &Folder, rank: usize, variables: &[(&str, &str)]) -> (Finished, Items) {
    let mapping = folder.file("m.yaml", "line: '^(?<time>\\S+ \\S+) (?<record>.*)'\n");
    let out = folder.path(&format!("out_{rank}.jsonl"));
    let log = folder.file(&format!("log_{rank}"), log(rank));
    let mut command = command(["run", "--no-gpu", "--format=keyvalue", "--mapping"]);
    command
        .arg(mapping)
        .arg("--to")
        .arg(&out)
        .args(["--", "cat"])
        .arg(log);
    command.env("RANK", rank.to_string()).env("WORLD_SIZE", "4");
    command.envs(variables.iter().copied());
    let finished = Finished::run(&mut command);
    (finished.expect_code(0), Items::read(&out))
}

#[test]
fn four_ranks_share_one_trace_per_step_and_record_world_size_and_host() {
    let folder = Folder::new();
    let ranks = (0..4).map(|rank| run_rank(&folder, rank, &[("TORCHELASTIC_RUN_ID", "job7")]));
    let (mut traces, mut numbers) = (BTreeSet::new(), BTreeSet::new());
    for (finished, items) in ranks {
        assert!(!finished.stderr.contains("--rdzv-id"), "{}", finished.stderr);
        let spans = items.of_kind("span");
        assert_eq!(spans.len(), 2);
        for span in spans {
            traces.insert(span["span"]["traceId"].to_string());
            numbers.insert(resource(span, "train.rank"));
            assert_eq!(resource(span, "train.world_size"), Some(4));
            let host = text_of(&span["resource"], "host.name");
            assert!(host.is_some_and(|host| !host.is_empty()), "{span}");
        }
    }
    assert_eq!((traces.len(), numbers.len()), (2, 4));
}

#[test]
fn first_rank_warns_when_ranks_share_no_run_id() {
    let folder = Folder::new();
    let none = [("TORCHELASTIC_RUN_ID", "none")];
    let (first, _) = run_rank(&folder, 0, &none);
    first.expect_words(&["all 4 ranks", "PULSETRAIN_RUN_ID", "--rdzv-id"]);
    assert_eq!(
        first.stderr.matches("--rdzv-id").count(),
        2,
        "once: {}",
        first.stderr
    );
    let (second, _) = run_rank(&folder, 1, &none);
    assert!(!second.stderr.contains("--rdzv-id"), "{}", second.stderr);
}
