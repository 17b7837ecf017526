//! Times without a zone: the correct instants for a finished log with a given zone, and for one that is being written.

use std::{
    fs::{self, OpenOptions},
    io::Write,
    path::Path,
    process::Command,
};

use jiff::{SignedDuration, Timestamp, tz::TimeZone};
use pulsetrain_tests::{Finished, Folder, Import, Items, Process, command, wait_until};

const ZONE: &str = "America/New_York";

/// Returns a line of Megatron-LM that was written at this time, in local time.
fn line(time: Timestamp, step: i64) -> String {
    let time = time.to_zoned(TimeZone::get(ZONE).expect("the zone is known"));
    let time = time.strftime("%Y-%m-%d %H:%M:%S%.6f");
    format!(
        " [{time}] iteration {step:8}/     100 | elapsed time per iteration (ms): 123.4 | lm loss: 2.5E+00 | grad norm: 1.2 |\n"
    )
}

/// Returns lines a second apart, the last one at a given time, and their instants.
fn lines(last: Timestamp, steps: std::ops::RangeInclusive<i64>) -> (String, Vec<u64>) {
    let end = *steps.end();
    let time = |step| last - SignedDuration::from_secs(end - step);
    let text = steps.clone().map(|step| line(time(step), step)).collect();
    let instants = steps.map(|step| time(step).as_microsecond() as u64 * 1000);
    (text, instants.collect())
}

fn instants(items: &Items) -> Vec<u64> {
    let losses = items.values("train.loss");
    losses.into_iter().map(|(time, _)| time).collect()
}

fn append(log: &Path, text: &str) {
    let file = OpenOptions::new().create(true).append(true).open(log);
    let mut file = file.expect("a log can be opened");
    file.write_all(text.as_bytes()).expect("a log can be written");
}

/// Starts to follow `train.log` into `out.jsonl`, with the checkpoints in `state`.
fn follow(folder: &Folder, arguments: &[&str]) -> Process {
    let import = Import::for_people(folder.path("train.log")).arg("--follow");
    let import = import
        .arg("--state")
        .arg(folder.path("state"))
        .to(folder.path("out.jsonl"));
    let import = import
        .env("OTEL_EXPORTER_OTLP_PROTOCOL", "http/json")
        .env("TZ", "UTC");
    Process::start("pulsetrain", import.into_command().args(arguments))
}

/// Returns the instants in `out.jsonl`.
fn delivered(folder: &Folder) -> Vec<u64> {
    let out = folder.path("out.jsonl");
    match out.exists() {
        true => instants(&Items::read_complete_lines(&out).divide_ends().1),
        false => Vec::new(),
    }
}

fn wait_for(folder: &Folder, count: usize) {
    wait_until("the instants are delivered", || delivered(folder).len() == count);
}

fn time(text: &str) -> Timestamp {
    text.parse().expect("it is a time")
}

#[test]
fn finished_log_is_read_in_the_specified_timezone() {
    let folder = Folder::new();
    let out = folder.path("out.jsonl");
    // Across the end of daylight-saving time.
    for last in ["2026-07-01T12:00:00Z", "2026-11-21T12:00:00Z"] {
        let (text, expected) = lines(time(last), 1..=20);
        let log = folder.file("train.log", text);
        let import = Import::for_people(log).arg("--timezone").arg(ZONE).to(&out);
        let finished = import.run().expect_code(0);
        finished.expect_words(&["times without a zone read in America/New_York (as named)"]);
        assert_eq!(instants(&Items::read(&out)), expected);
        fs::remove_file(&out).expect("the output can be removed");
    }
}

#[test]
fn log_across_the_end_of_daylight_saving_time_has_every_instant() {
    let folder = Folder::new();
    // The hour from 05:00 to 06:00 UTC and the next one have the same local times.
    let instants_of_lines =
        (0..20).map(|step| time("2026-11-01T04:05:00Z") + SignedDuration::from_mins(10 * step));
    let text: String = (1..)
        .zip(instants_of_lines.clone())
        .map(|(step, time)| line(time, step))
        .collect();
    let (log, out) = (folder.file("train.log", text), folder.path("out.jsonl"));
    let import = Import::for_people(log).arg("--timezone").arg(ZONE).to(&out);
    let finished = import.run().expect_code(0);
    finished.expect_words(&["12 of them occur twice", "in the order of the log"]);
    let expected: Vec<u64> = instants_of_lines
        .map(|time| time.as_nanosecond() as u64)
        .collect();
    assert_eq!(instants(&Items::read(&out)), expected);
}

#[test]
fn finished_log_without_a_timezone_is_read_as_utc_and_reported() {
    let folder = Folder::new();
    let (text, expected) = lines(time("2026-11-21T12:00:00Z"), 1..=3);
    let (log, out) = (folder.file("train.log", text), folder.path("out.jsonl"));
    let finished = Import::for_people(log).to(&out).run().expect_code(0);
    finished.expect_words(&["times without a zone read in UTC", "--timezone"]);
    let five_hours = 5 * 3_600_000_000_000;
    let utc: Vec<u64> = expected.iter().map(|time| time - five_hours).collect();
    assert_eq!(instants(&Items::read(&out)), utc);
}

