//! What is in the way of a follower for a while: permissions that are taken and given back.

use std::{
    fs::{self, Permissions},
    os::unix::fs::PermissionsExt,
    path::Path,
};

use pulsetrain_tests::{Process, SurogateWriter, as_nobody, corpus, surogate_records, wait_until};

use crate::world::{World, imported};

#[test]
fn a_log_and_a_folder_that_may_not_be_read_for_a_while_are_told_and_followed_again() {
    let world = World::new("logs/training.json").with("--poll-interval=0.1");
    allow(&world.path(""), 0o777);
    let (folder, log) = (world.path("logs"), world.path("logs/training.json"));
    fs::create_dir(&folder).expect("a folder can be made");
    let records = surogate_records(&corpus("surogate/training_dense.json"));
    let (first, rest) = records.split_at(records.len() / 2);
    let mut writer = SurogateWriter::create(&log);
    first.iter().for_each(|record| writer.append(record));

    allow(&log, 0o000);
    let mut command = as_nobody(&world.follow_command(), &world.path(""));
    let follower = Process::start("pulsetrain", &mut command);
    wait_until("the log is told", || told(&follower) == 1);
    assert!(world.delivered().is_empty());
    allow(&log, 0o644);
    let half = imported([log.as_path()], &[]).len();
    wait_until("the log is read", || world.delivered().len() >= half);

    allow(&folder, 0o000);
    wait_until("the folder is told", || told(&follower) == 2);
    rest.iter().for_each(|record| writer.append(record));
    allow(&folder, 0o755);
    let expected = imported([log.as_path()], &[]);
    wait_until("the rest is read", || world.delivered().len() >= expected.len());

    // A follower that begins while it may not read goes on where the last one ended.
    follower.stop();
    allow(&log, 0o000);
    let follower = Process::start("pulsetrain", &mut command);
    wait_until("it is told again", || told(&follower) == 1);
    allow(&log, 0o644);
    wait_until("it goes on", || follower.log().contains("from byte"));
    world.expect_delivered(follower, &expected);
}

/// How often it was said that something may not be read.
fn told(follower: &Process) -> usize {
    follower.log().matches("Permission denied").count()
}

fn allow(path: &Path, mode: u32) {
    fs::set_permissions(path, Permissions::from_mode(mode)).expect("the file is ours");
}
