//! A server process: started, waited for, stopped by its pid, with its output kept for failures.

use std::{
    fs::{self, File},
    io::{self, Write},
    path::PathBuf,
    process::{Child, Command, ExitStatus, Stdio},
    thread,
};

use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};
use tempfile::TempDir;

use crate::wait_until;

/// A running child. It is killed when it is dropped; its output is shown if the test fails.
#[derive(Debug)]
pub struct Process {
    name: String,
    child: Child,
    folder: TempDir,
}

impl Process {
    /// Starts `command` with its output in a log file.
    pub fn start(name: &str, command: &mut Command) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder can be made");
        let log = File::create(folder.path().join("log")).expect("a log file can be made");
        let errors = log.try_clone().expect("a file handle can be duplicated");
        let child = command
            .stdin(Stdio::null())
            .stdout(log)
            .stderr(errors)
            .spawn()
            .unwrap_or_else(|error| panic!("{name} does not start: {error}"));
        Self {
            name: name.to_owned(),
            child,
            folder,
        }
    }

    /// Returns its process id.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Returns its current memory (`VmRSS`).
    pub fn memory_kib(&self) -> u64 {
        self.memory("VmRSS:")
    }

    /// Returns its peak memory (`VmHWM`).
    pub fn peak_memory_kib(&self) -> u64 {
        self.memory("VmHWM:")
    }

    fn memory(&self, field: &str) -> u64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.pid()));
        let status = status.expect("a child that was not waited for has a status");
        let line = status.lines().find_map(|line| line.strip_prefix(field));
        let number = line.and_then(|line| line.split_ascii_whitespace().next()?.parse().ok());
        number.expect("a running process has memory")
    }

    /// Waits until `ready` returns true; panics if the process exits before that.
    pub fn wait_until_ready(&mut self, mut ready: impl FnMut() -> bool) {
        let name = self.name.clone();
        wait_until(&format!("{name} is ready"), || {
            if let Some(status) = self.exit_status() {
                panic!("{name} ended ({status}) before it was ready:\n{}", self.log());
            }
            ready()
        });
    }

    /// Terminates the process (SIGTERM) and waits for its exit.
    pub fn stop(self) -> ExitStatus {
        self.stop_with_log().0
    }

    /// As [`stop`](Self::stop), and returns its output.
    pub fn stop_with_log(self) -> (ExitStatus, String) {
        self.signal(Signal::SIGTERM);
        self.wait_for_end()
    }

    /// Terminates the process, which must then succeed, and returns its output.
    #[track_caller]
    pub fn stop_well(self) -> String {
        succeeded(self.stop_with_log())
    }

    /// Waits until the process exits by itself, which must succeed, and returns its output.
    #[track_caller]
    pub fn end_well(self) -> String {
        succeeded(self.wait_for_end())
    }

    /// Waits until the process exits by itself.
    pub fn wait_for_end(mut self) -> (ExitStatus, String) {
        let mut status = None;
        let name = self.name.clone();
        wait_until(&format!("{name} ends"), || {
            status = self.exit_status();
            status.is_some()
        });
        (status.expect("the wait ends with a status"), self.log())
    }

    /// Makes an agent write the contents of its flight recorder (SIGUSR1).
    pub fn record(&self) {
        self.signal(Signal::SIGUSR1);
    }

    /// Sends SIGINT, as Ctrl-C does, and does not wait.
    pub fn interrupt(&self) {
        self.signal(Signal::SIGINT);
    }

    /// Sends SIGKILL, and does not wait.
    pub fn send_kill(&self) {
        self.signal(Signal::SIGKILL);
    }

    /// Kills the process (SIGKILL), and returns its output.
    pub fn kill(self) -> String {
        self.signal(Signal::SIGKILL);
        let (status, log) = self.wait_for_end();
        assert!(!status.success(), "a killed process ends with its signal");
        log
    }

    /// Makes the process reload its configuration (SIGHUP).
    pub fn reload(&self) {
        self.signal(Signal::SIGHUP);
    }

    /// Returns the output of the process so far.
    pub fn log(&self) -> String {
        fs::read_to_string(self.log_path()).unwrap_or_else(|error| format!("(no log: {error})"))
    }

    fn signal(&self, signal: Signal) {
        let pid = i32::try_from(self.child.id()).expect("invariant: Linux pids fit in an i32");
        kill(Pid::from_raw(pid), signal).expect("a child that was not waited for can be signalled");
    }

    /// Returns the exit status, or `None` while the process runs.
    pub fn exit_status(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().expect("a child can be waited for")
    }

    fn log_path(&self) -> PathBuf {
        self.folder.path().join("log")
    }
}

#[track_caller]
fn succeeded((status, log): (ExitStatus, String)) -> String {
    assert!(status.success(), "{status}: {log}");
    log
}

impl Drop for Process {
    fn drop(&mut self) {
        // Both calls fail only if the process has already exited.
        let _ = self.child.kill();
        let _ = self.child.wait();
        if thread::panicking() {
            let _ = writeln!(io::stderr(), "---- output of {}:\n{}----", self.name, self.log());
        }
    }
}
