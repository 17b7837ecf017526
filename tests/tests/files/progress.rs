//! The progress bar: shown only to a user who waits at a terminal for a large file.

use std::{
    fs,
    path::PathBuf,
    process::{Command, Output},
};

use pulsetrain_tests::{Folder, Import, command, corpus, on_terminal};

/// The unit of the speed, which only the progress bar shows.
const SPEED: &str = "B/s";

#[test]
fn a_long_file_at_a_terminal_has_a_progress_bar() {
    let (folder, log) = long_log();
    let import = Import::for_people(&log).to(folder.path("out.binpb"));
    let output = at_a_terminal(import);
    let shown = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{shown}");
    assert!(shown.contains(SPEED), "{shown}");
    assert!(
        shown.trim_end().ends_with("dropped 0"),
        "the summary is not last: {shown}"
    );
}

#[test]
fn no_progress_bar_is_shown_outside_a_terminal() {
    let (folder, log) = long_log();
    let import = Import::for_people(&log).to(folder.path("out.binpb"));
    let finished = import.run().expect_code(0);
    assert!(!finished.stderr.contains(SPEED), "{}", finished.stderr);
}

#[test]
fn long_conversion_at_a_terminal_shows_a_progress_bar_and_a_summary() {
    let folder = Folder::new();
    let lines = fs::read_to_string(corpus("otlp/web_service.jsonl")).unwrap();
    let input = folder.file("in.jsonl", lines + &"\n".repeat(17 << 20));
    let trace = folder.path("out.pftrace");
    let convert = |more: &[&str]| {
        let mut command = command(["convert"]);
        command.arg(&input).arg("-o").arg(&trace).args(more);
        on_terminal(&command, |_, _| {})
    };
    let (code, shown) = convert(&[]);
    assert_eq!(code, Some(0), "{shown}");
    assert!(shown.contains(SPEED) && shown.contains("spans 8"), "{shown}");
    // With `--json`, the output is one line of JSON, also in a terminal.
    let (code, shown) = convert(&["--json"]);
    assert!(code == Some(0) && !shown.contains(SPEED), "{shown}");
    let summary: serde_json::Value = serde_json::from_str(&shown).unwrap();
    assert_eq!(summary["mapped"]["spans"], 8);
}

/// Writes a log of 17 MiB, mostly the white space that is allowed between records.
fn long_log() -> (Folder, PathBuf) {
    const STEP: &str = r#"{"log": "step", "time": "2026-11-21 00:18:40.989663449", "step": 7, "epoch": 0.5, "step_tokens": 16384, "duration_ms": 123, "norm": 1.5, "loss": 2.5, "lr": 2e-05}"#;
    let folder = Folder::new();
    let pause = " ".repeat(17 << 10) + "\n";
    let records: Vec<String> = (0..1024).map(|_| format!("{pause}  {STEP}")).collect();
    let log = folder.file("training.json", format!("[{}\n]\n", records.join(",")));
    (folder, log)
}

/// Runs the import with a terminal as its standard error, created by `script`.
fn at_a_terminal(import: Import) -> Output {
    let command = import.into_command();
    let words = [command.get_program()].into_iter().chain(command.get_args());
    let line: Vec<_> = words
        .map(|word| format!("'{}'", word.to_string_lossy()))
        .collect();
    let mut script = Command::new("script");
    script.args(["--quiet", "--return", "--command", &line.join(" "), "/dev/null"]);
    script.output().expect("script (util-linux) can be started")
}
