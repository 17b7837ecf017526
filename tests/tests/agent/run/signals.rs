//! Signals are forwarded to the trainer.

use std::{
    fs,
    io::BufReader,
    os::unix::process::CommandExt,
    process::{Command, Stdio},
};

use nix::sys::signal::{Signal, kill, killpg};
use pulsetrain_tests::{Folder, command, wait_until, with_default_signals};

use crate::run::{
    processes::Processes,
    world::{line, pid, run, sent},
};

/// Counts the signals of one kind, and needs a moment for the first one, as a trainer that saves a checkpoint.
fn counter(name: &str) -> String {
    format!(
        "n=0; trap 'n=$((n+1)); sleep 0.2; sleep 0.2' {name}; echo ready; \
         for i in $(seq 1200); do [ $n -gt 0 ] && break; sleep 0.05; done; sleep 0.2; echo $n times; exit 9"
    )
}

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

/// A way to send a signal to a trainer under `run`.
type Sender = fn(&Processes, Signal);

#[test]
fn each_signal_reaches_the_trainer_once() {
    let group = |processes: &Processes, signal| killpg(processes.keeper, signal).unwrap();
    let to_all = |processes: &Processes, signal| {
        for process in processes.all() {
            kill(process, signal).unwrap();
        }
    };
    let keeper = |processes: &Processes, signal| kill(processes.keeper, signal).unwrap();
    let trainer = |processes: &Processes, signal| kill(processes.trainer, signal).unwrap();
    let senders: [(&str, Sender); 4] = [
        ("to the group", group),
        ("to every process", to_all),
        ("to run", keeper),
        ("to the trainer", trainer),
    ];
    for (signal, name) in [
        (Signal::SIGTERM, "TERM"),
        (Signal::SIGINT, "INT"),
        (Signal::SIGUSR2, "USR2"),
    ] {
        for (reach, send) in senders {
            let folder = Folder::new();
            let mut run = run(&folder, "sh", &["-c", &counter(name)]).arg_of_ours("--no-gpu");
            run.ours.process_group(0);
            let mut child = run.spawn();
            let mut out = BufReader::new(child.stdout.take().unwrap());
            assert_eq!(line(&mut out), "ready\n");
            send(&Processes::started_by(pid(&child)), signal);
            assert_eq!(line(&mut out), "1 times\n", "{name} {reach}");
            assert_eq!(child.wait().unwrap().code(), Some(9), "{name} {reach}");
        }
    }
}

/// `timeout` signals its child, and then the group of both.
#[test]
fn signal_of_timeout_reaches_the_trainer_once() {
    for (signal, name) in [(Signal::SIGTERM, "TERM"), (Signal::SIGINT, "INT")] {
        let folder = Folder::new();
        let ours = with_default_signals(&command(["run", "--no-gpu", "--to"]));
        let mut timeout = Command::new("timeout");
        timeout
            .args(["-s", name, "600"])
            .arg(ours.get_program())
            .args(ours.get_args());
        timeout
            .arg(sent(&folder))
            .args(["--", "sh", "-c", &counter(name)]);
        timeout.stdin(Stdio::null()).stdout(Stdio::piped());
        let mut child = timeout.spawn().unwrap();
        let mut out = BufReader::new(child.stdout.take().unwrap());
        assert_eq!(line(&mut out), "ready\n");
        // It forwards the signal in the way in which it sends its own.
        kill(pid(&child), signal).unwrap();
        assert_eq!(line(&mut out), "1 times\n", "{name}");
        child.wait().unwrap();
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
