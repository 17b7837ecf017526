//! An archive that the agent does not know, that another agent locks or another program rotates, and one on a full disk:
//! existing lines are kept, and no line is torn.

use std::{fs, path::Path};

use pulsetrain_tests::{
    Items, Process, SmallDisk, SurogateWriter, corpus, some_or_return, surogate_records, wait_until,
};

use crate::world::{Setup, World, imported};

/// Returns a world whose log was read to its end into `out.jsonl`.
fn delivered_world() -> (World, Items) {
    let world = World::new();
    world.write_log("surogate/training_dense.json");
    world.configure(&world.file_sink("archive", "out.jsonl"));
    let expected = imported(&[world.path("training.json")]);
    let agent = world.spawn();
    wait_until("the log is delivered", || of_logs(&world).len() >= expected.len());
    assert!(agent.stop().success());
    (world, expected)
}

fn of_logs(world: &World) -> Items {
    world.written("out.jsonl").1
}

#[test]
fn archive_missing_from_the_state_folder_is_appended_to_and_reported() {
    let (world, expected) = delivered_world();
    let before = fs::read(world.path("out.jsonl")).expect("it was written");
    fs::remove_dir_all(world.path("state")).expect("the folder is ours");
    let agent = world.spawn();
    wait_until("the log is delivered again", || {
        of_logs(&world).len() >= 2 * expected.len()
    });
    let log = agent.stop_well();
    let lines: Vec<&str> = log.lines().filter(|line| line.contains("out.jsonl")).collect();
    assert_eq!(lines.len(), 1, "{log}");
    assert!(
        lines[0].contains(&format!("keeps {} bytes", before.len())),
        "{log}"
    );
    let now = fs::read(world.path("out.jsonl")).expect("it is there");
    assert!(now.starts_with(&before), "not a byte of what was there is gone");

    let (status, log) = world.start().stop_with_log();
    assert!(status.success() && !log.contains("out.jsonl"), "{log}");
    assert_eq!(of_logs(&world).len(), 2 * expected.len(), "it is known now");
}

#[test]
fn archive_of_an_agent_without_state_is_appended_to() {
    let (world, expected) = delivered_world();
    let before = fs::read(world.path("out.jsonl")).expect("it was written");
    let text = fs::read_to_string(world.path("agent.yaml")).expect("it was written");
    let without = text.replace("state_folder: ${STATE}\n", "");
    fs::write(world.path("agent.yaml"), without).expect("a temporary file can be written");
    let mut command = world.command();
    command.env_remove("HOME").env_remove("XDG_STATE_HOME");
    let agent = Process::start("pulsetrain agent", &mut command);
    wait_until("the log is delivered again", || {
        of_logs(&world).len() >= 2 * expected.len()
    });
    assert!(agent.stop().success());
    let now = fs::read(world.path("out.jsonl")).expect("it is there");
    assert!(now.starts_with(&before), "not a byte of what was there is gone");
}

#[test]
fn second_agent_on_an_archive_exits_naming_the_file_and_the_fix() {
    let (world, expected) = delivered_world();
    let first = world.start();
    let second = World::new();
    let sink = format!(
        "  archive:\n    file:\n      path: {}\n",
        world.path("out.jsonl").display()
    );
    second.configure(&sink);
    let (status, log) = second.spawn().wait_for_end();
    assert_eq!(status.code(), Some(1), "{log}");
    for words in ["out.jsonl", "another program writes to it", "name another file"] {
        assert!(log.contains(words), "{words} is not in: {log}");
    }
    first.kill();
    // The lock is also released by a process that is killed.
    assert!(world.start().stop().success());
    of_logs(&world).assert_same(&expected);
}

#[test]
fn copytruncated_archive_has_complete_lines_and_is_continued() {
    let world = World::new();
    let log = world.path("training.json");
    let mut writer = SurogateWriter::create(&log);
    let records = surogate_records(&corpus("surogate/training_dense.json"));
    let (first, second) = records.split_at(records.len() / 2);
    world.configure(&world.file_sink("archive", "out.jsonl"));
    let agent = world.start();
    first.iter().for_each(|record| writer.append(record));
    let expected = imported(&[&log]);
    wait_until("the first half is delivered", || {
        of_logs(&world).len() >= expected.len()
    });
    // No item of the log is in flight, and the agent's own telemetry is not counted here.
    let (archive, rotated) = (world.path("out.jsonl"), world.path("rotated.jsonl"));
    fs::copy(&archive, &rotated).expect("an archive can be copied");
    truncate(&archive);
    second.iter().for_each(|record| writer.append(record));
    let expected = imported(&[&log]);
    let all = || {
        let text = [&rotated, &archive].map(|path| complete_lines(path)).concat();
        Items::parse(&text).divide_by_service("pulsetrain").1
    };
    wait_until("the second half is delivered", || all().len() >= expected.len());
    assert!(agent.stop().success());
    assert!(!fs::read(&archive).expect("it is there").contains(&0));
    all().assert_same(&expected);
    let before = fs::read(&archive).expect("it is there");
    let (status, log) = world.start().stop_with_log();
    assert!(status.success() && !log.contains("out.jsonl"), "{log}");
    let now = fs::read(&archive).expect("it is there");
    assert!(now.starts_with(&before), "not a byte of what was there is gone");
}

#[test]
fn archive_holds_every_item_once_after_a_full_disk_gets_space() {
    let world = World::new();
    let folder = world.path("disk");
    fs::create_dir(&folder).expect("a folder can be made");
    let disk = some_or_return!(SmallDisk::mount(&folder, "8m"));
    let (log, archive) = (world.path("training.json"), disk.path().join("out.jsonl"));
    let mut writer = SurogateWriter::create(&log);
    let records = surogate_records(&corpus("surogate/training_dense.json"));
    let (first, second) = records.split_at(records.len() / 2);
    world.configure_as(&Setup {
        sinks: &format!("  archive:\n    file:\n      path: {}\n", archive.display()),
        rest: "limits:\n  retry_after: 100ms\n  retry_at_most: 500ms\n",
        ..Setup::default()
    });
    let agent = world.start();
    let delivered = || {
        Items::read_complete_lines(&archive)
            .divide_by_service("pulsetrain")
            .1
    };
    first.iter().for_each(|record| writer.append(record));
    let expected = imported(&[&log]);
    wait_until("the first half is delivered", || {
        delivered().len() >= expected.len()
    });
    disk.fill();
    let retries = || {
        world
            .scraped_where("pulsetrain_retries_total", "archive")
            .iter()
            .sum::<f64>()
    };
    let retried = retries();
    second.iter().for_each(|record| writer.append(record));
    wait_until("it is tried again and again", || retries() >= retried + 3.0);
    disk.make_room();
    let expected = imported(&[&log]);
    wait_until("the second half is delivered", || {
        delivered().len() >= expected.len()
    });
    assert!(agent.stop().success());
    delivered().assert_same(&expected);
    let text = fs::read_to_string(&archive).expect("an archive is UTF-8");
    assert!(text.lines().all(is_json), "no line is torn");
}

fn truncate(path: &Path) {
    let file = fs::File::options().write(true).open(path);
    file.and_then(|file| file.set_len(0))
        .expect("an archive can be truncated");
}

/// Returns the lines of a file that may still be written, or that was copied during a write.
fn complete_lines(path: &Path) -> String {
    let mut text = fs::read_to_string(path).expect("an archive is UTF-8");
    text.truncate(text.rfind('\n').map_or(0, |end| end + 1));
    text
}

fn is_json(line: &str) -> bool {
    serde_json::from_str::<serde_json::Value>(line).is_ok()
}
