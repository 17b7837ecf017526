//! Rotation of a log of lines: the run continues in the next file, and the renamed file is not read again.

use std::{
    fs::{self, File, OpenOptions},
    io::Write,
    os::unix::fs::MetadataExt,
    path::Path,
    time::SystemTime,
};

use pulsetrain_tests::{SurogateWriter, corpus, surogate_records, wait_until};

use crate::tail::world::{World, imported};

/// Returns a log of lines that have timestamps, in three parts.
fn parts() -> [String; 3] {
    let text = fs::read_to_string(corpus("maxtext/demo.stderr")).expect("the corpus can be read");
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    // The run is identified by its configuration, which is most of the log: the steps come after that.
    let named = lines.iter().position(|line| line.contains("completed step: 0,"));
    let first = named.expect("there are steps") + 1;
    let second = first + (lines.len() - first) / 2;
    [&lines[..first], &lines[first..second], &lines[second..]].map(|lines| lines.concat())
}

fn appended(log: &Path) -> File {
    OpenOptions::new()
        .create(true)
        .append(true)
        .open(log)
        .expect("a log can be opened")
}

/// Writes text in pieces that end at arbitrary offsets, within lines and characters.
fn write_torn(mut log: &File, text: &str) {
    for piece in text.as_bytes().chunks(611) {
        log.write_all(piece).expect("a log can be written");
    }
}

/// Returns the number of items in the first parts.
fn items_of(world: &World, parts: &[String]) -> usize {
    let log = world.path("so-far");
    fs::write(&log, parts.concat()).expect("a file can be written");
    imported([log.as_path()], &[]).len()
}

#[test]
fn log_is_followed_through_rename_and_copytruncate_rotation() {
    let parts = parts();
    // The pattern also matches the renamed file.
    let world = World::new("train.log*").with("--poll-interval=0.1");
    let log = world.path("train.log");
    let follower = world.follow();
    let writer = appended(&log);
    write_torn(&writer, &parts[0]);
    let first = items_of(&world, &parts[..1]);
    assert!(first > 0, "the first part has items");
    wait_until("the follower has begun", || !world.delivered().is_empty());

    // The writer continues in the renamed file for a while, like one that has not reopened its log.
    let (early, late) = parts[1].split_at(parts[1].find('\n').expect("there are lines") + 1);
    fs::rename(&log, world.path("train.log.1")).expect("a log can be renamed");
    write_torn(&writer, early);
    let writer = appended(&log);
    write_torn(&writer, late);
    let second = items_of(&world, &parts[..2]);
    wait_until("the second part is delivered", || {
        world.delivered().len() >= second
    });

    fs::copy(&log, world.path("copied")).expect("a log can be copied");
    writer.set_len(0).expect("a log can be emptied");
    write_torn(&writer, &parts[2]);
    let complete = world.path("complete");
    fs::write(&complete, parts.concat()).expect("a file can be written");
    world.expect_delivered(follower, &imported([complete.as_path()], &[]));
}

#[test]
fn log_replaced_by_a_directory_is_reported_and_followed_after_it_returns() {
    let original = corpus("surogate/training_dense.json");
    let expected = imported([original.as_path()], &[]);
    let world = World::new("training.json").with("--poll-interval=0.1");
    let log = world.path("training.json");
    fs::copy(&original, &log).expect("a log can be copied");
    let follower = world.follow();
    wait_until("the run is delivered", || {
        world.delivered().len() >= expected.len()
    });
    fs::remove_file(&log).expect("a log can be removed");
    fs::create_dir(&log).expect("a folder can be made");
    wait_until("it is logged", || follower.log().contains("is a directory"));
    fs::remove_dir(&log).expect("a folder can be removed");
    let second = corpus("surogate/training_moe.json");
    let mut writer = SurogateWriter::create(&log);
    surogate_records(&second)
        .iter()
        .for_each(|record| writer.append(record));
    world.expect_delivered(follower, &imported([original.as_path(), &second], &[]));
}

