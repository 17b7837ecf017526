//! A checkpoint file that cannot be read: delivered data stays, and the message names the file and the fix.

use std::{fs, os::unix::fs::PermissionsExt, path::Path};

use pulsetrain_tests::{
    Items, Process, SurogateWriter, as_unprivileged, corpus, surogate_records, wait_until,
};

use crate::tail::world::{World, imported};

#[test]
fn invalid_checkpoint_file_is_set_aside_without_loss_or_duplicates() {
    for nonsense in ["{\"version\":", "", "\0\0\0\0\0\0\0\0", "[]"] {
        let (world, mut writer, expected) = delivered_world();
        fs::write(world.positions(), nonsense).expect("positions can be spoilt");
        let follower = world.follow();
        wait_until("it is logged", || {
            follower.log().contains("nothing is lost or repeated")
        });
        assert_eq!(read_aside(&world), nonsense);
        writer.append(RECORD);
        let grown = imported([world.path("training.json").as_path()], &[]);
        assert!(grown.len() > expected.len());
        world.expect_delivered(follower, &grown);
    }
}

#[test]
fn truncated_checkpoint_file_is_set_aside_without_loss_or_duplicates() {
    let (world, _, expected) = delivered_world();
    let complete = fs::read(world.positions()).expect("there are positions");
    for cut in [1, complete.len() / 2, complete.len() - 3] {
        fs::write(world.positions(), &complete[..cut]).expect("positions can be spoilt");
        let follower = world.follow();
        wait_until("it continues", || follower.log().contains("following"));
        world.expect_delivered(follower, &expected);
        assert_eq!(read_aside(&world).as_bytes(), &complete[..cut]);
    }
}

#[test]
fn output_is_kept_when_all_checkpoint_files_are_invalid() {
    let (world, mut writer, expected) = delivered_world();
    fs::write(world.positions(), "{").expect("positions can be spoilt");
    fs::write(world.path("state/positions.json.before"), "{").expect("positions can be spoilt");
    let before = fs::read(world.out()).expect("it was written");
    let follower = world.follow();
    wait_until("everything has come again", || {
        world.delivered().len() >= 2 * expected.len()
    });
    let log = follower.stop_well();
    assert!(
        log.contains("positions.json.unreadable") && log.contains("output files keep their contents"),
        "{log}"
    );
    let now = fs::read(world.out()).expect("it is there");
    assert!(now.starts_with(&before), "not a byte of what was there is gone");
    // From here on, the follower behaves as after any other start.
    writer.append(RECORD);
    let grown = imported([world.path("training.json").as_path()], &[]).len() - expected.len();
    let follower = world.follow();
    let reported = 2 * expected.len() + grown;
    wait_until("what is new has come", || world.delivered().len() >= reported);
    drop(follower);
    assert_eq!(world.delivered().len(), reported);
}

#[test]
fn unreadable_checkpoint_file_stops_the_program_and_is_left_unchanged() {
    let (world, _, _) = delivered_world();
    for name in ["", "state", "state/lock", "out.jsonl"] {
        open_to_all(&world.path(name));
    }
    fs::set_permissions(world.positions(), fs::Permissions::from_mode(0o000)).expect("the file is ours");
    let mut command = as_unprivileged(&world.follow_command(), &world.path(""));
    refused(
        &world,
        Process::start("pulsetrain", &mut command),
        &["Permission denied", "readable", "checkpoints"],
    );
}

#[test]
fn checkpoint_file_of_a_newer_version_stops_the_program_and_is_left_unchanged() {
    let (world, _, _) = delivered_world();
    let text = "{\"version\":2,\"places\":[]}";
    fs::write(world.positions(), text).expect("positions can be replaced");
    refused(
        &world,
        world.follow(),
        &[
            "version 2",
            "newer pulsetrain",
            "move the file away",
            "positions.json",
        ],
    );
    assert_eq!(fs::read_to_string(world.positions()).expect("it is there"), text);
}

/// Returns a world in which a log was delivered and the follower has stopped, with the writer of the log and the delivered
/// items.
fn delivered_world() -> (World, SurogateWriter, Items) {
    let world = World::new("training.json");
    let log = world.path("training.json");
    let mut writer = SurogateWriter::create(&log);
    let records = surogate_records(&corpus("surogate/training_dense.json"));
    let (first, second) = records.split_at(records.len() / 2);
    first.iter().for_each(|record| writer.append(record));
    let follower = world.follow();
    wait_until("positions are kept", || world.positions().exists());
    let kept = fs::read(world.positions()).expect("they can be read");
    second.iter().for_each(|record| writer.append(record));
    wait_until("positions are kept again", || {
        fs::read(world.positions()).is_ok_and(|now| now != kept)
    });
    let expected = imported([log.as_path()], &[]);
    world.expect_delivered(follower, &expected);
    (world, writer, expected)
}

/// A record that is appended later.
const RECORD: &str = r#"{"log": "step", "time": "2026-11-21 09:00:00.000000001", "step": 900, "epoch": 0.5, "step_tokens": 16384, "duration_ms": 123, "norm": 1.5, "loss": 2.5, "lr": 2e-05, "phase": "converging"}"#;

fn read_aside(world: &World) -> String {
    fs::read_to_string(world.path("state/positions.json.unreadable")).expect("they were put aside")
}

fn open_to_all(path: &Path) {
    fs::set_permissions(path, fs::Permissions::from_mode(0o777)).expect("the file is ours");
}

/// Expects the follower to exit with these messages, and the output to be unchanged.
#[track_caller]
fn refused(world: &World, follower: Process, printed: &[&str]) {
    let before = fs::read(world.out()).expect("it was written");
    let (status, log) = follower.wait_for_end();
    assert_eq!(status.code(), Some(1), "{log}");
    printed
        .iter()
        .for_each(|words| assert!(log.contains(words), "{words} is not in: {log}"));
    assert_eq!(fs::read(world.out()).expect("it is there"), before);
}
