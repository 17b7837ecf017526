//! Logs in a user-defined format, whose records only the mapping describes, are followed from their first record on.

use std::{
    fs::{self, OpenOptions},
    io::Write,
    path::Path,
};

use pulsetrain_tests::{Process, wait_until};

use crate::tail::world::World;

fn world() -> World {
    let world = World::new("own*.log");
    let mapping = world.path("m.yaml");
    fs::write(
        &mapping,
        "line: 'step (?<step>\\d+) \\| loss (?<train.loss>\\S+)'\n",
    )
    .expect("a temporary file can be written");
    world
        .with("--format=keyvalue")
        .with(format!("--mapping={}", mapping.display()))
}

fn losses(world: &World) -> Vec<f64> {
    let values = world.delivered().values("train.loss");
    values.into_iter().map(|(_, loss)| loss).collect()
}

fn expect_losses(world: &World, losses: &[f64]) {
    wait_until("the losses are delivered", || self::losses(world) == losses);
}

fn expect_success(follower: Process) {
    let status = follower.stop();
    assert!(status.success(), "{status}");
}

fn append(path: &Path, text: &str) {
    let mut log = OpenOptions::new()
        .append(true)
        .open(path)
        .expect("the log is there");
    log.write_all(text.as_bytes()).expect("the log can be written");
}

#[test]
fn log_that_only_a_mapping_can_parse_is_followed_live() {
    let world = world();
    fs::write(world.path("own.log"), "starting\n").unwrap();
    let follower = world.follow();
    for (step, losses) in [(1, &[2.5][..]), (2, &[2.5, 2.25])] {
        let loss = losses[losses.len() - 1];
        append(&world.path("own.log"), &format!("step {step} | loss {loss}\n"));
        expect_losses(&world, losses);
    }
    expect_success(follower);
}

#[test]
fn log_of_a_custom_format_is_followed_after_a_long_preamble() {
    let world = world();
    let preamble = "a line of the framework\n".repeat(20_000);
    fs::write(world.path("own.log"), preamble + "step 1 | loss 2.5\n").unwrap();
    let follower = world.follow();
    expect_losses(&world, &[2.5]);
    expect_success(follower);
}

#[test]
fn unrelated_logs_of_a_custom_format_are_separate_runs() {
    let world = world();
    fs::write(world.path("own_a.log"), "step 1 | loss 2.5\n").unwrap();
    fs::write(world.path("own_b.log"), "step 1 | loss 3.5\n").unwrap();
    let follower = world.follow();
    expect_losses(&world, &[2.5, 3.5]);
    expect_success(follower);
    let items = world.delivered();
    let losses = items.points_of("train.loss").into_iter();
    let resources: Vec<String> = losses.map(|item| item["resource"].to_string()).collect();
    assert_eq!(resources.len(), 2);
    assert_ne!(resources[0], resources[1]);
}

#[test]
fn another_format_of_the_mapping_applies_after_a_restart() {
    let world = World::new("own.log");
    let mapping = world.path("m.yaml");
    let write = |format: &str| {
        let values = "values: [{key: loss, metric: train.loss}]";
        fs::write(&mapping, format!("format: {format}\n{values}\n"))
            .expect("a temporary file can be written");
    };
    write("keyvalue");
    let world = world.with(format!("--mapping={}", mapping.display()));
    let log = world.path("own.log");
    fs::write(&log, "step=1 loss=2.5\n").unwrap();
    let follower = world.follow();
    expect_losses(&world, &[2.5]);
    expect_success(follower);
    write("json");
    append(&log, "{\"step\": 2, \"loss\": 2.25}\n");
    let follower = world.follow();
    expect_losses(&world, &[2.5, 2.25]);
    expect_success(follower);
}
