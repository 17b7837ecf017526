//! Faults of logs and of their mappings.

use super::*;

#[test]
fn misspelt_key_of_a_mapping_is_reported_and_a_key_of_later_lines_is_not() {
    let folder = Folder::new();
    let log = folder.file("train.log", STEPS);
    let checked = |values: &str| {
        let log = log.display();
        let yaml = format!(
            "sources: {{a: {{logs: {{paths: ['{log}'], mapping: {{format: keyvalue, step: step, values: [{values}]}}}}}}}}\n"
        );
        doctor(NONE, &["--config", &config(&folder, &yaml)])
    };
    assert_fix(
        checked("{key: Loss, metric: train.loss}"),
        "does not use: Loss",
        "found the keys step, loss",
    );
    let later = "{key: loss, metric: train.loss}, {key: val_loss, metric: eval.loss}";
    let found = findings_of(checked(later)).all;
    let is_unused = |finding: &serde_json::Value| finding["what"].to_string().contains("does not use");
    assert!(!found.iter().any(is_unused), "{found:#?}");
}

#[test]
fn log_format_and_rank_are_described_and_faults_have_a_fix() {
    let folder = Folder::new();
    let path = |name: &str| folder.path(name).display().to_string();
    folder.file("rank_0.log", STEPS);
    folder.file("rank_1.log", STEPS);
    folder.file("words.txt", "What a day.\n");
    let surogate = corpus("surogate/training_dense.json").display().to_string();
    let found = findings_of(doctor(NONE, &[&surogate]));
    let described = |words: &str| {
        let mut lines = found.all.iter().filter_map(|finding| finding["what"].as_str());
        lines.any(|line| line.contains(words))
    };
    assert!(
        described("format surogate (records that begin") && described("rank 0"),
        "{:#?}",
        found.all
    );
    let logs = path("rank_*.log");
    assert_fix(
        doctor(NONE, &[&path("words.txt")]),
        "words.txt unknown log format; found no lines",
        "check that it is a training log",
    );
    assert_fix(
        doctor(NONE, &[&path("absent_*.log")]),
        "no file has this path",
        "correct the path",
    );
    folder.file("empty.log", "");
    assert_fix(
        doctor(NONE, &[&path("empty.log")]),
        "is empty",
        "logged its first step",
    );
    assert_fix(
        doctor(NONE, &["/dev/null"]),
        "not a regular file",
        "name a file or a folder",
    );
    let rank_0 = path("rank_0.log");
    let yaml = format!("sources: {{a: {{logs: {{paths: ['{rank_0}'], format: megatron}}}}}}\n");
    assert_fix(
        doctor(NONE, &["--config", &config(&folder, &yaml)]),
        "rank_0.log has no records of the format megatron",
        "it looks like generic",
    );
    let yaml = format!(
        "sources: {{a: {{logs: {{paths: ['{rank_0}'], mapping: {{format: keyvalue, step: iter, values: [{{key: Loss, metric: train.loss}}]}}}}}}}}\n"
    );
    assert_fix(
        doctor(NONE, &["--config", &config(&folder, &yaml)]),
        "no records of the format keyvalue",
        "the step and the keys of the mapping",
    );
    let yaml =
        "health: {enabled: false}\nsources: {a: {logs: {paths: [/dev/null]}}}\nsinks: {c: {console: {}}}\n";
    assert_only_fix(
        doctor(NONE, &["--config", &config(&folder, yaml)]),
        "/dev/null cannot be read: it is not a regular file",
        "name a file or a directory",
    );
    let yaml = format!(
        "health: {{enabled: false}}\nsources: {{a: {{logs: {{paths: ['{logs}'], rank: {{from: path, pattern: 'rank_(\\d+)'}}}}}}}}\n"
    );
    let file = config(&folder, &yaml);
    let found = findings_of(doctor(NONE, &["--config", &file]));
    let text = format!("{:#?}", found.all);
    assert!(text.contains("rank 1") && !text.contains("like"), "{text}");
    assert!(
        !text.contains("no file can be written"),
        "a relative state folder: {text}"
    );
}

#[test]
fn logs_with_one_rank_or_several_runs_are_reported_once() {
    let folder = Folder::new();
    let path = |name: &str| folder.path(name).display().to_string();
    folder.file("rank_0.log", STEPS);
    folder.file("rank_1.log", STEPS);
    folder.file("rank_2.log", STEPS);
    let found = assert_fix(
        doctor(NONE, &[&path("rank_*.log")]),
        "collide (further logs: 1)",
        r"--rank-pattern 'rank_?(\d+)'",
    );
    assert_eq!(format!("{found:?}").matches("collide").count(), 1, "{found:#?}");
    folder.file("node_0.log", STEPS);
    folder.file("node_1.log", STEPS.replace("2.5", "2.6"));
    let nodes = path("node_*.log");
    assert_fix(doctor(NONE, &[&nodes]), "have 2 run ids", "--run-id");
    let source = |run: &str| {
        let yaml = format!("sources: {{a: {{logs: {{paths: ['{nodes}']{run}}}}}}}\n");
        doctor(NONE, &["--config", &config(&folder, &yaml)])
    };
    assert_fix(source(""), "have 2 run ids", "run_id of the source");
    let found = findings_of(source(", run_id: job7")).all;
    assert!(!format!("{found:?}").contains("run ids"), "{found:#?}");
}

#[test]
fn unreadable_log_is_reported_with_a_fix() {
    let folder = Folder::for_all();
    let log = folder.file("secret.log", STEPS);
    fs::set_permissions(&log, Permissions::from_mode(0o000)).expect("permissions can be set");
    let command = as_unprivileged(&doctor(NONE, &[&log.display().to_string()]), folder.root());
    assert_fix(command, "Permission denied", "permission");
    fs::create_dir(folder.path("closed")).expect("a folder can be made");
    let log = folder.file("closed/train.log", STEPS);
    let set = |mode| fs::set_permissions(folder.path("closed"), Permissions::from_mode(mode));
    set(0o000).expect("permissions can be set");
    let command = as_unprivileged(&doctor(NONE, &[&log.display().to_string()]), folder.root());
    assert_fix(command, "it cannot be read: Permission denied", "permission");
    set(0o755).expect("permissions can be set");
}
