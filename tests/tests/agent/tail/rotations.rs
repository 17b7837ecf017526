//! Rotations without a follower: every new file is read, in order, and nothing is read twice.

use std::{fs, path::Path};

use pulsetrain_tests::{SurogateWriter, corpus, surogate_records, wait_until};

use crate::tail::world::{World, imported};

/// Returns a log of lines in five parts of complete lines; the first part has the name of the run.
fn parts() -> [String; 5] {
    let text = fs::read_to_string(corpus("maxtext/demo.stderr")).expect("the corpus can be read");
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    let named = lines.iter().position(|line| line.contains("completed step: 0,"));
    let first = named.expect("there are steps") + 1;
    let quarter = (lines.len() - first) / 4;
    assert!(quarter > 0, "there are steps for every part");
    let border = |part: usize| {
        if part == 4 {
            lines.len()
        } else {
            first + part * quarter
        }
    };
    [0, 1, 2, 3, 4].map(|part| match part {
        0 => lines[..first].concat(),
        part => lines[border(part - 1)..border(part)].concat(),
    })
}

/// Follows the first part to its end, and kills the follower.
fn begin(world: &World, first: &str) {
    let log = world.path("train.log");
    fs::write(&log, first).expect("a log can be written");
    let expected = imported([log.as_path()], &[]).len();
    assert!(expected > 0, "the first part has items");
    let follower = world.follow();
    wait_until("the first part is delivered", || {
        world.delivered().len() >= expected
    });
    let position = format!("\"offset\":{}", first.len());
    wait_until("its position is kept", || {
        fs::read_to_string(world.positions()).is_ok_and(|kept| kept.contains(&position))
    });
    drop(follower);
}

/// Renames the log and all earlier renamed files, as logrotate does.
fn rotate(world: &World) {
    for age in (1..9).rev() {
        let older = world.path(&format!("train.log.{age}"));
        if older.exists() {
            fs::rename(&older, world.path(&format!("train.log.{}", age + 1))).expect("a log can be renamed");
        }
    }
    fs::rename(world.path("train.log"), world.path("train.log.1")).expect("a log can be renamed");
}

fn append(path: &Path, text: &str) {
    let before = fs::read_to_string(path).unwrap_or_default();
    // The same file, not a new one in its place.
    fs::write(path, before + text).expect("a log can be written");
}

fn expect_complete(world: &World, parts: &[String]) {
    let complete = world.path("complete");
    fs::write(&complete, parts.concat()).expect("a file can be written");
    world.expect_delivered(world.follow(), &imported([complete.as_path()], &[]));
}

#[test]
fn files_rotated_several_times_while_not_followed_are_read_in_order() {
    // The pattern also matches the rotated files: each is still read once.
    for input in ["train.log", "train.log*"] {
        let parts = parts();
        let world = World::new(input).with("--poll-interval=0.1");
        begin(&world, &parts[0]);
        // The followed file grew before it was rotated.
        append(&world.path("train.log"), &parts[1]);
        for part in &parts[2..] {
            rotate(&world);
            fs::write(world.path("train.log"), part).expect("a log can be written");
        }
        expect_complete(&world, &parts);
        // Another start repeats nothing.
        expect_complete(&world, &parts);
    }
}

#[test]
fn later_files_are_read_when_the_followed_file_was_rotated_and_removed() {
    let parts = parts();
    let world = World::new("train.log").with("--poll-interval=0.1");
    fs::write(world.path("train.log.7"), "of a time before\n").expect("a file can be written");
    begin(&world, &parts[0]);
    rotate(&world);
    fs::remove_file(world.path("train.log.1")).expect("a log can be removed");
    for part in &parts[1..] {
        if world.path("train.log").exists() {
            rotate(&world);
        }
        fs::write(world.path("train.log"), part).expect("a log can be written");
    }
    let complete = world.path("complete");
    fs::write(&complete, parts.concat()).expect("a file can be written");
    let expected = imported([complete.as_path()], &[]);
    let follower = world.follow();
    wait_until("everything is delivered", || {
        world.delivered().len() >= expected.len()
    });
    assert!(follower.stop().success());
    // The state of sums is lost with the file; every step is delivered exactly once.
    for metric in ["train.global_step", "train.loss"] {
        assert_eq!(
            world.delivered().values(metric),
            expected.values(metric),
            "{metric}"
        );
    }
}

#[test]
fn data_copytruncated_while_not_followed_is_read_from_the_copy() {
    let parts = parts();
    let world = World::new("train.log").with("--poll-interval=0.1");
    begin(&world, &parts[0]);
    let log = world.path("train.log");
    append(&log, &parts[1]);
    fs::copy(&log, world.path("train.log.1")).expect("a log can be copied");
    fs::write(&log, parts[2..].concat()).expect("a log can be written");
    expect_complete(&world, &parts);
}

#[test]
fn compressed_rotated_file_is_reported_and_the_others_are_read() {
    let parts = parts();
    let world = World::new("train.log").with("--poll-interval=0.1");
    begin(&world, &parts[0]);
    for part in &parts[1..] {
        rotate(&world);
        fs::write(world.path("train.log"), part).expect("a log can be written");
    }
    let missed = world.path("train.log.2");
    fs::rename(&missed, world.path("train.log.2.gz")).expect("a log can be renamed");
    let follower = world.follow();
    wait_until("it is logged", || {
        follower
            .log()
            .contains("train.log.2.gz was rotated and compressed")
    });
    let left = [&parts[0], &parts[1], &parts[3], &parts[4]]
        .map(String::as_str)
        .concat();
    let complete = world.path("complete");
    fs::write(&complete, left).expect("a file can be written");
    world.expect_delivered(follower, &imported([complete.as_path()], &[]));
}

/// A log in which each file is a separate run.
#[test]
fn every_run_rotated_while_not_followed_is_read() {
    let world = World::new("train.log").with("--poll-interval=0.1");
    let log = world.path("train.log");
    let originals = ["dense", "moe", "dense"].map(|kind| corpus(&format!("surogate/training_{kind}.json")));
    let texts = originals.each_ref().map(|path| surogate_records(path));
    let write = |records: &[String]| {
        let mut writer = SurogateWriter::create(&log);
        records.iter().for_each(|record| writer.append(record));
    };
    write(&texts[0]);
    let first = imported([log.as_path()], &[]).len();
    let follower = world.follow();
    wait_until("the first run is delivered", || world.delivered().len() >= first);
    assert!(follower.stop().success());
    rotate(&world);
    write(&texts[1]);
    rotate(&world);
    let later: Vec<String> = texts[2]
        .iter()
        .map(|record| record.replace("2026-11-21 00:", "2026-11-21 05:"))
        .collect();
    write(&later);
    let files = ["train.log.2", "train.log.1", "train.log"].map(|name| world.path(name));
    world.expect_delivered(world.follow(), &imported(files.iter().map(AsRef::as_ref), &[]));
}
