//! A `pulsetrain run` with a file as its target, and helpers for the communication with the trainer.

use std::{
    io::BufRead,
    path::PathBuf,
    process::{Child, Command, Output, Stdio},
};

use nix::unistd::Pid;
use pulsetrain_tests::{Folder, command, with_default_signals};

/// A `pulsetrain run` with a file as its target.
pub(crate) struct Run {
    pub(crate) ours: Command,
    trainer: Vec<String>,
}

pub(crate) fn run(folder: &Folder, program: &str, arguments: &[&str]) -> Run {
    let mut ours = with_default_signals(&command(["run", "--to"]));
    ours.arg(sent(folder))
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let trainer = [program]
        .iter()
        .chain(arguments)
        .map(|argument| (*argument).to_owned())
        .collect();
    Run { ours, trainer }
}

impl Run {
    pub(crate) fn arg_of_ours(mut self, argument: &str) -> Self {
        self.ours.arg(argument);
        self
    }

    pub(crate) fn env(mut self, name: &str, value: &str) -> Self {
        self.ours.env(name, value);
        self
    }

    pub(crate) fn spawn(mut self) -> Child {
        self.ours
            .arg("--")
            .args(self.trainer)
            .spawn()
            .expect("pulsetrain can be started")
    }

    pub(crate) fn output(self) -> Output {
        self.spawn()
            .wait_with_output()
            .expect("a child can be waited for")
    }
}

pub(crate) fn line(out: &mut impl BufRead) -> String {
    let mut line = String::new();
    out.read_line(&mut line).expect("the output is text");
    line
}

pub(crate) fn pid(child: &Child) -> Pid {
    Pid::from_raw(
        child
            .id()
            .try_into()
            .expect("invariant: Linux pids fit in an i32"),
    )
}

pub(crate) fn sent(folder: &Folder) -> PathBuf {
    folder.path("sent.jsonl")
}