#[test]
fn timestamps_with_an_offset_are_not_shifted() {
    let folder = Folder::new();
    let text = "time=2026-11-21T12:00:00Z step=1 train.loss=2.5\ntime=2026-11-21T13:00:01+01:00 step=2 train.loss=2.5\n";
    let (log, out) = (folder.file("train.log", text), folder.path("out.jsonl"));
    let import = Import::new(log)
        .arg("--format=keyvalue")
        .arg("--timezone=America/New_York");
    let finished = import.to(&out).run().expect_code(0);
    assert!(
        finished.summary()["inputs"][0]["timezone"].is_null(),
        "none was needed"
    );
    let noon = time("2026-11-21T12:00:00Z").as_nanosecond() as u64;
    assert_eq!(instants(&Items::read(&out)), [noon, noon + 1_000_000_000]);
}

#[test]
fn growing_log_is_read_in_the_timezone_of_its_writer_even_after_a_kill() {
    let folder = Folder::new();
    let log = folder.path("train.log");
    let follower = follow(&folder, &[]);
    let (text, mut expected) = lines(Timestamp::now(), 1..=20);
    append(&log, &text);
    wait_for(&folder, expected.len());
    assert_eq!(delivered(&folder), expected);
    wait_until("the position and its zone are kept", || {
        let kept = fs::read_to_string(folder.path("state/positions.json"));
        kept.is_ok_and(|kept| kept.contains("\"-0"))
    });
    let printed = follower.kill();
    let offset = TimeZone::get(ZONE)
        .expect("the zone is known")
        .to_offset(Timestamp::now());
    let named = format!("times without a zone in {offset}:00 (from the clock when the log was written)");
    assert!(printed.contains(&named), "{named} is missing:\n{printed}");
    // The zone is kept: it cannot be derived from these lines alone.
    let (text, older) = lines(Timestamp::now() - SignedDuration::from_mins(7), 21..=25);
    append(&log, &text);
    expected.extend(older);
    expected.sort_unstable();
    let follower = follow(&folder, &[]);
    wait_for(&folder, expected.len());
    let mut all = delivered(&folder);
    all.sort_unstable();
    assert_eq!(all, expected);
    follower.stop();
}

#[test]
fn order_of_the_repeated_hour_survives_restarts_and_a_truncation() {
    let folder = Folder::new();
    let log = folder.path("train.log");
    let instant = |step: i64| time("2026-11-01T04:30:00Z") + SignedDuration::from_mins(10 * step);
    for (steps, is_truncated) in [(1..=10, false), (11..=12, true), (13..=14, false)] {
        if is_truncated {
            fs::write(&log, "").expect("the log can be truncated");
        }
        let text: String = steps.clone().map(|step| line(instant(step), step)).collect();
        append(&log, &text);
        let follower = follow(&folder, &["--timezone", ZONE]);
        let expected: Vec<u64> = (1..=*steps.end())
            .map(|step| instant(step).as_nanosecond() as u64)
            .collect();
        wait_for(&folder, expected.len());
        assert_eq!(delivered(&folder), expected);
        // From 05:00 UTC on, local times occur twice.
        let twice = steps.filter(|step| *step >= 3).count();
        let (_, printed) = follower.stop_with_log();
        assert!(
            printed.contains(&format!("{twice} of them occur twice")),
            "{printed}"
        );
    }
}

#[test]
fn output_of_run_is_read_in_the_timezone_of_its_environment() {
    let folder = Folder::new();
    let (text, expected) = lines(Timestamp::now(), 1..=20);
    let (log, out) = (folder.file("lines", text), folder.path("out.jsonl"));
    let mut run: Command = command(["run", "--no-gpu", "--summary"]);
    run.env("TZ", ZONE)
        .arg("--to")
        .arg(&out)
        .arg("--")
        .arg("cat")
        .arg(log);
    let finished = Finished::run(&mut run).expect_code(0);
    finished.expect_words(&["times without a zone read in America/New_York (from the clock"]);
    assert_eq!(instants(&Items::read(&out)), expected);
}

#[test]
fn unknown_timezone_is_rejected_with_an_example() {
    let folder = Folder::new();
    let refused = Import::for_people("train.log")
        .arg("--timezone=Mars/Olympus")
        .run();
    refused
        .expect_code(2)
        .expect_words(&["Mars/Olympus", "America/New_York"]);
    let text = "sources: {a: {logs: {paths: [train.log], timezone: Mars/Olympus}}}\n";
    let config = folder.file("pulsetrain.yaml", text);
    let mut check = command(["agent", "--check"]);
    Finished::run(check.arg("--config").arg(config))
        .expect_code(2)
        .expect_words(&["pulsetrain.yaml:1:", "timezone", "Mars/Olympus"]);
}
