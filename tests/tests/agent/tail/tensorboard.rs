//! A folder of event files: new runs and files are found at any depth.

use std::{
    fs::{self, OpenOptions},
    io::Write,
    path::Path,
};

use pulsetrain_tests::{Items, corpus};

use crate::tail::world::{World, imported};

const FIRST: &str = "kempnerforge/tensorboard/events.out.tfevents.1795219833.vm.31790.0";
const SECOND: &str = "torchspec/tensorboard/events.out.tfevents.1795220486.vm.14720.0";

/// Writes an event file in pieces that end at arbitrary offsets.
fn write(to: &Path, from: &str) {
    fs::create_dir_all(to.parent().expect("it is in a folder")).expect("a folder can be made");
    let bytes = fs::read(corpus(from)).expect("the corpus can be read");
    let mut file = OpenOptions::new()
        .create(true)
        .append(true)
        .open(to)
        .expect("a file can be opened");
    for piece in bytes.chunks(4093) {
        file.write_all(piece).expect("a file can be written");
    }
}

#[test]
fn folder_of_event_files_is_followed_including_new_runs() {
    let world = World::new("runs").with("--poll-interval=0.1");
    let runs = world.path("runs");
    let [first, second, third] = [
        "a/events.out.tfevents.1.host",
        "a/events.out.tfevents.2.host",
        "b/deep/tb/events.out.tfevents.3.host",
    ]
    .map(|name| runs.join(name));
    write(&first, FIRST);
    let follower = world.follow();
    let begun = imported_folder(&runs);
    pulsetrain_tests::wait_until("the first file is delivered", || {
        world.delivered().len() >= begun.len()
    });
    // A restarted trainer writes another file in the same folder; another trainer starts a new folder.
    write(&second, SECOND);
    write(&third, SECOND);
    world.expect_delivered(follower, &imported_folder(&runs));
}

fn imported_folder(runs: &Path) -> Items {
    imported([runs], &[])
}
