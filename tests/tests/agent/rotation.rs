//! An archive that is rotated, by the agent or by another program, while the agent is killed: every item is in it exactly once.

use std::{
    collections::BTreeSet,
    fs::{self, File},
    io::Read,
    path::{Path, PathBuf},
    thread,
};

use fastrand::Rng;
use pulsetrain_tests::{
    Items, Progress, SmallDisk, SurogateRun, SurogateWriter, corpus, some_or_return, spin, surogate_records,
    wait_until,
};

use crate::{
    kills::{kill_while_a_record_is_torn, kill_while_logs_grow},
    world::{Setup, World, imported},
};

/// Two logs, each with its own source.
const LOGS: [&str; 2] = ["first.json", "second.json"];

/// Creates a world whose archive has these keys in addition to its path.
fn world_with(keys: &str) -> World {
    let world = World::new();
    let archive = world.file_sink("archive", "out.jsonl") + keys;
    world.configure_as(&Setup {
        logs: &LOGS,
        sinks: &archive,
        telemetry: "interval: 1s",
        rest: "limits:\n  drain: 60s\n",
        ..Setup::default()
    });
    world
}

fn runs(world: &World) -> [SurogateRun; 2] {
    let [first, second] = LOGS.map(|log| world.path(log));
    [SurogateRun::begin(&first, 0), SurogateRun::begin(&second, 10)]
}

/// Returns the files of the archive, sorted by name.
fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).expect("the folder is there");
    let names = entries.map(|entry| entry.expect("it can be listed").path());
    let is_of_archive = |path: &PathBuf| {
        let name = path
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        name.starts_with("out") && !name.ends_with(".partial")
    };
    let all: BTreeSet<PathBuf> = names.filter(is_of_archive).collect();
    // A kill may leave both a file and its compressed form, until the next start.
    let compressed =
        |path: &PathBuf| all.contains(&with_ending(path, ".zst")) || all.contains(&with_ending(path, ".gz"));
    all.iter().filter(|path| !compressed(path)).cloned().collect()
}

fn with_ending(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(ending);
    name.into()
}

/// Returns the items of the logs in all files of the archive, complete lines only; `None` if a file was renamed during the
/// read.
pub(crate) fn archived(folder: &Path) -> Option<Items> {
    let mut all = String::new();
    for path in files(folder) {
        let mut text = String::new();
        let mut file = File::open(&path).ok()?;
        match path.extension().and_then(|ending| ending.to_str()) {
            Some("zst") => zstd::Decoder::new(file).ok()?.read_to_string(&mut text).ok()?,
            Some("gz") => flate2::read::GzDecoder::new(file)
                .read_to_string(&mut text)
                .ok()?,
            _ => file.read_to_string(&mut text).ok()?,
        };
        text.truncate(text.rfind('\n').map_or(0, |end| end + 1));
        all += &text;
    }
    Some(
        Items::parse(&all)
            .divide_by_service("pulsetrain")
            .1
            .divide_ends()
            .1,
    )
}

/// Lets an agent deliver everything, and compares all files with an import.
fn assert_everything_once(world: &World, folder: &Path) {
    let expected = imported(&LOGS.map(|log| world.path(log)));
    let agent = world.start();
    wait_until("everything is delivered", || {
        archived(folder).is_some_and(|items| items.len() >= expected.len())
    });
    agent.stop_well();
    archived(folder)
        .expect("nobody changes it")
        .assert_same(&expected);
}

#[test]
fn kills_during_rotations_neither_lose_nor_duplicate_items() {
    let mut random = Rng::with_seed(20_261_122);
    let world = world_with(
        "      permissions: \"0640\"\n      rotation: {max_bytes: 20KiB, keep: 0, compression: zstd}\n",
    );
    let mut runs = runs(&world);
    for kill in 0..40 {
        match kill % 5 {
            4 => kill_while_a_record_is_torn(&world, &mut runs[kill % 2], &mut random),
            _ => kill_while_logs_grow(&world, &mut runs, &mut random),
        }
    }
    let folder = world.path("");
    assert_everything_once(&world, &folder);
    let rotated = files(&folder);
    assert!(rotated.len() > 10, "{rotated:?}");
    for path in &rotated {
        use std::os::unix::fs::PermissionsExt;
        let mode = path.metadata().expect("it is there").permissions().mode();
        assert_eq!(mode & 0o777, 0o640, "{}", path.display());
    }
    let is_compressed = |path: &&PathBuf| path.extension().is_some_and(|ending| ending == "zst");
    assert!(rotated.iter().filter(is_compressed).count() > 5, "{rotated:?}");
}

