//! Exports of Cloud Logging that are followed: they have no end mark, in either order of their entries.

use std::{
    fs::{self, File, OpenOptions},
    io::Write,
    path::PathBuf,
    time::{Duration, SystemTime},
};

use fastrand::Rng;
use pulsetrain_tests::{Items, Progress, corpus, wait_until};

use crate::tail::world::{World, imported};

const KILLS: usize = 12;

/// Lines that do not show whether the oldest entry has arrived.
const NEWEST_FIRST: &str = "newest_first.jsonl";

/// Returns the same entries in each order, as lines and as lists.
fn exports() -> [(&'static str, String); 4] {
    let sample = |name: &str| fs::read_to_string(corpus(name)).expect("the sample can be read");
    let lines = sample("written/goodput_entries.jsonl");
    let oldest_first: Vec<&str> = lines.lines().collect();
    let newest_first: Vec<&str> = lines.lines().rev().collect();
    [
        (NEWEST_FIRST, newest_first.join("\n") + "\n"),
        ("newest_first.json", sample("written/goodput_entries.json")),
        ("oldest_first.json", format!("[{}]\n", oldest_first.join(",\n"))),
        ("oldest_first.jsonl", lines),
    ]
}

/// Exports that are written while they are followed, each in the same number of parts.
struct Growing {
    world: World,
    exports: [(&'static str, String); 4],
    parts: usize,
}

impl Growing {
    fn new(parts: usize) -> Self {
        let world = World::new("logs/*").with("--poll-interval=0.1");
        fs::create_dir(world.path("logs")).expect("a folder can be made");
        Self {
            world,
            exports: exports(),
            parts,
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.world.path("logs").join(name)
    }

    /// Appends a part, which ends at an arbitrary offset.
    fn grow(&self, part: usize) {
        for (name, text) in &self.exports {
            let cut = |part: usize| text.len() * part / self.parts;
            let mut file = OpenOptions::new()
                .create(true)
                .append(true)
                .open(self.path(name))
                .expect("an export can be opened");
            file.write_all(&text.as_bytes()[cut(part)..cut(part + 1)])
                .expect("an export can be written");
        }
    }

    /// Sets an old modification time, as if nobody had written to the lines for long.
    fn fall_silent(&self) {
        let long_ago = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000_000);
        let file = File::options().append(true).open(self.path(NEWEST_FIRST));
        let aged = file.and_then(|file| file.set_modified(long_ago));
        aged.expect("the time of an export can be set");
    }

    /// Returns the items of an import of the complete exports.
    fn complete(&self) -> Items {
        let paths = self.exports.each_ref().map(|(name, _)| self.path(name));
        let expected = imported(paths.iter().map(PathBuf::as_path), &[]);
        assert!(expected.of_kind("span").len() > 80);
        expected
    }
}

#[test]
fn followed_goodput_export_is_complete_in_either_entry_order() {
    let growing = Growing::new(3);
    growing.grow(0);
    let follower = growing.world.follow();
    for part in 1..growing.parts {
        let before = growing.world.delivered().len();
        growing.grow(part);
        wait_until("the new part is read", || {
            growing.world.delivered().len() > before
        });
    }
    growing.fall_silent();
    growing.world.expect_delivered(follower, &growing.complete());
}

#[test]
fn goodput_export_is_emitted_once_in_either_order_despite_kills() {
    let growing = Growing::new(KILLS + 1);
    let world = &growing.world;
    let mut random = Rng::with_seed(20_261_121);
    for kill in 0..KILLS {
        let before = Progress::new(world.out(), world.positions());
        growing.grow(kill);
        let follower = world.follow();
        before.wait_for_kill_time(&follower, &mut random);
        drop(follower);
    }
    growing.grow(KILLS);
    growing.fall_silent();
    world.expect_delivered(world.follow(), &growing.complete());
}

/// Returns the list of an export with the first `count` entries.
fn list(lines: &[&str], newest_first: bool) -> String {
    let mut lines = lines.to_vec();
    if newest_first {
        lines.reverse();
    }
    format!("[\n{}\n]\n", lines.join(",\n"))
}

#[test]
fn reexported_goodput_list_emits_only_new_entries_even_after_a_kill() {
    let lines = fs::read_to_string(corpus("written/goodput_entries.jsonl")).expect("the sample can be read");
    let lines: Vec<&str> = lines.lines().collect();
    let mut random = Rng::with_seed(20_261_122);
    for newest_first in [true, false] {
        let world = World::new("goodput.json").with("--poll-interval=0.1");
        let path = world.path("goodput.json");
        for count in (5..lines.len()).step_by(5) {
            let before = Progress::new(world.out(), world.positions());
            let exported = list(&lines[..count], newest_first);
            // In some iterations there is no follower during the write, and in some a new follower finds a partial file.
            let follower = random.bool().then(|| world.follow());
            let torn = random.usize(..exported.len());
            fs::write(&path, &exported[..torn]).expect("an export can be written");
            let follower = follower.unwrap_or_else(|| world.follow());
            fs::write(&path, &exported).expect("an export can be written");
            before.wait_for_kill_time(&follower, &mut random);
            drop(follower);
        }
        fs::write(&path, list(&lines, newest_first)).expect("an export can be written");
        let expected = imported([path.as_path()], &[]);
        assert!(expected.of_kind("span").len() > 20);
        world.expect_delivered(world.follow(), &expected);
    }
}
