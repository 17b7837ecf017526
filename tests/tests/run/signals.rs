//! Signals reach the trainer.

use std::{io::BufReader, process::Command};

use nix::sys::signal::{Signal, kill};
use pulsetrain_tests::command;

use crate::world::{folder, line, pid, run, sent};

#[test]
fn signals_are_passed_on_to_the_trainer() {
    let folder = folder();
    for (signal, name) in [
        (Signal::SIGUSR1, "USR1"),
        (Signal::SIGTERM, "TERM"),
        (Signal::SIGINT, "INT"),
        (Signal::SIGHUP, "HUP"),
        (Signal::SIGQUIT, "QUIT"),
        (Signal::SIGUSR2, "USR2"),
    ] {
        let script =
            format!("trap 'echo got {name}; exit 9' {name}; echo ready; while :; do sleep 0.05; done");
        let mut child = run(&folder, "sh", &["-c", &script]).spawn();
        let mut out = BufReader::new(child.stdout.take().unwrap());
        assert_eq!(line(&mut out), "ready\n");
        kill(pid(&child), signal).unwrap();
        assert_eq!(line(&mut out), format!("got {name}\n"));
        assert_eq!(child.wait().unwrap().code(), Some(9));
    }
}

#[test]
fn a_trainer_that_is_to_outlive_its_terminal_does() {
    let folder = folder();
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
