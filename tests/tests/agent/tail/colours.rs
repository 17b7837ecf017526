//! Colours, progress bars and multi-byte characters that are split by writes: the result equals that of the finished file.

use std::{
    fs::{self, OpenOptions},
    io::Write,
    path::PathBuf,
};

use pulsetrain_tests::{Folder, corpus, wait_until, wait_until_begun};

use crate::tail::{
    values::{assert_same_values, values},
    world::{World, imported},
};

/// Returns logs with colours, with progress bars between carriage returns, and with both; each in another format.
fn logs() -> [(&'static str, Vec<u8>); 5] {
    let read = |name: &str| fs::read(corpus(name)).expect("the corpus can be read");
    let coloured = |name: &str| {
        let text = String::from_utf8(read(name)).expect("the log is text");
        // As `rich` writes to a terminal: a colour around each word of the step, and a progress bar before the line.
        text.replace("loss=", "\x1b[36mloss\x1b[0m=")
            .replace("[step ", "\x1b[1m[step ")
            .replace("\n", "\x1b[0m\r\n")
            .into_bytes()
    };
    [
        ("kempnerforge.log", coloured("kempnerforge/dense.stdout")),
        ("torchspec.log", read("torchspec/perf.stderr")),
        ("console.log", read("surogate/console_verbose.log")),
        ("titan.log", read("written/torchtitan.log")),
        ("maxtext.log", coloured("maxtext/demo.stderr")),
    ]
}

/// Returns the offsets within escape sequences, between the bytes of a character, and around carriage returns.
fn awkward_places(bytes: &[u8]) -> Vec<usize> {
    let is_awkward = |at: &usize| {
        let (before, next) = (bytes[at - 1], bytes[*at]);
        let in_sequence = bytes[at.saturating_sub(3)..*at].contains(&0x1b);
        in_sequence || before == b'\r' || next == b'\r' || (0x80..0xc0).contains(&next)
    };
    (1..bytes.len()).filter(is_awkward).collect()
}

#[test]
fn logs_torn_in_escape_sequences_bars_and_characters_give_the_same_items() {
    let world = World::new("*.log").with("--poll-interval=0.1");
    let finished = Folder::new();
    let logs = logs();
    let write = |(name, bytes): &(&str, Vec<u8>)| finished.file(name, bytes);
    let complete: Vec<PathBuf> = logs.iter().map(write).collect();
    let expected = imported(complete.iter().map(PathBuf::as_path), &[]);
    let all = values(&expected).values().sum::<usize>();
    let follower = world.follow();
    for (name, bytes) in &logs {
        let places = awkward_places(bytes);
        assert!(places.len() > 10, "{name} has {} awkward places", places.len());
        let open = OpenOptions::new()
            .create(true)
            .append(true)
            .open(world.path(name));
        let mut log = open.expect("a log can be opened");
        let mut from = 0;
        for place in places.iter().copied().chain([bytes.len()]) {
            log.write_all(&bytes[from..place]).expect("a log can be written");
            from = place;
            std::thread::yield_now();
        }
    }
    wait_until("everything is delivered", || {
        values(&world.delivered()).values().sum::<usize>() >= all
    });
    assert!(follower.stop().success());
    assert_same_values(&world.delivered(), &expected);
}

/// Every follower except the last is killed where the log is split, and the next one reads the rest.
#[test]
fn kills_within_escapes_bars_and_characters_neither_lose_nor_duplicate_items() {
    for (name, bytes) in logs() {
        let world = World::new(name).with("--poll-interval=0.1");
        let finished = Folder::new();
        let complete = finished.file(name, &bytes);
        let expected = imported([complete.as_path()], &[]);
        let places = awkward_places(&bytes);
        let chosen = [1, 3, 5, 7].map(|eighth| places[places.len() * eighth / 8]);
        for place in chosen {
            fs::write(world.path(name), &bytes[..place]).expect("a log can be written");
            let follower = world.follow();
            wait_until_begun(&follower);
            drop(follower);
        }
        fs::write(world.path(name), &bytes).expect("a log can be written");
        let all = values(&expected).values().sum::<usize>();
        let follower = world.follow();
        wait_until("everything is delivered", || {
            values(&world.delivered()).values().sum::<usize>() >= all
        });
        assert!(follower.stop().success());
        assert_same_values(&world.delivered(), &expected);
    }
}
