//! Every format of the table, followed while it is written in pieces, through a kill and a rotation.
//!
//! A new format is included through the table; it needs a sample in the corpus.

use std::{
    collections::BTreeMap,
    fs::{self, OpenOptions},
    io::Write,
    path::{Path, PathBuf},
};

use pulsetrain_formats::{FORMATS, LogFormat, detect, format_by_name};
use pulsetrain_tests::{corpus, wait_until};

use crate::tail::{
    values::{assert_same_values, values},
    world::{World, imported, imported_so_far},
};

/// Formats that are not detected automatically, each with a log of the corpus.
const NAMED: [(&str, &str); 2] = [("json", "written/any.jsonl"), ("keyvalue", "written/any.log")];

/// Formats whose records need rules; `generic`, which includes its rules, is followed with all others.
const BY_RULES: [&str; 2] = ["text", "csv"];

/// Formats whose files are rewritten completely instead of appended to: `tunix` and `trainer_state` test them with rewrites,
/// truncation and kills.
const REWRITTEN_FORMATS: [&str; 2] = ["tunix-trace-v2", "hf-trainer-state"];

/// A log that grows.
struct Growing {
    format: &'static LogFormat,
    /// The finished log.
    original: PathBuf,
    /// The parts in the order of writing: before the kill, without a follower, and after it.
    parts: [Vec<u8>; 3],
}

impl Growing {
    fn new(format: &'static LogFormat, original: PathBuf) -> Self {
        let bytes = fs::read(&original).expect("the corpus can be read");
        // The first part ends anywhere, usually within a line or a record, but not before the run is identified.
        let ends = (bytes.len() * 2 / 5..bytes.len()).step_by(509);
        let reported = ends.map(|end| bytes.split_at(end));
        let (first, rest) = reported
            .into_iter()
            .find(|(head, _)| !(format.identify)(head).is_partial)
            .expect("a part of the log has the run");
        // The second part ends with a line if the format has lines, because logs are rotated there.
        let middle = rest.len() / 2;
        let line_end = rest[middle..].iter().position(|byte| *byte == b'\n');
        let (second, third) = rest.split_at(middle + line_end.map_or(0, |at| at + 1));
        Self {
            format,
            original,
            parts: [first, second, third].map(<[u8]>::to_vec),
        }
    }

    /// Returns the path of the log: a folder of its own in the world.
    fn path(&self, world: &World) -> PathBuf {
        let name = self
            .original
            .file_name()
            .expect("a log has a name")
            .to_os_string();
        world.path(&format!("logs/{}", self.format.name)).join(name)
    }

    /// Appends a part in pieces that end at arbitrary offsets.
    fn grow(&self, world: &World, part: usize) {
        let path = self.path(world);
        fs::create_dir_all(path.parent().expect("it is in a folder")).expect("a folder can be made");
        let mut log = OpenOptions::new()
            .create(true)
            .append(true)
            .open(path)
            .expect("a log can be opened");
        for piece in self.parts[part].chunks(1021) {
            log.write_all(piece).expect("a log can be written");
        }
    }

    /// Renames the log if its run continues in a new file.
    fn rotate(&self, world: &World) {
        if self.format.continues_after_truncate {
            let path = self.path(world);
            let mut rotated = path.clone().into_os_string();
            rotated.push(".1");
            fs::rename(path, rotated).expect("a log can be renamed");
        }
    }
}

/// Follows all logs at once and compares the result with imports of the finished logs. Returns the number of exemplars in both.
fn expect_all(world: &World, logs: &[Growing], arguments: &[&str]) -> usize {
    let finished: Vec<&Path> = logs.iter().map(|log| log.original.as_path()).collect();
    let expected = imported(finished, arguments);
    let follower = world.follow();
    logs.iter().for_each(|log| log.grow(world, 0));
    wait_until("the beginnings are delivered", || {
        world.delivered().len() > expected.len() / 4
    });
    drop(follower);
    logs.iter().for_each(|log| log.grow(world, 1));
    let rotated = expected_of_rotated(logs, world, arguments);
    let follower = world.follow();
    wait_until("what will be rotated is delivered", || {
        let delivered = values(&world.delivered());
        rotated.keys().all(|value| delivered.contains_key(value))
    });
    logs.iter().for_each(|log| log.rotate(world));
    logs.iter().for_each(|log| log.grow(world, 2));
    let all = values(&expected).values().sum::<usize>();
    wait_until("everything is delivered", || {
        values(&world.delivered()).values().sum::<usize>() >= all
    });
    let status = follower.stop();
    assert!(status.success(), "{status}");
    assert_same_values(&world.delivered(), &expected)
}

/// Returns the current values of the logs that will be rotated.
fn expected_of_rotated(logs: &[Growing], world: &World, arguments: &[&str]) -> BTreeMap<String, usize> {
    let written: Vec<PathBuf> = logs
        .iter()
        .filter(|log| log.format.continues_after_truncate)
        .map(|log| log.path(world))
        .collect();
    values(&imported_so_far(written.iter().map(PathBuf::as_path), arguments))
}

/// Returns the first file of the corpus in a format.
fn sample_of(format: &LogFormat) -> PathBuf {
    let mut folders = vec![corpus("")];
    let mut found = Vec::new();
    while let Some(path) = folders.pop() {
        if path.is_dir() {
            let entries = fs::read_dir(&path).expect("a folder can be listed");
            folders.extend(entries.map(|entry| entry.expect("an entry can be read").path()));
            continue;
        }
        let bytes = fs::read(&path).expect("the corpus can be read");
        let head = &bytes[..bytes.len().min(64 << 10)];
        if detect("", head).is_ok_and(|(found, _)| found.name == format.name) {
            found.push(path);
        }
    }
    let first = found.into_iter().min();
    first.unwrap_or_else(|| panic!("{} needs a sample in the corpus", format.name))
}

#[test]
fn every_format_is_followed_through_torn_writes_a_kill_and_a_rotation() {
    let logs: Vec<Growing> = FORMATS
        .iter()
        .filter(|format| !format.takes_mapping() && !REWRITTEN_FORMATS.contains(&format.name))
        .map(|format| Growing::new(format, sample_of(format)))
        .collect();
    assert!(logs.len() >= 15, "only {} formats", logs.len());
    let world = World::new("logs/*/*").with("--poll-interval=0.1");
    let exemplars = expect_all(&world, &logs, &[]);
    assert!(exemplars > 50, "{exemplars} points lead to a span");
}

#[test]
fn formats_with_a_mapping_are_followed_like_built_in_ones() {
    let mapped: Vec<&str> = FORMATS
        .iter()
        .filter(|format| format.takes_mapping() && !BY_RULES.contains(&format.name))
        .map(|format| format.name)
        .collect();
    assert_eq!(mapped, NAMED.map(|(name, _)| name));
    for (name, log) in NAMED {
        let format = format_by_name(name).expect("it is in the table");
        let argument = format!("--format={name}");
        let world = World::new("logs/*/*").with("--poll-interval=0.1").with(&argument);
        expect_all(&world, &[Growing::new(format, corpus(log))], &[&argument]);
    }
}
