//! Surogate's log while it is written: each record overwrites the end of the array.

use std::fs;

use pulsetrain_tests::{SurogateWriter, corpus, surogate_records, wait_until};

use crate::world::{World, imported};

#[test]
fn the_writer_of_the_tests_writes_what_surogate_wrote() {
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
fn a_log_is_followed_from_before_its_beginning_through_torn_writes() {
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
fn a_run_that_starts_again_empties_its_log_and_is_another_run() {
    let (first, second) = (
        corpus("surogate/training_dense.json"),
        corpus("surogate/training_moe.json"),
    );
    let expected_first = imported([first.as_path()], &[]);
    let world = World::new("training.json");
    let follower = world.follow();
    for log in [&first, &second] {
        let mut writer = SurogateWriter::create(&world.path("training.json"));
        surogate_records(log)
            .iter()
            .for_each(|record| writer.append(record));
        wait_until("the run is delivered", || {
            world.delivered().len() >= expected_first.len()
        });
    }
    world.expect_delivered(follower, &imported([first.as_path(), &second], &[]));
}

#[test]
fn a_run_with_a_name_of_its_own_that_starts_again_is_its_next_attempt() {
    let (first, second) = (
        corpus("surogate/training_dense.json"),
        corpus("surogate/training_moe.json"),
    );
    let expected_first = imported([first.as_path()], &[]);
    let world = World::new("training.json").with("--run-id=mine");
    let follower = world.follow();
    for log in [&first, &second] {
        let mut writer = SurogateWriter::create(&world.path("training.json"));
        surogate_records(log)
            .iter()
            .for_each(|record| writer.append(record));
        wait_until("the run is delivered", || {
            world.delivered().len() >= expected_first.len()
        });
    }
    let steps = surogate_records(&second)
        .iter()
        .filter(|record| record.contains("\"log\": \"step\""))
        .count();
    wait_until("the second attempt is delivered", || {
        attempts(&world).iter().filter(|attempt| **attempt == 1).count() == steps
    });
    follower.stop();
}

/// The attempt of each loss that was delivered.
fn attempts(world: &World) -> Vec<i64> {
    let items = world.delivered();
    let losses = items
        .of_kind("point")
        .into_iter()
        .filter(|item| item["metric"]["name"] == "train.loss");
    losses
        .map(|item| {
            let attributes = item["resource"]["attributes"]
                .as_array()
                .expect("a resource has attributes")
                .clone();
            let attempt = attributes
                .iter()
                .find(|attribute| attribute["key"] == "train.attempt");
            let value = &attempt.expect("a run has an attempt")["value"]["intValue"];
            value
                .as_str()
                .map_or_else(|| value.as_i64(), |text| text.parse().ok())
                .expect("an attempt is a number")
        })
        .collect()
}

#[test]
fn patterns_find_runs_that_begin_later() {
    let original = corpus("surogate/training_dense.json");
    let world = World::new("runs/*/training.json").with("--poll-interval=0.1");
    let follower = world.follow();
    fs::create_dir_all(world.path("runs/one")).expect("a folder can be made");
    fs::copy(&original, world.path("runs/one/training.json")).expect("a log can be copied");
    world.expect_delivered(follower, &imported([original.as_path()], &[]));
}