/// As logrotate does: a rename, with `create` or without, and SIGHUP.
#[test]
fn kills_during_external_rotation_neither_lose_nor_duplicate_items() {
    let mut random = Rng::with_seed(5);
    let world = world_with("");
    let mut runs = runs(&world);
    let (folder, archive) = (world.path(""), world.path("out.jsonl"));
    for moved in 0..25 {
        let before = Progress::new(archive.clone(), world.path("state/positions.json"));
        let [mut writing, mut other] = [random.fork(), random.fork()];
        let agent = world.start();
        thread::scope(|scope| {
            let [first, second] = &mut runs;
            scope.spawn(|| first.write(&mut writing, 20));
            scope.spawn(|| second.write(&mut other, 20));
            spin(&mut random);
            fs::rename(&archive, world.path(&format!("out.jsonl.{moved}"))).expect("it can be moved");
            if random.bool() {
                File::create(&archive).expect("it can be made");
            }
            spin(&mut random);
            agent.reload();
            if random.bool() {
                wait_until("it is opened again", || {
                    agent.log().contains("sink archive: opened the file again")
                });
                before.wait_for_kill_time(&agent, &mut random);
            }
            drop(agent);
        });
    }
    assert_everything_once(&world, &folder);
    assert_eq!(files(&folder).len(), 26);
}

#[test]
fn moved_archive_is_reopened_even_with_an_invalid_configuration() {
    let world = world_with("");
    let mut writer = SurogateWriter::create(&world.path(LOGS[0]));
    let records = surogate_records(&corpus("surogate/training_dense.json"));
    let archive = world.path("out.jsonl");
    let agent = world.start();
    fs::rename(&archive, world.path("out.jsonl.1")).expect("it can be moved");
    let text = fs::read_to_string(world.path("agent.yaml")).expect("it was written");
    fs::write(world.path("agent.yaml"), "sinks: [").expect("a temporary file can be written");
    agent.reload();
    wait_until("the configuration is refused", || {
        agent.log().contains("continues with the old configuration")
    });
    assert!(archive.exists(), "the file is there again");
    fs::write(world.path("agent.yaml"), text).expect("a temporary file can be written");
    records.iter().for_each(|record| writer.append(record));
    let expected = imported(&[world.path(LOGS[0])]);
    wait_until("the log is delivered", || {
        world.written("out.jsonl").1.len() >= expected.len()
    });
    assert!(agent.stop().success());
    world.written("out.jsonl").1.assert_same(&expected);
    assert!(world.written("out.jsonl.1").1.is_empty());
}

/// The next file cannot be created: the record waits, and no data is torn, lost or duplicated.
#[test]
fn rotation_on_a_full_disk_waits_for_free_space() {
    let world = World::new();
    let folder = world.path("disk");
    fs::create_dir(&folder).expect("a folder can be made");
    let disk = some_or_return!(SmallDisk::mount(&folder, "4m"));
    let archive = disk.path().join("out.jsonl");
    let mut writers = LOGS.map(|log| SurogateWriter::create(&world.path(log)));
    let records = surogate_records(&corpus("surogate/training_dense.json"));
    let (first, second) = records.split_at(records.len() / 2);
    world.configure_as(&Setup {
        logs: &LOGS,
        sinks: &format!(
            "  archive:\n    file:\n      path: {}\n      rotation: {{max_bytes: 16KiB, keep: 0, compression: gzip}}\n",
            archive.display()
        ),
        rest: "limits:\n  retry_after: 100ms\n  retry_at_most: 200ms\n",
        ..Setup::default()
    });
    let agent = world.start();
    first.iter().for_each(|record| writers[0].append(record));
    let delivered = || archived(disk.path()).map_or(0, |items| items.len());
    let expected = imported(&[world.path(LOGS[0])]);
    wait_until("the first half is delivered", || delivered() >= expected.len());
    disk.fill();
    let retries = || {
        let scraped = world.scraped_where("pulsetrain_retries_total", "archive");
        scraped.iter().sum::<f64>()
    };
    let retried = retries();
    second.iter().for_each(|record| writers[0].append(record));
    records.iter().for_each(|record| writers[1].append(record));
    wait_until("it is tried again and again", || retries() >= retried + 3.0);
    disk.make_room();
    let expected = imported(&LOGS.map(|log| world.path(log)));
    wait_until("the rest is delivered", || delivered() >= expected.len());
    assert!(agent.stop().success());
    archived(disk.path())
        .expect("nobody changes it")
        .assert_same(&expected);
}
