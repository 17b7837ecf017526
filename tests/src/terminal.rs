//! `pulsetrain` in a pseudoterminal of 40 rows and 100 columns, whose other end the test holds.

use std::{
    io::{self, Read, Write},
    process::Command,
    sync::mpsc,
    thread,
    time::Duration,
};

use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};
use pty_process::{Size, blocking};

use crate::with_default_signals;

/// The timeout after which the process is killed, so that a test fails with its output instead of waiting for ever.
const MAX_DURATION: Duration = Duration::from_secs(60);

/// The test's end of the pseudoterminal; written bytes are typed keys.
pub struct Terminal(blocking::Pty);

impl Terminal {
    /// Resizes the window; the system sends SIGWINCH to the program.
    pub fn resize(&self, rows: u16, columns: u16) {
        self.0
            .resize(Size::new(rows, columns))
            .expect("a terminal has a size");
    }
}

impl Write for Terminal {
    fn write(&mut self, keys: &[u8]) -> io::Result<usize> {
        self.0.write(keys)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

/// Runs a command in a terminal until it exits, and returns its exit code and all output to the terminal. `react` gets the
/// output so far and may type.
pub fn on_terminal(command: &Command, mut react: impl FnMut(&mut Terminal, &str)) -> (Option<i32>, String) {
    let (terminal, end) = blocking::open().expect("a terminal can be opened");
    let mut terminal = Terminal(terminal);
    terminal.resize(40, 100);
    let command = with_default_signals(command);
    let mut child = blocking::Command::new(command.get_program())
        .args(command.get_args())
        .spawn(end)
        .expect("pulsetrain can be started");
    let _until_the_end = kill_later(child.id());
    let (mut printed, mut buffer) = (Vec::new(), [0; 4096]);
    // Reading fails with an error after the last program of the terminal has exited.
    while let Ok(len @ 1..) = terminal.0.read(&mut buffer) {
        printed.extend_from_slice(&buffer[..len]);
        react(&mut terminal, &String::from_utf8_lossy(&printed));
    }
    let status = child.wait().expect("a child can be waited for");
    (status.code(), String::from_utf8_lossy(&printed).into_owned())
}

/// Kills a process after the timeout, unless the returned sender has been dropped before.
fn kill_later(process: u32) -> mpsc::SyncSender<()> {
    let process = Pid::from_raw(i32::try_from(process).expect("invariant: Linux pids fit in an i32"));
    let (until_the_end, ended) = mpsc::sync_channel(0);
    thread::spawn(move || {
        if ended.recv_timeout(MAX_DURATION) == Err(mpsc::RecvTimeoutError::Timeout) {
            // It fails only if the process has just exited.
            let _ = kill(process, Signal::SIGKILL);
        }
    });
    until_the_end
}
