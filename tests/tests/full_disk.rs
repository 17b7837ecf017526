//! An output that takes no more: what is lost is counted and told, and what is written stays readable.

use std::{
    fs,
    io::{self, Write},
    os::unix::fs::symlink,
    process::Command,
};

use pulsetrain_tests::{Finished, Import, Items, corpus};

#[test]
fn a_full_disk_is_told_and_counted() {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let full = folder.path().join("full.jsonl");
    symlink("/dev/full", &full).expect("a link can be made");
    let finished = Import::of(corpus("surogate/training_dense.json"))
        .to(&full)
        .run()
        .expect_code(1);
    assert!(finished.total("dropped") > 0, "{}", finished.stderr);
    finished.expect_words(&["full.jsonl", "No space left"]);
}

#[test]
fn standard_output_on_a_full_disk_is_told() {
    let mut command = Import::of(corpus("surogate/training_dense.json"))
        .to("-")
        .into_command();
    let full = fs::OpenOptions::new()
        .write(true)
        .open("/dev/full")
        .expect("/dev/full can be opened");
    let output = command.stdout(full).output().expect("pulsetrain can be started");
    Finished::new(output)
        .expect_code(1)
        .expect_words(&["No space left"]);
}

/// A disk with room for the spans and events but not for the points: the torn record is taken back.
#[test]
fn a_file_on_a_small_disk_stays_readable() {
    if !may_mount() {
        writeln!(
            io::stderr(),
            "SKIPPED: right to mount not found (unshare --map-root-user --mount)"
        )
        .expect("standard error can be written");
        return;
    }
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let disk = folder.path().join("disk");
    fs::create_dir(&disk).expect("a folder can be made");
    let import = Import::of(corpus("surogate/training_dense.json"))
        .to(disk.join("out.jsonl"))
        .into_command();
    // The disk is gone with the process that mounted it, so what is on it is copied beside it.
    let script = r#"disk=$1; shift; mount -t tmpfs -o size=40k none "$disk"; "$@"; code=$?; cp "$disk/out.jsonl" "$disk/.."; exit $code"#;
    let output = unshared()
        .args(["sh", "-c", script, "sh"])
        .arg(&disk)
        .arg(import.get_program())
        .args(import.get_args())
        .output()
        .expect("unshare can be started");
    let finished = Finished::new(output).expect_code(1);
    finished.expect_words(&["No space left", "make room"]);
    let written = Items::read(&folder.path().join("out.jsonl"));
    assert!(!written.is_empty());
    assert_eq!(finished.summary()["delivered"], written.len());
    assert!(finished.total("dropped") > 0, "{}", finished.stderr);
}

fn may_mount() -> bool {
    let mounted = unshared().args(["mount", "-t", "tmpfs", "none", "/mnt"]).output();
    mounted.is_ok_and(|output| output.status.success())
}

/// A command in a mount namespace of its own.
fn unshared() -> Command {
    let mut command = Command::new("unshare");
    command.args(["--map-root-user", "--mount"]);
    command
}