/// Not every file system reuses inodes at once, so the test writes the inode of the new log into the checkpoint.
#[test]
fn new_log_with_a_reused_inode_is_another_run() {
    let originals = ["surogate/training_dense.json", "surogate/training_moe.json"].map(corpus);
    let world = World::new("training.json");
    let log = world.path("training.json");
    let inode = || {
        format!(
            "\"inode\":{}",
            fs::metadata(&log).expect("the log is there").ino()
        )
    };
    fs::copy(&originals[0], &log).expect("a log can be copied");
    let old = inode();
    world.expect_delivered(world.follow(), &imported([originals[0].as_path()], &[]));
    // The old file is kept, so that the new one has another inode.
    fs::rename(&log, world.path("old")).expect("a log can be renamed");
    fs::copy(&originals[1], &log).expect("a log can be copied");
    let kept = fs::read_to_string(world.positions()).expect("positions are kept");
    assert!(kept.contains(&old), "{old} is not in {kept}");
    fs::write(world.positions(), kept.replace(&old, &inode())).expect("positions can be replaced");
    let expected = imported(originals.iter().map(AsRef::as_ref), &[]);
    world.expect_delivered(world.follow(), &expected);
}

#[test]
fn symlink_retargeted_to_another_log_is_another_run() {
    let logs = [
        corpus("surogate/training_dense.json"),
        corpus("surogate/training_moe.json"),
    ];
    let world = World::new("latest.json").with("--poll-interval=0.1");
    let link = world.path("latest.json");
    std::os::unix::fs::symlink(&logs[0], &link).expect("a link can be made");
    let follower = world.follow();
    let first = imported([logs[0].as_path()], &[]).len();
    wait_until("the first run is delivered", || world.delivered().len() >= first);
    let next = world.path("next.json");
    std::os::unix::fs::symlink(&logs[1], &next).expect("a link can be made");
    fs::rename(&next, &link).expect("a link can be replaced");
    world.expect_delivered(follower, &imported(logs.iter().map(AsRef::as_ref), &[]));
}

/// The links of a known path are those of the folder to which its input leads now.
#[test]
fn log_below_a_retargeted_folder_is_another_run() {
    let logs = [
        corpus("surogate/training_dense.json"),
        corpus("surogate/training_moe.json"),
    ];
    let world = World::new("current/*.json").with("--poll-interval=0.1");
    for (log, run) in logs.iter().zip(["run1", "run2"]) {
        fs::create_dir(world.path(run)).expect("a folder can be made");
        fs::copy(log, world.path(run).join("log.json")).expect("a log can be copied");
    }
    let link = world.path("current");
    std::os::unix::fs::symlink(world.path("run1"), &link).expect("a link can be made");
    let follower = world.follow();
    let first = imported([logs[0].as_path()], &[]).len();
    wait_until("the first run is delivered", || world.delivered().len() >= first);
    let next = world.path("next");
    std::os::unix::fs::symlink(world.path("run2"), &next).expect("a link can be made");
    fs::rename(&next, &link).expect("a link can be replaced");
    world.expect_delivered(follower, &imported(logs.iter().map(AsRef::as_ref), &[]));
}

/// A log is not read before its run name, which comes late; but a log without a writer never gets one.
#[test]
fn finished_log_without_a_run_name_is_still_read() {
    let text = fs::read_to_string(corpus("maxtext/demo.stderr")).expect("the corpus can be read");
    let (nameless, _) = text
        .split_once("Config param run_name")
        .expect("the run has a name");
    let (nameless, _) = nameless.rsplit_once('\n').expect("there are lines before it");
    let world = World::new("train.log").with("--poll-interval=0.1");
    let log = world.path("train.log");
    fs::write(&log, format!("{nameless}\n")).expect("a log can be written");
    let expected = imported([log.as_path()], &[]);
    let written = appended(&log);
    written
        .set_modified(SystemTime::UNIX_EPOCH)
        .expect("a file can be made old");
    world.expect_delivered(world.follow(), &expected);
}
