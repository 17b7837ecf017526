//! Interrupted conversions: an existing output file is not changed.

use std::{
    fs,
    path::{Path, PathBuf},
};

use pulsetrain_tests::{
    Folder, Process, SmallDisk, command, convert, some_or_return, wait_until, with_default_signals,
};

use super::input::one_tree;

const OLD: &str = "the file of before";

#[test]
fn full_temporary_folder_is_reported_in_both_directions() {
    let folder = Folder::new();
    let input = folder.file("in.jsonl", one_tree(3_000, 400));
    let trace = folder.path("in.pftrace");
    convert(&[&input], &trace, &["--attributes", "full"]).expect_code(0);
    let small = Folder::new();
    let disk = some_or_return!(SmallDisk::mount(small.root(), "256k"));
    let temporary = disk.path().to_str().expect("the path is text");
    for (from, to) in [(&input, "out.pftrace"), (&trace, "out.jsonl")] {
        let out = folder.file(to, OLD);
        let finished = convert(
            &[from],
            &out,
            &["--memory", "64KiB", "--temporary-folder", temporary],
        )
        .expect_code(1);
        let stderr = &finished.stderr;
        assert!(
            stderr.contains("No space left") && stderr.contains(temporary),
            "{to}: {stderr}"
        );
        assert_eq!(fs::read_to_string(&out).expect("it is there"), OLD, "{to}");
    }
}

/// Returns the only file in a folder that is being written.
fn partial(folder: &Path) -> Option<PathBuf> {
    let entries = fs::read_dir(folder).expect("the folder can be read");
    let paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
    let mut partial = paths.filter(|path| path.to_string_lossy().ends_with(".partial"));
    partial.next()
}

/// Starts a conversion and stops it while it writes. Returns `false` if the output was complete before the signal arrived.
fn stop_while_writing(input: &Path, out: &Path, folder: &Path, signal: impl FnOnce(&Process)) -> bool {
    let mut convert = command(["convert", "--attributes", "full", "-o"]);
    let mut convert = with_default_signals(convert.args([out, input]));
    let mut convert = Process::start("convert", &mut convert);
    let is_begun = || partial(folder).is_some_and(|path| fs::metadata(path).is_ok_and(|file| file.len() > 0));
    wait_until("the output is being written", || {
        is_begun() || convert.exit_status().is_some()
    });
    signal(&convert);
    let (status, _) = convert.wait_for_end();
    !status.success() && partial(folder).is_some()
}

#[test]
fn killed_or_interrupted_conversion_keeps_the_previous_file() {
    const ATTEMPTS: usize = 100;
    let folder = Folder::new();
    // Writing takes long enough for the signal, also on a busy machine.
    let input = folder.file("in.jsonl", one_tree(20_000, 400));
    for name in ["out.pftrace", "out.pftrace.gz", "out.binpb"] {
        for signal in [Process::send_kill, Process::interrupt] {
            let out = folder.path(name);
            let is_stopped = (0..ATTEMPTS).any(|_| {
                fs::write(&out, OLD).expect("the file can be written");
                stop_while_writing(&input, &out, folder.root(), signal)
            });
            assert!(is_stopped, "{name}: every conversion ended before the signal");
            assert_eq!(fs::read_to_string(&out).expect("it is there"), OLD, "{name}");
            let partial =
                partial(folder.root()).expect("a killed program leaves what it wrote under another name");
            fs::remove_file(partial).expect("it can be removed");
        }
    }
}

#[test]
fn full_disk_or_missing_input_keeps_the_previous_file() {
    let folder = Folder::new();
    let input = folder.file("in.jsonl", one_tree(3_000, 400));
    let small = Folder::new();
    let disk = SmallDisk::mount(small.root(), "256k");
    for name in ["out.pftrace", "out.pftrace.gz", "out.jsonl", "out.binpb"] {
        let out = folder.file(name, OLD);
        let missing = folder.path("no such file");
        convert(&[&input, &missing], &out, &[]).expect_code(1);
        assert_eq!(fs::read_to_string(&out).expect("it is there"), OLD, "{name}");
        assert_eq!(partial(folder.root()), None, "{name}");
        let Some(disk) = &disk else {
            continue;
        };
        let out = disk.path().join(name);
        fs::write(&out, OLD).expect("the disk has room for it");
        let finished = convert(&[&input], &out, &["--attributes", "full"]).expect_code(1);
        assert!(
            finished.stderr.contains("No space left"),
            "{name}: {}",
            finished.stderr
        );
        assert_eq!(fs::read_to_string(&out).expect("it is there"), OLD, "{name}");
        assert_eq!(partial(disk.path()), None, "{name}");
    }
}
