//! The disk queue of an OTLP sink: acknowledged data arrives after restarts, damaged files and full disks.

use std::{
    collections::BTreeSet,
    fs,
    os::unix::fs::{PermissionsExt, symlink},
    path::{Path, PathBuf},
    thread,
};

use pulsetrain_tests::{
    Answer, FakeEndpoint, Process, SmallDisk, as_unprivileged, free_port, some_or_return, wait_until,
};

use crate::{
    delivery::{accepted_texts, configure, post},
    world::{World, get},
};

/// A world with a receiver and a sink `o` for an endpoint that first rejects everything.
pub(crate) struct Outage {
    pub(crate) world: World,
    pub(crate) endpoint: FakeEndpoint,
    pub(crate) receiver: u16,
}

impl Outage {
    pub(crate) fn begin(keys: &str, limits: &str) -> Self {
        let outage = Self {
            world: World::new(),
            endpoint: FakeEndpoint::start([], Answer::Refuse(503)),
            receiver: free_port(),
        };
        let url = outage.endpoint.url();
        configure(&outage.world, outage.receiver, &url, keys, limits);
        outage
    }

    /// Posts messages until one is not acknowledged; returns the texts of the acknowledged ones.
    fn post(&self, texts: impl IntoIterator<Item = String>) -> BTreeSet<String> {
        let is_acknowledged = |text: &String| post(self.receiver, text) == Some(200);
        texts.into_iter().take_while(is_acknowledged).collect()
    }

    pub(crate) fn folder(&self) -> PathBuf {
        self.world.path("state/queue/o")
    }

    fn accepted(&self) -> BTreeSet<String> {
        accepted_texts(&self.endpoint).into_iter().collect()
    }

    /// Ends the outage, and waits until all of these messages have arrived.
    fn expect(&self, acknowledged: &BTreeSet<String>) {
        self.endpoint.answer_with(Answer::Accept);
        wait_until("everything acknowledged has arrived", || {
            self.accepted().is_superset(acknowledged)
        });
    }
}

fn messages(range: std::ops::Range<u32>) -> impl Iterator<Item = String> {
    range.map(|number| format!("message {number}"))
}

pub(crate) fn segments(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut files: Vec<PathBuf> = (entries.map(|entry| entry.path()))
        .filter(|path| path.extension().is_some_and(|extension| extension == "segment"))
        .collect();
    files.sort();
    files
}

#[test]
fn shutdown_with_a_dead_downstream_keeps_data_on_disk_and_succeeds() {
    let outage = Outage::begin("", "  drain: 300ms\n");
    let agent = outage.world.start();
    let acknowledged = outage.post(messages(0..50));
    assert_eq!(acknowledged.len(), 50);
    let printed = agent.stop_well();
    let expected = format!(
        "o: 50 items stay on disk in {} and are sent at the next start",
        outage.folder().display()
    );
    assert!(printed.contains(&expected), "{printed}");
    assert!(!printed.contains("lost"), "{printed}");

    let agent = outage.world.start();
    outage.expect(&acknowledged);
    wait_until("nothing is left on the disk", || {
        segments(&outage.folder()).is_empty()
    });
    let (status, printed) = agent.stop_with_log();
    assert!(status.success() && !printed.contains("stay on disk"), "{printed}");
    assert_eq!(
        accepted_texts(&outage.endpoint).len(),
        50,
        "an end repeats nothing"
    );
}

#[test]
fn sink_removed_and_added_back_by_reloads_keeps_its_disk_queue() {
    let outage = Outage::begin("", "  drain: 1h\n");
    let agent = outage.world.start();
    let mut acknowledged = outage.post(messages(0..5));
    let with_sink = fs::read_to_string(outage.world.path("agent.yaml")).expect("it is there");
    let without = with_sink.replacen("  o:\n", "  other:\n", 1);
    for (reloads, yaml) in [(1, &without), (2, &with_sink)] {
        fs::write(outage.world.path("agent.yaml"), yaml).expect("it can be written");
        agent.reload();
        wait_until("the configuration is reloaded", || {
            agent.log().matches("reloaded the configuration").count() == reloads
        });
    }
    acknowledged.extend(outage.post(messages(5..10)));
    assert_eq!(acknowledged.len(), 10);
    assert!(!agent.log().contains("in memory only"), "{}", agent.log());
    agent.kill();
    let _agent = outage.world.start();
    outage.expect(&acknowledged);
}

