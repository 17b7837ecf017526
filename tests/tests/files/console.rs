//! The step line in a terminal that the trainer also writes to.

use std::{fs, process::Command};

use pulsetrain_tests::{Folder, Items, command, corpus, on_terminal};

#[test]
fn every_step_prints_a_line_among_the_trainer_output() {
    let folder = Folder::new();
    let (code, printed) = on_terminal(&run(&folder, true), |_, _| {});
    assert_eq!(code, Some(0));
    let items = Items::read(&folder.path("sent.jsonl"));
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

/// Surogate's console and its training.json are from the same run. Our line has the values of a step in the console.
#[test]
fn console_line_of_a_surogate_log_has_the_values_of_its_own_console() {
    let (lines, console) = surogate_lines("");
    assert_eq!(lines.len(), console.len());
    for (ours, theirs) in lines.iter().zip(&console) {
        let parts: Vec<&str> = theirs.split(" | ").collect();
        let [step_and_loss, norm, tps, ms, sol, ..] = parts[..] else {
            panic!("{theirs} is no line of a step");
        };
        let (step, loss) = step_and_loss.split_once('[').unwrap();
        let step = step.trim_start_matches(':');
        // The percentage in their line is that of an epoch.
        let loss = loss.split_once("] ").unwrap().1;
        for stderr_text in [step.trim_end(), loss, norm, tps, ms] {
            assert!(
                ours.contains(stderr_text),
                "{stderr_text:?} is missing in {ours}, unlike in {theirs}"
            );
        }
        let [ours, theirs] = [ours.as_str(), sol].map(|line| number_after(line, "sol "));
        // They round the expected time per token down to nanoseconds.
        assert!((ours - theirs).abs() < 0.5, "{ours} and {theirs}");
    }
    assert!(
        lines[3].contains("[epoch 0.15]") && !lines[3].contains("eta"),
        "{}",
        lines[3]
    );
}

#[test]
fn run_with_a_planned_length_shows_progress_and_eta() {
    let by_steps = surogate_lines(&option("max_steps", "60")).0;
    // 2,000,000 tokens, 16,384 per step: 122 steps per epoch.
    let by_epochs = surogate_lines(&(option("num_epochs", "3") + &option("max_steps", "-1"))).0;
    for (lines, all) in [(by_steps, 60.0), (by_epochs, 366.0)] {
        for (number, line) in lines.iter().enumerate() {
            let progress = format!("[{:5.1}%]", (number + 1) as f64 / all * 100.0);
            assert!(line.contains(&progress), "{progress} is missing in {line}");
        }
        assert!(!lines[0].contains("eta"), "there is no pace yet: {}", lines[0]);
        assert!(
            lines[1..].iter().all(|line| line.contains(" | eta 00h00m")),
            "{lines:#?}"
        );
    }
}

#[test]
fn terminal_shows_no_step_lines_unless_requested() {
    let folder = Folder::new();
    let (code, printed) = on_terminal(&run(&folder, false), |_, _| {});
    assert_eq!(code, Some(0));
    let log = fs::read_to_string(corpus("maxtext/demo.stderr")).unwrap();
    assert_eq!(printed, log.replace('\n', "\r\n"));
}

#[test]
fn step_lines_are_not_printed_outside_a_terminal() {
    let folder = Folder::new();
    let output = run(&folder, true).output().unwrap();
    assert!(!String::from_utf8_lossy(&output.stderr).contains(":: demo step"));
}

/// Returns a run of a trainer that prints a log of MaxText.
fn run(folder: &Folder, step_line: bool) -> Command {
    let mut command = command(["run", "--format=maxtext", "--to"]);
    command.arg(folder.path("sent.jsonl"));
    if step_line {
        command.arg("--step-line");
    }
    command.arg("--").arg("cat").arg(corpus("maxtext/demo.stderr"));
    command
}

/// Returns our step lines of a Surogate log, with additional option records, and those of Surogate's console.
fn surogate_lines(options: &str) -> (Vec<String>, Vec<String>) {
    let folder = Folder::new();
    let [followed, sent] = ["training.json", "sent.jsonl"].map(|name| folder.path(name));
    let log = fs::read_to_string(corpus("surogate/training_dense.json")).expect("the corpus can be read");
    let first = "  {\"log\": \"option\"";
    let log = log.replacen(first, &format!("{options}{first}"), 1);
    let written = folder.file("written.json", log);
    let mut command = command(["run", "--step-line", "--no-gpu"]);
    command.arg("--to").arg(sent).arg("--follow").arg(&followed);
    command.args(["--", "cp"]).args([written, followed]);
    let (code, printed) = on_terminal(&command, |_, _| {});
    assert_eq!(code, Some(0), "{printed}");
    let console = fs::read_to_string(corpus("surogate/console_dense.log")).expect("the corpus can be read");
    (
        steps_of(&printed, ":: demo step "),
        steps_of(&console, ":: step "),
    )
}

fn option(name: &str, value: &str) -> String {
    format!(
        "  {{\"log\": \"option\", \"time\": \"2026-11-21 00:18:40.979070000\", \"step\": 0, \"name\": \"{name}\", \"value\": {value}}},\n"
    )
}

fn steps_of(text: &str, start: &str) -> Vec<String> {
    let lines = text.lines().filter(|line| line.trim_start().starts_with(start));
    lines.map(|line| line.replace("\u{1b}[K", "")).collect()
}

fn number_after(text: &str, label: &str) -> f64 {
    let rest = text
        .split_once(label)
        .unwrap_or_else(|| panic!("no {label} in {text}"))
        .1;
    let number = rest
        .split_whitespace()
        .next()
        .and_then(|number| number.parse().ok());
    number.unwrap_or_else(|| panic!("no number after {label} in {text}"))
}
