//! If the system reports no changes, as on network file systems, logs are polled.

use std::{
    fs,
    io::{self, Write},
    process::Command,
};

use pulsetrain_tests::{Process, SurogateWriter, corpus, surogate_records, wait_until};

use crate::tail::world::{World, imported};

/// The name of the file descriptor of inotify.
const INOTIFY_FD: &str = "anon_inode:inotify";

/// Runs a program in a namespace without inotify instances, which the follower detects at its start.
const WITHOUT_INOTIFY: &str = r#"echo 0 > /proc/sys/user/max_inotify_instances && exec "$@""#;

#[test]
fn logs_are_followed_through_truncation_and_rotation_without_inotify() {
    if !can_disable_inotify() {
        writeln!(
            io::stderr(),
            "SKIPPED: right to go without inotify not found (unshare --map-root-user)"
        )
        .expect("standard error can be written");
        return;
    }
    let world = World::new("runs/*/training.json").with("--poll-interval=0.05");
    let ordinary = world.follow();
    wait_until("who may asks the system", || uses_inotify(&ordinary));
    drop(ordinary);
    let follow = world.follow_command();
    let mut without = unshared();
    without.arg(follow.get_program()).args(follow.get_args());
    let follower = Process::start("pulsetrain", &mut without);

    let (first, second) = (world.path("runs/first"), world.path("runs/second"));
    fs::create_dir_all(&first).expect("a folder can be made");
    let originals = ["surogate/training_dense.json", "surogate/training_moe.json"].map(corpus);
    let [dense, moe] = originals.each_ref().map(|original| surogate_records(original));
    let log = first.join("training.json");
    let mut writer = SurogateWriter::create(&log);
    let (early, late) = dense.split_at(dense.len() / 2);
    early.iter().for_each(|record| writer.append(record));
    let half = imported([log.as_path()], &[]).len();
    wait_until("the first half has come", || world.delivered().len() >= half);
    assert!(!uses_inotify(&follower));
    late.iter().for_each(|record| writer.append(record));
    let complete = imported([log.as_path()], &[]).len();
    wait_until("the rest has come", || world.delivered().len() >= complete);

    // A restarted trainer truncates its log; another one starts in another folder.
    let mut writer = SurogateWriter::create(&log);
    moe.iter().for_each(|record| writer.append(record));
    fs::create_dir_all(&second).expect("a folder can be made");
    fs::copy(corpus("maxtext/demo.stderr"), second.join("training.json")).expect("a log can be copied");
    let elsewhere = second.join("training.json");
    let all = originals.iter().map(AsRef::as_ref).chain([elsewhere.as_path()]);
    let expected = imported(all, &[]);
    world.expect_delivered(follower, &expected);
}

/// Returns whether a process uses inotify.
fn uses_inotify(process: &Process) -> bool {
    let open = fs::read_dir(format!("/proc/{}/fd", process.pid())).expect("the process is ours");
    let mut links = open.filter_map(|entry| fs::read_link(entry.ok()?.path()).ok());
    links.any(|link| link.as_os_str() == INOTIFY_FD)
}

fn can_disable_inotify() -> bool {
    let tried = unshared().arg("true").output();
    tried.is_ok_and(|output| output.status.success())
}

fn unshared() -> Command {
    let mut command = Command::new("unshare");
    command.args(["--map-root-user", "sh", "-c", WITHOUT_INOTIFY, "sh"]);
    command
}