#[test]
fn corrupt_disk_queue_record_is_reported_and_counted_and_the_rest_arrives() {
    let outage = Outage::begin("", "");
    let agent = outage.world.start();
    let mut acknowledged = outage.post(messages(0..30));
    agent.kill();
    let newest = segments(&outage.folder()).pop().expect("it has one segment");
    let mut bytes = fs::read(&newest).expect("it is there");
    let place = find(&bytes, b"message 7");
    bytes[place] ^= 1;
    fs::write(&newest, bytes).expect("it can be written");
    let agent = outage.world.start();
    acknowledged.remove("message 7");
    outage.expect(&acknowledged);
    let (status, printed) = agent.stop_with_log();
    assert_eq!(status.code(), Some(1), "a loss is a failure: {printed}");
    assert!(
        printed.contains("o: ") && printed.contains("lost 1 items in "),
        "{printed}"
    );
    assert!(
        printed.contains(".corrupt") && printed.contains("sink o: lost 1 items"),
        "{printed}"
    );
}

fn find(bytes: &[u8], part: &[u8]) -> usize {
    let mut windows = bytes.windows(part.len());
    windows.position(|window| window == part).expect("it is there")
}

#[test]
fn full_disk_applies_backpressure_and_loses_nothing() {
    let outage = Outage::begin("", "");
    fs::create_dir_all(outage.folder()).expect("a folder can be made");
    let disk = some_or_return!(SmallDisk::mount(&outage.folder(), "256k"));
    let keys = format!("      disk_queue: {{folder: {}}}\n", disk.path().display());
    configure(&outage.world, outage.receiver, &outage.endpoint.url(), &keys, "");
    let agent = outage.world.start();
    let mut acknowledged = outage.post(messages(0..5));
    assert_eq!(acknowledged.len(), 5);
    disk.fill();
    // The last page of the segment has room for several more messages.
    acknowledged.extend(outage.post(messages(5..200)));
    assert!(acknowledged.len() < 200, "there is no room");
    assert_eq!(post(outage.receiver, "message refused"), Some(503));
    wait_until("it is reported", || agent.log().contains("No space left"));
    assert_eq!(agent.log().matches("No space left").count(), 1, "{}", agent.log());
    disk.make_room();
    wait_until("there is room again", || {
        post(outage.receiver, "message 999") == Some(200)
    });
    acknowledged.insert("message 999".to_owned());
    outage.expect(&acknowledged);
    let (status, printed) = agent.stop_with_log();
    assert!(status.success() && printed.contains("works again"), "{printed}");
}

#[test]
fn unwritable_state_folder_fails_the_start_with_the_fix() {
    let outage = Outage::begin("", "");
    let state = outage.world.path("state");
    fs::create_dir(&state).expect("it can be created");
    let mode = |path: &Path, mode| {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("they can be set");
    };
    mode(&outage.world.path(""), 0o777);
    mode(&state, 0o555);
    let mut agent = as_unprivileged(&outage.world.command(), &outage.world.path(""));
    let (status, printed) = Process::start("pulsetrain agent", &mut agent).wait_for_end();
    mode(&state, 0o755);
    assert_eq!(status.code(), Some(1), "{printed}");
    let named = format!("{}: Permission denied", state.display());
    assert!(
        printed.contains(&named) && printed.contains("writable"),
        "{printed}"
    );
}

