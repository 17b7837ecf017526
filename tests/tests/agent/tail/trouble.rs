//! Temporary obstacles for a follower: revoked permissions, and files that it cannot read as text.

use std::{
    fs::{self, Permissions},
    os::unix::fs::PermissionsExt,
    path::Path,
};

use pulsetrain_tests::{Process, SurogateWriter, as_unprivileged, corpus, surogate_records, wait_until};

use crate::tail::world::{World, imported};

#[test]
fn temporarily_unreadable_log_and_folder_are_reported_and_followed_again() {
    let world = World::new("logs/training.json").with("--poll-interval=0.1");
    allow(&world.path(""), 0o777);
    let (folder, log) = (world.path("logs"), world.path("logs/training.json"));
    fs::create_dir(&folder).expect("a folder can be made");
    let records = surogate_records(&corpus("surogate/training_dense.json"));
    let (first, rest) = records.split_at(records.len() / 2);
    let mut writer = SurogateWriter::create(&log);
    first.iter().for_each(|record| writer.append(record));

    allow(&log, 0o000);
    let mut command = as_unprivileged(&world.follow_command(), &world.path(""));
    let follower = Process::start("pulsetrain", &mut command);
    wait_until("the log is reported", || reported(&follower) == 1);
    assert!(world.delivered().is_empty());
    allow(&log, 0o644);
    let half = imported([log.as_path()], &[]).len();
    wait_until("the log is read", || world.delivered().len() >= half);

    allow(&folder, 0o000);
    wait_until("the folder is reported", || reported(&follower) == 2);
    rest.iter().for_each(|record| writer.append(record));
    allow(&folder, 0o755);
    let expected = imported([log.as_path()], &[]);
    wait_until("the rest is read", || world.delivered().len() >= expected.len());

    // A follower that starts without read permission continues at the position of the last one.
    follower.stop();
    allow(&log, 0o000);
    let follower = Process::start("pulsetrain", &mut command);
    wait_until("it is reported again", || reported(&follower) == 1);
    allow(&log, 0o644);
    wait_until("it continues", || follower.log().contains("from byte"));
    world.expect_delivered(follower, &expected);
}

#[test]
fn followed_compressed_or_utf_16_log_is_reported_and_utf_8_bom_is_accepted() {
    let world = World::new("logs").with("--poll-interval=0.1");
    let text = fs::read_to_string(corpus("written/maxtext.log")).expect("the corpus can be read");
    let units = std::iter::once(0xfeff).chain(text.encode_utf16());
    let wide: Vec<u8> = units.flat_map(u16::to_le_bytes).collect();
    let marked = format!("\u{feff}{text}");
    let logs: [(&str, &[u8]); 3] = [
        ("logs/packed.log", b"\x1f\x8b\x08\x00\x00\x00\x00\x00"),
        ("logs/wide.log", &wide),
        ("logs/marked.log", marked.as_bytes()),
    ];
    fs::create_dir(world.path("logs")).expect("a folder can be made");
    for (name, bytes) in logs {
        fs::write(world.path(name), bytes).expect("a log can be written");
    }
    let follower = world.follow();
    for reported in [
        "packed.log: the file is compressed",
        "wide.log: the text is UTF-16",
    ] {
        wait_until(reported, || follower.log().contains(reported));
    }
    world.expect_delivered(
        follower,
        &imported([world.path("logs/marked.log").as_path()], &[]),
    );
}

/// Returns the number of reports of a missing permission in the log.
fn reported(follower: &Process) -> usize {
    follower.log().matches("Permission denied").count()
}

fn allow(path: &Path, mode: u32) {
    fs::set_permissions(path, Permissions::from_mode(mode)).expect("the file is ours");
}
