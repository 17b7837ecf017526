//! The environment, the output and the exit code of a trainer.

use std::{
    io::{BufReader, Write},
    os::unix::process::ExitStatusExt,
    process::{Command, Output, Stdio},
};

use pulsetrain_tests::{Folder, command, corpus};

use crate::run::world::{line, run, sent};

/// Bytes that are not valid text, colours, a progress bar without a line end, and both streams.
const ODD_TRAINER: &str = r"printf 'a\377\r10%%\r20%%\033[1mb'; printf 'warning\n\376' >&2; exit 7";

#[test]
fn output_and_exit_code_are_those_of_the_trainer() {
    let (bare, run) = bare_and_run(ODD_TRAINER);
    assert_eq!((run.status.code(), bare.status.code()), (Some(7), Some(7)));
    assert_eq!((run.stdout, run.stderr), (bare.stdout, bare.stderr));
}

#[test]
fn unparsable_output_is_reported_after_the_output_of_the_trainer() {
    let (bare, run) = bare_and_run(r"printf 'a\000\n'; printf 'warning' >&2");
    assert_eq!(run.stdout, bare.stdout);
    let ours = run.stderr.strip_prefix(&bare.stderr[..]);
    let ours = String::from_utf8_lossy(ours.unwrap());
    assert!(ours.contains("1 zero bytes in a text file"), "{ours}");
}

fn bare_and_run(script: &str) -> (Output, Output) {
    let folder = Folder::new();
    let bare = Command::new("sh").args(["-c", script]).output();
    let run = run(&folder, "sh", &["-c", script]).arg_of_ours("--format=maxtext");
    (bare.expect("there is a shell"), run.output())
}

#[test]
fn heavy_output_is_passed_through_completely() {
    let folder = Folder::new();
    let script = "i=0; while [ $i -lt 40 ]; do head -c 1000000 /dev/zero; i=$((i+1)); done";
    let run = run(&folder, "sh", &["-c", script]).output();
    assert_eq!(run.status.code(), Some(0));
    assert_eq!(run.stdout.len(), 40_000_000);
    assert!(run.stdout.iter().all(|byte| *byte == 0));
}

#[test]
fn the_signal_that_ends_a_trainer_is_in_the_exit_code() {
    let run = run(&Folder::new(), "sh", &["-c", "kill -TERM $$"]).output();
    assert_eq!((run.status.code(), run.status.signal()), (Some(128 + 15), None));
}

#[test]
fn unstartable_trainer_has_the_exit_code_of_a_shell() {
    let folder = Folder::new();
    assert_eq!(
        run(&folder, "no-such-trainer", &[]).output().status.code(),
        Some(127)
    );
    assert_eq!(run(&folder, "/etc/passwd", &[]).output().status.code(), Some(126));
}

#[test]
fn trainer_gets_sigpipe_when_its_reader_is_gone() {
    let folder = Folder::new();
    let mut child = run(&folder, "yes", &[]).spawn();
    let mut out = BufReader::new(child.stdout.take().unwrap());
    assert_eq!(line(&mut out), "y\n");
    drop(out);
    assert_eq!(child.wait().unwrap().code(), Some(128 + 13));
}

#[test]
fn stdin_is_passed_to_the_trainer() {
    let folder = Folder::new();
    let mut run = run(
        &folder,
        "sh",
        &["-c", "read line; echo got $line; read more || echo end"],
    );
    run.ours.stdin(Stdio::piped());
    let mut child = run.spawn();
    child.stdin.take().unwrap().write_all(b"a line\n").unwrap();
    assert_eq!(child.wait_with_output().unwrap().stdout, b"got a line\nend\n");
    // If it is closed for us, it is closed for the trainer.
    let ours = command([]);
    let mut shell = Command::new("sh");
    shell
        .args(["-c", "exec \"$@\" <&-", "sh"])
        .arg(ours.get_program());
    shell.args(["run", "--no-gpu", "--to"]).arg(sent(&folder));
    let output = shell
        .args(["--", "sh", "-c", "echo out; exit 3"])
        .output()
        .unwrap();
    assert_eq!(
        (output.status.code(), output.stdout.as_slice()),
        (Some(3), &b"out\n"[..])
    );
}

#[test]
fn successful_run_prints_nothing_without_summary_flag() {
    let folder = Folder::new();
    let log = corpus("maxtext/demo.stderr");
    let quiet = run(&folder, "cat", &[log.to_str().unwrap()]).output();
    assert_eq!(String::from_utf8_lossy(&quiet.stderr), "");
    let asked = run(&folder, "cat", &[log.to_str().unwrap()])
        .arg_of_ours("--summary")
        .output();
    assert!(String::from_utf8_lossy(&asked.stderr).contains("delivered"));
}