#[test]
fn deleted_state_folder_loses_no_data_that_arrives_later() {
    let outage = Outage::begin("", "");
    outage.endpoint.answer_with(Answer::Accept);
    let agent = outage.world.start();
    outage.expect(&outage.post(messages(0..1)));
    fs::remove_dir_all(outage.world.path("state")).expect("it is there");
    let acknowledged = outage.post(messages(1..50));
    assert_eq!(acknowledged.len(), 49);
    outage.expect(&acknowledged);
    outage.world.write_log("surogate/training_dense.json");
    wait_until("the log has arrived", || {
        let items = outage.endpoint.items_answered(&Answer::Accept);
        items.values("train.loss").len() == 30
    });
    wait_until("the positions are written", || {
        outage.world.path("state/positions.json").exists()
    });
    let second = Outage::begin("", "");
    symlink(outage.world.path("state"), second.world.path("state")).expect("a link can be made");
    let (refused, why) = second.world.spawn().wait_for_end();
    assert_eq!(refused.code(), Some(1), "{why}");
    assert!(why.contains("another pulsetrain uses the state folder"), "{why}");
    let printed = agent.stop_well();
    assert!(
        printed.contains("lost 0 items, because the folder was deleted"),
        "{printed}"
    );
}

#[test]
fn failing_disk_queue_is_reported_by_the_readiness_probe_and_the_status() {
    let outage = Outage::begin("", "");
    outage.endpoint.answer_with(Answer::Accept);
    let agent = outage.world.start();
    wait_until("the agent is ready", || outage.world.is_ready());
    fs::remove_dir_all(outage.folder()).expect("it is there");
    fs::write(outage.folder(), "").expect("it can be written");
    thread::scope(|scope| {
        let posted = scope.spawn(|| post(outage.receiver, "message 0"));
        wait_until("the probe names it", || {
            let readiness = outage.world.readiness();
            readiness.contains("sink o fails") && readiness.contains("a file is in the place of the folder")
        });
        let status = get(outage.world.health(), "/status");
        assert!(status.contains(r#""state":"failing""#), "{status}");
        fs::remove_file(outage.folder()).expect("it can be removed");
        assert_eq!(posted.join().expect("nobody panics here"), Some(200));
    });
    wait_until("the probe names nothing", || {
        !outage.world.readiness().contains("fails")
    });
    agent.stop();
}

#[test]
fn unusable_disk_queue_folder_is_rejected_with_the_fix() {
    let outage = Outage::begin("", "  drain: 100ms\n");
    let agent = outage.world.start();
    let acknowledged = outage.post(messages(0..3));

    // A second agent with the same state, or with another state and the same queue.
    let same_state = Outage::begin("", "");
    symlink(outage.world.path("state"), same_state.world.path("state")).expect("a link can be made");
    let (status, printed) = same_state.world.spawn().wait_for_end();
    assert_eq!(status.code(), Some(1), "{printed}");
    assert!(printed.contains("another"), "{printed}");
    let other = Outage::begin(
        &format!("      disk_queue: {{folder: {}}}\n", outage.folder().display()),
        "",
    );
    let (status, printed) = other.world.spawn().wait_for_end();
    assert_eq!(status.code(), Some(1), "{printed}");
    assert!(printed.contains("in use by another process"), "{printed}");
    drop(agent);

    let newest = segments(&outage.folder()).pop().expect("it has one segment");
    let sound = fs::read(&newest).expect("it is there");
    let mut other = sound.clone();
    other[8] = 9;
    let crc = crc32fast::hash(&other[..12]).to_le_bytes();
    other[12..16].copy_from_slice(&crc);
    fs::write(&newest, &other).expect("it can be written");
    let (status, printed) = outage.world.spawn().wait_for_end();
    assert_eq!(status.code(), Some(1), "{printed}");
    assert!(printed.contains("version 9 of the format"), "{printed}");
    assert_eq!(
        fs::read(&newest).expect("it is there"),
        other,
        "nothing was changed"
    );

    fs::write(&newest, &sound).expect("it can be written");
    let agent: Process = outage.world.start();
    outage.expect(&acknowledged);
    assert!(agent.stop().success());
}
