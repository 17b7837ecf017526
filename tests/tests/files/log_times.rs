//! The times of the records of a finished log: from the log itself, or reported as unknown in the summary.

use std::{
    fs::File,
    path::PathBuf,
    time::{Duration, SystemTime},
};

use pulsetrain_tests::{Finished, Folder, Import, Items};

const SECOND: u64 = 1_000_000_000;
/// The time of the last write to the logs, in Unix seconds.
const WRITTEN: u64 = 1_795_262_400;

/// Writes a log with this text and the modification time [`WRITTEN`].
fn log(folder: &Folder, text: &str) -> PathBuf {
    let log = folder.file("own.log", text);
    let time = SystemTime::UNIX_EPOCH + Duration::from_secs(WRITTEN);
    let file = File::options().append(true).open(&log);
    let changed = file.and_then(|file| file.set_modified(time));
    changed.expect("the time of a file can be set");
    log
}

/// Imports the log; returns the times of the losses in seconds relative to [`WRITTEN`].
fn import(text: &str, arguments: &[&str]) -> (Finished, Vec<f64>) {
    let folder = Folder::new();
    let out = folder.path("out.jsonl");
    let import = Import::for_people(log(&folder, text)).to(&out);
    let finished = arguments.iter().fold(import, Import::arg).run().expect_code(0);
    let losses = Items::read(&out).values("train.loss");
    let times = losses
        .into_iter()
        .map(|(time, _)| (time as f64 - (WRITTEN * SECOND) as f64) / SECOND as f64);
    (finished, times.collect())
}

#[test]
fn log_without_timestamps_is_reported_with_the_fix() {
    let text = "step=1 train.loss=2.5\nstep=2 train.loss=2.25\n";
    let (finished, _) = import(text, &["--format=keyvalue"]);
    finished.expect_words(&[
        "own.log: no times in this log",
        "1 ms apart",
        "give --start-time",
        "time:",
    ]);
    let (finished, _) = import(text, &["--format=keyvalue", "--start-time=2026-11-21T00:00:00Z"]);
    finished.expect_words(&["own.log: no times in this log", "--start-time", "time:"]);
    let folder = Folder::new();
    let out = folder.path("out.jsonl");
    let import = Import::new(log(&folder, text)).arg("--format=keyvalue").to(&out);
    let notices = &import.run().expect_code(0).summary()["inputs"][0]["notices"];
    assert!(notices.to_string().contains("no times"), "{notices}");
}

#[test]
fn a_leading_asctime_is_the_time_of_its_line() {
    let text = "2026-11-21 11:58:20 INFO train step=1 train.loss=2.5\n[2026-11-21 11:59:20,500] step=2 train.loss=2.25\n";
    let (finished, times) = import(text, &["--format=keyvalue"]);
    assert_eq!(times, [-100.0, -39.5]);
    assert!(!finished.stderr.contains("no times"), "{}", finished.stderr);
}

#[test]
fn hf_trainer_runtime_spaces_the_records_of_its_log() {
    let text = "{'loss': 2.5, 'epoch': 0.5}\n{'loss': 2.25, 'epoch': 1.0}\n\
         {'train_runtime': 180.0, 'train_samples_per_second': 4.0, 'epoch': 1.0}\n";
    let (finished, times) = import(text, &[]);
    assert_eq!(times, [-120.0, -60.0]);
    finished.expect_words(&["run time", "modification time", "--start-time"]);
    let (finished, times) = import(text, &["--start-time=2026-11-21T12:00:00Z"]);
    assert_eq!(times, [60.0, 120.0]);
    assert!(!finished.stderr.contains("no times"), "{}", finished.stderr);
}

#[test]
fn trainer_state_history_is_spaced_by_its_runtime() {
    let text = "{\n  \"log_history\": [\n    {\"epoch\": 0.5, \"loss\": 2.5, \"step\": 1},\n    {\"epoch\": 1.0, \"loss\": 2.25, \"step\": 2},\n    {\"epoch\": 1.0, \"step\": 2, \"train_runtime\": 180.0}\n  ],\n  \"max_steps\": 2\n}\n";
    let (_, times) = import(text, &["--start-time=2026-11-21T12:00:00Z"]);
    assert_eq!(times, [60.0, 120.0]);
}

#[test]
fn step_durations_space_the_records_of_a_log() {
    let line = |step: u32| format!("step={step} train.loss=2.5 train.step.duration=6s\n");
    let (finished, times) = import(&(line(10) + &line(20)), &["--format=keyvalue"]);
    assert_eq!(times, [-60.0, 0.0]);
    finished.expect_words(&["step durations", "modification time"]);
}
