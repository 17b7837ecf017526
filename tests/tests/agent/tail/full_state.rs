//! A full disk under the state folder: logs are still delivered, and one message reports it.

use std::{fs, io::ErrorKind};

use pulsetrain_tests::{
    Process, SmallDisk, SurogateWriter, corpus, some_or_return, surogate_records, wait_until,
};

use crate::tail::world::{World, imported};

#[test]
fn checkpoints_on_a_full_disk_are_reported_once_without_loss_or_duplicates() {
    let world = World::new("training.json");
    fs::create_dir(world.path("state")).expect("a folder can be made");
    let disk = some_or_return!(SmallDisk::mount(&world.path("state"), "64k"));
    let world = world.with_state(disk.path());
    let log = world.path("training.json");
    let records = surogate_records(&corpus("surogate/training_dense.json"));
    let (first, rest) = records.split_at(records.len() / 3);
    let (second, third) = rest.split_at(rest.len() / 2);
    let mut writer = SurogateWriter::create(&log);
    let so_far = || imported([log.as_path()], &[]);
    let everything_has_come = || world.delivered().len() >= so_far().len();

    first.iter().for_each(|record| writer.append(record));
    world.expect_delivered(world.follow(), &so_far());

    let follower = follow_without_room(&world, &disk);
    second.iter().for_each(|record| writer.append(record));
    wait_until("the fault is logged", || {
        follower.log().contains("cannot store checkpoints")
    });
    wait_until("the second part has come", everything_has_come);
    let log_of_full = follower.kill();
    assert_eq!(
        log_of_full.matches("cannot store checkpoints").count(),
        1,
        "{log_of_full}"
    );
    assert!(
        log_of_full.contains("No space left") && log_of_full.contains("free disk space"),
        "{log_of_full}"
    );
    world.delivered().assert_same(&so_far());

    // A follower that cannot save the data that a restart must not truncate does not start.
    let before = fs::read(world.out()).expect("it was written");
    let (status, printed) = world.follow().wait_for_end();
    assert_eq!(status.code(), Some(1), "{printed}");
    assert!(printed.contains("No space left"), "{printed}");
    assert_eq!(fs::read(world.out()).expect("it is there"), before);

    disk.make_room();
    let follower = world.follow();
    third.iter().for_each(|record| writer.append(record));
    world.expect_delivered(follower, &so_far());
    let kept = fs::read(world.positions()).expect("they are kept");
    // A follower that stops while the disk is full reports it; the earlier checkpoint is complete.
    let follower = follow_without_room(&world, &disk);
    writer.append(LAST);
    wait_until("the last record has come", everything_has_come);
    let (status, printed) = follower.stop_with_log();
    assert_eq!(status.code(), Some(1), "{printed}");
    assert_eq!(fs::read(world.positions()).expect("they are complete"), kept);
    disk.make_room();
    let follower = world.follow();
    world.expect_delivered(follower, &so_far());
}

/// Starts a follower, and then fills the disk. Earlier checkpoint files would make room for new ones.
fn follow_without_room(world: &World, disk: &SmallDisk) -> Process {
    let follower = world.follow();
    wait_until("it continues", || follower.log().contains("from byte"));
    let before = disk.path().join("positions.json.before");
    if let Err(error) = fs::remove_file(before) {
        assert_eq!(error.kind(), ErrorKind::NotFound);
    }
    disk.fill();
    follower
}

/// A record that is appended later.
const LAST: &str = r#"{"log": "step", "time": "2026-11-21 09:00:00.000000001", "step": 900, "epoch": 0.5, "step_tokens": 16384, "duration_ms": 123, "norm": 1.5, "loss": 2.5, "lr": 2e-05, "phase": "converging"}"#;
