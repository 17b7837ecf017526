//! An output on a full disk: losses are counted and reported, and the file stays readable.

use std::{fs, os::unix::fs::symlink};

use pulsetrain_tests::{Finished, Folder, Import, Items, SmallDisk, corpus, some_or_return};

#[test]
fn a_full_disk_is_reported_and_counted() {
    let folder = Folder::new();
    let full = folder.path("full.jsonl");
    symlink("/dev/full", &full).expect("a link can be made");
    let finished = Import::new(corpus("surogate/training_dense.json"))
        .arg("--give-up-after=1")
        .to(&full)
        .run()
        .expect_code(1);
    assert!(finished.total("dropped") > 0, "{}", finished.stderr);
    finished.expect_words(&["full.jsonl", "No space left"]);
}

#[test]
fn standard_output_on_a_full_disk_is_reported() {
    let mut command = Import::new(corpus("surogate/training_dense.json"))
        .arg("--give-up-after=1")
        .to("-")
        .into_command();
    let full = fs::OpenOptions::new()
        .write(true)
        .open("/dev/full")
        .expect("/dev/full can be opened");
    Finished::run(command.stdout(full))
        .expect_code(1)
        .expect_words(&["No space left"]);
}

/// The disk has room for the points but not for the spans: the torn record is removed.
#[test]
fn a_file_on_a_small_disk_stays_readable() {
    let folder = Folder::new();
    let disk = some_or_return!(SmallDisk::mount(folder.root(), "92k"));
    let out = disk.path().join("out.jsonl");
    let finished = Import::new(corpus("surogate/training_dense.json"))
        .arg("--give-up-after=1")
        .to(&out)
        .run()
        .expect_code(1);
    finished.expect_words(&["No space left", "make room"]);
    let written = Items::read(&out);
    assert!(!written.is_empty());
    assert_eq!(finished.summary()["delivered"], written.len());
    assert!(finished.total("dropped") > 0, "{}", finished.stderr);
}
