//! Signals are forwarded to the trainer.

use std::{
    fs,
    io::BufReader,
    os::unix::process::CommandExt,
    process::{Command, Stdio},
};

use nix::sys::signal::{Signal, kill};
use pulsetrain_tests::{Folder, command, wait_until};

use crate::run::world::{line, pid, run, sent};

#[test]
fn signals_are_forwarded_to_the_trainer() {
    let folder = Folder::new();
    for (signal, name) in [
        (Signal::SIGUSR1, "USR1"),
        (Signal::SIGTERM, "TERM"),
        (Signal::SIGINT, "INT"),
        (Signal::SIGHUP, "HUP"),
        (Signal::SIGQUIT, "QUIT"),
        (Signal::SIGUSR2, "USR2"),
    ] {
        // A trainer that gets no signal exits after a minute, which ends the wait for its output.
        let script = format!(
            "trap 'echo got {name}; exit 9' {name}; echo ready; for i in $(seq 1200); do sleep 0.05; done"
        );
        let mut child = run(&folder, "sh", &["-c", &script]).spawn();
        let mut out = BufReader::new(child.stdout.take().unwrap());
        assert_eq!(line(&mut out), "ready\n");
        kill(pid(&child), signal).unwrap();
        assert_eq!(line(&mut out), format!("got {name}\n"));
        assert_eq!(child.wait().unwrap().code(), Some(9));
    }
}

/// With pipes the trainer is in our process group, which a shell suspends; other senders signal only our process.
#[test]
fn suspending_run_suspends_the_trainer_until_it_is_continued() {
    let folder = Folder::new();
    let mut run = run(&folder, "sh", &["-c", "echo $$; while :; do :; done"]);
    run.ours.process_group(0).stdin(Stdio::null());
    let mut child = run.spawn();
    let mut out = BufReader::new(child.stdout.take().unwrap());
    let trainer: i32 = line(&mut out).trim().parse().unwrap();
    let ours = pid(&child);
    for _ in 0..2 {
        kill(ours, Signal::SIGTSTP).unwrap();
        wait_until("both are stopped", || {
            [trainer, ours.as_raw()].into_iter().all(is_stopped)
        });
        kill(ours, Signal::SIGCONT).unwrap();
        wait_until("both are awake", || {
            ![trainer, ours.as_raw()].into_iter().any(is_stopped)
        });
    }
    kill(ours, Signal::SIGTERM).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(128 + 15));
}

/// Returns whether Linux reports a process as stopped by a signal.
fn is_stopped(process: i32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).expect("the process is there");
    let state = stat.rsplit(") ").next();
    state.is_some_and(|state| state.starts_with('T'))
}

#[test]
fn trainer_that_inherits_an_ignored_sighup_survives_it() {
    let folder = Folder::new();
    let run = command(["run", "--to"]);
    let mut shell = Command::new("sh");
    shell
        .args(["-c", "trap '' HUP; exec \"$@\"", "sh"])
        .arg(run.get_program())
        .args(["run", "--to"]);
    shell
        .arg(sent(&folder))
        .args(["--", "sh", "-c", "kill -HUP $$; echo alive"]);
    assert_eq!(shell.output().unwrap().stdout, b"alive\n");
}
