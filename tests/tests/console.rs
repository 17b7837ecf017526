//! The step line on a terminal that belongs to the trainer.

use std::process::Command;

use pulsetrain_tests::{Items, command, corpus, on_terminal};
use tempfile::TempDir;

#[test]
fn every_step_has_a_line_between_the_lines_of_the_trainer() {
    let folder = tempfile::tempdir().unwrap();
    let (code, printed) = on_terminal(&run(&folder, true), |_, _| {});
    assert_eq!(code, Some(0));
    let items = Items::read(&folder.path().join("sent.jsonl"));
    let steps = items.values("train.global_step");
    let lines: Vec<&str> = printed
        .lines()
        .filter(|line| line.contains(":: demo step "))
        .collect();
    assert_eq!(lines.len(), steps.len(), "{lines:#?}");
    assert!(!lines.is_empty());
    for (line, (_, step)) in lines.iter().zip(&steps) {
        assert!(line.contains(&format!(" step {step:>7}")), "{line}");
        assert!(line.contains("loss"), "{line}");
    }
}

#[test]
fn nothing_of_ours_is_on_a_terminal_without_a_question() {
    let folder = tempfile::tempdir().unwrap();
    let (code, printed) = on_terminal(&run(&folder, false), |_, _| {});
    assert_eq!(code, Some(0));
    let log = std::fs::read_to_string(corpus("maxtext/demo.stderr")).unwrap();
    assert_eq!(printed, log.replace('\n', "\r\n"));
}

#[test]
fn where_there_is_no_terminal_there_is_no_line() {
    let folder = tempfile::tempdir().unwrap();
    let output = run(&folder, true).output().unwrap();
    assert!(!String::from_utf8_lossy(&output.stderr).contains(":: demo step"));
}

/// A run of a trainer that prints the log of MaxText.
fn run(folder: &TempDir, step_line: bool) -> Command {
    let mut command = command(["run", "--format=maxtext", "--to"]);
    command.arg(folder.path().join("sent.jsonl"));
    if step_line {
        command.arg("--step-line");
    }
    command.arg("--").arg("cat").arg(corpus("maxtext/demo.stderr"));
    command
}
