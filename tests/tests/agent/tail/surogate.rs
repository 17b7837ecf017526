//! Surogate's log while it is written: each record overwrites the end of the array.

use std::{collections::BTreeSet, fs, path::Path};

use pulsetrain_tests::{
    Items, SurogateWriter, corpus,
    otlp::{self, integer},
    surogate_records, wait_until,
};
use serde_json::Value;

use crate::tail::world::{World, imported};

#[test]
fn surogate_writer_reproduces_the_original_log() {
    let original = corpus("surogate/training_dense.json");
    let world = World::new("training.json");
    let mut writer = SurogateWriter::create(&world.path("training.json"));
    for record in surogate_records(&original) {
        writer.append(&record);
    }
    let (written, original) = (fs::read(world.path("training.json")), fs::read(original));
    assert_eq!(
        written.expect("it was written"),
        original.expect("the corpus can be read")
    );
}

#[test]
fn log_is_followed_from_before_its_creation_through_torn_writes() {
    let original = corpus("surogate/training_dense.json");
    let world = World::new("training.json");
    let follower = world.follow();
    let mut writer = SurogateWriter::create(&world.path("training.json"));
    for (number, record) in surogate_records(&original).iter().enumerate() {
        let cuts = [1, 3, 17, record.len() / 2, record.len() + 4, record.len() + 6];
        let is_torn = number % 2 == 1;
        writer.append_torn(record, if is_torn { &cuts } else { &[] }, || {});
        if number == 20 {
            wait_until("the first steps are delivered", || {
                !world.delivered().values("train.loss").is_empty()
            });
        }
    }
    world.expect_delivered(follower, &imported([original.as_path()], &[]));
}

#[test]
fn restarted_run_that_truncates_its_log_is_another_run() {
    let (first, second) = (
        corpus("surogate/training_dense.json"),
        corpus("surogate/training_moe.json"),
    );
    let expected_first = imported([first.as_path()], &[]);
    let world = World::new("training.json");
    let follower = world.follow();
    write_runs(&world, [&first, &second], expected_first.len());
    world.expect_delivered(follower, &imported([first.as_path(), &second], &[]));
    // Every series of the first run has ended, once, and none of the second.
    let series = |items: &Items| {
        let named = |item: &&Value| {
            let parts = ["name", "unit"].map(|key| item["metric"][key].to_string());
            format!("{parts:?} {} {}", item["resource"], item["point"]["attributes"])
        };
        let mut all: Vec<String> = items.of_kind("point").iter().map(named).collect();
        all.sort();
        all
    };
    let mut of_first = series(&expected_first);
    of_first.dedup();
    assert!(of_first.len() > 40, "{}", of_first.len());
    assert_eq!(series(&world.ends()), of_first);
    // One millisecond after the last point of the run.
    let last = expected_first
        .of_kind("point")
        .iter()
        .map(|item| time(item))
        .max();
    let ends: BTreeSet<u64> = world
        .ends()
        .of_kind("point")
        .iter()
        .map(|item| time(item))
        .collect();
    assert_eq!(ends, last.map(|last| last + 1_000_000).into_iter().collect());
}

/// A log that is still empty has no checkpoint: a restart finds that of the previous log.
#[test]
fn series_of_an_ended_run_are_not_ended_again_after_a_restart() {
    let world = World::new("training.json");
    let (log, old) = (world.path("training.json"), world.path("old.json"));
    let mut writer = SurogateWriter::create(&log);
    let [first, second] =
        ["dense", "moe"].map(|model| surogate_records(&corpus(&format!("surogate/training_{model}.json"))));
    let follower = world.follow();
    first.iter().for_each(|record| writer.append(record));
    let expected = imported([log.as_path()], &[]);
    wait_until("the first run is delivered", || {
        world.delivered().len() >= expected.len()
    });
    fs::rename(&log, &old).unwrap();
    let mut writer = SurogateWriter::create(&log);
    wait_until("the first run has ended", || !world.ends().is_empty());
    assert!(follower.stop().success());
    let ends = world.ends();
    let follower = world.follow();
    second.iter().for_each(|record| writer.append(record));
    world.expect_delivered(follower, &imported([old.as_path(), &log], &[]));
    world.ends().assert_same(&ends);
}

/// Writes runs to the log, each after this number of delivered items of the first.
fn write_runs(world: &World, logs: [&Path; 2], items: usize) {
    for log in logs {
        let mut writer = SurogateWriter::create(&world.path("training.json"));
        surogate_records(log)
            .iter()
            .for_each(|record| writer.append(record));
        wait_until("the run is delivered", || world.delivered().len() >= items);
    }
}

fn time(item: &Value) -> u64 {
    otlp::time(&item["point"], "timeUnixNano")
}

#[test]
fn restarted_run_with_an_explicit_id_is_its_next_attempt() {
    let (first, second) = (
        corpus("surogate/training_dense.json"),
        corpus("surogate/training_moe.json"),
    );
    let expected_first = imported([first.as_path()], &[]);
    let world = World::new("training.json").with("--run-id=mine");
    let follower = world.follow();
    write_runs(&world, [&first, &second], expected_first.len());
    let steps = surogate_records(&second)
        .iter()
        .filter(|record| record.contains("\"log\": \"step\""))
        .count();
    wait_until("the second attempt is delivered", || {
        attempts(&world).iter().filter(|attempt| **attempt == 1).count() == steps
    });
    follower.stop();
}

/// Returns the attempt of each delivered loss.
fn attempts(world: &World) -> Vec<i64> {
    let items = world.delivered();
    let losses = items.points_of("train.loss").into_iter();
    losses
        .map(|item| integer(&item["resource"], "train.attempt").expect("a run has an attempt"))
        .collect()
}

#[test]
fn glob_patterns_find_runs_that_start_later() {
    let original = corpus("surogate/training_dense.json");
    let world = World::new("runs/*/training.json").with("--poll-interval=0.1");
    let follower = world.follow();
    fs::create_dir_all(world.path("runs/one")).expect("a folder can be made");
    fs::copy(&original, world.path("runs/one/training.json")).expect("a log can be copied");
    world.expect_delivered(follower, &imported([original.as_path()], &[]));
}
