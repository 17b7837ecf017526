//! The trainer as a child process: on its own terminal if `run` is on one, otherwise with pipes.

use std::{
    ffi::OsString,
    fs::File,
    io::{self, IsTerminal},
    os::{
        fd::{AsFd, OwnedFd},
        unix::process::ExitStatusExt,
    },
    process::{Child, ExitStatus, Stdio},
};

use rustix::{
    io::Errno,
    process::{Pid, WaitId, WaitIdOptions, waitid},
};

use super::{
    copy::{RunningCopies, copy, pass_keys},
    job::Job,
    terminal::{self, RawTerminal, SavedSettings},
};

/// A running trainer.
pub struct Trainer {
    child: Child,
    /// The output streams, each with its destination.
    streams: Vec<Stream>,
    /// The controlling side of the trainer's terminal.
    terminal: Option<OwnedFd>,
    /// The outer terminal, while its keys go to the trainer.
    keys: Option<RawTerminal>,
}

/// An output stream of the trainer.
pub(crate) struct Stream {
    /// The end to read from.
    pub(crate) from: File,
    /// The destination.
    pub(crate) to: File,
}

impl Trainer {
    /// Starts `command` with these variables added to its environment.
    ///
    /// # Errors
    /// The program cannot be executed, or the terminal cannot be prepared.
    pub fn start(command: &[OsString], variables: &[(&str, String)]) -> io::Result<Self> {
        let (program, arguments) = command.split_first().ok_or(io::ErrorKind::InvalidInput)?;
        let variables = variables.iter().map(|(name, value)| (name, value));
        if io::stdout().is_terminal() || io::stderr().is_terminal() {
            let command = pty_process::blocking::Command::new(program)
                .args(arguments)
                .envs(variables);
            Self::on_terminal(command)
        } else {
            let mut command = std::process::Command::new(program);
            command.args(arguments).envs(variables);
            Self::behind_pipes(command)
        }
    }

    fn behind_pipes(mut command: std::process::Command) -> io::Result<Self> {
        let (out, out_end) = io::pipe()?;
        let (err, err_end) = io::pipe()?;
        let child = command.stdout(out_end).stderr(err_end).spawn()?;
        // The command holds copies of the trainer's ends: the streams end only when these are closed.
        drop(command);
        Ok(Self {
            child,
            streams: vec![stdout(out.into())?, stderr(err.into())?],
            terminal: None,
            keys: None,
        })
    }

    fn on_terminal(mut command: pty_process::blocking::Command) -> io::Result<Self> {
        let (pty, pts) = pty_process::blocking::open().map_err(io_error)?;
        let keys = RawTerminal::take()?;
        terminal::prepare(&pts, keys.as_ref())?;
        let both = io::stdout().is_terminal() && io::stderr().is_terminal();
        let size = if io::stdout().is_terminal() {
            terminal::copy_size(&pty, io::stdout())
        } else {
            terminal::copy_size(&pty, io::stderr())
        };
        size?;
        if keys.is_none() {
            command = command.stdin(Stdio::inherit());
        }
        let mut streams = Vec::new();
        let pty = OwnedFd::from(pty);
        if !io::stdout().is_terminal() {
            let (out, end) = io::pipe()?;
            command = command.stdout(end);
            streams.push(stdout(out.into())?);
            streams.push(stderr(pty.try_clone()?)?);
        } else if !both {
            let (err, end) = io::pipe()?;
            command = command.stderr(end);
            streams.push(stderr(err.into())?);
            streams.push(stdout(pty.try_clone()?)?);
        } else {
            streams.push(stdout(pty.try_clone()?)?);
        }
        let child = command.spawn(pts).map_err(io_error)?;
        if keys.is_some() {
            let job = Job::new(Pid::from_child(&child), pty.try_clone()?);
            pass_keys(pty.try_clone()?, job)?;
        }
        Ok(Self {
            child,
            streams,
            terminal: Some(pty),
            keys,
        })
    }

    /// Returns the controlling side of the trainer's terminal, if it has one.
    pub(crate) fn terminal(&self) -> Option<OwnedFd> {
        self.terminal.as_ref()?.try_clone().ok()
    }

    /// Returns the settings of the outer terminal, if its keys go to the trainer.
    pub(crate) fn saved_settings(&self) -> Option<SavedSettings> {
        self.keys.as_ref().map(RawTerminal::settings)
    }

    /// Copies the output streams, each on a thread of its own. A second call copies nothing.
    pub fn copy_output(&mut self) -> RunningCopies {
        copy(std::mem::take(&mut self.streams))
    }

    /// Returns the process id.
    pub(crate) fn pid(&self) -> Pid {
        Pid::from_child(&self.child)
    }

    /// Waits until the trainer has ended, and calls `ended` while the process id is still reserved.
    ///
    /// # Errors
    /// The system call fails.
    pub fn wait(&mut self, ended: impl FnOnce()) -> io::Result<ExitStatus> {
        while let Err(Errno::INTR) = waitid(
            WaitId::Pid(self.pid()),
            WaitIdOptions::EXITED | WaitIdOptions::NOWAIT,
        ) {}
        ended();
        self.child.wait()
    }
}

/// Returns the exit code that a shell reports for an exit status.
pub fn exit_code(status: ExitStatus) -> u8 {
    let code = status
        .code()
        .or_else(|| status.signal().map(|signal| 128 + signal));
    code.and_then(|code| u8::try_from(code).ok()).unwrap_or(u8::MAX)
}

fn stdout(from: OwnedFd) -> io::Result<Stream> {
    stream(from, io::stdout())
}

fn stderr(from: OwnedFd) -> io::Result<Stream> {
    stream(from, io::stderr())
}

fn stream(from: OwnedFd, to: impl AsFd) -> io::Result<Stream> {
    Ok(Stream {
        from: from.into(),
        to: to.as_fd().try_clone_to_owned()?.into(),
    })
}

fn io_error(error: pty_process::Error) -> io::Error {
    match error {
        pty_process::Error::Io(error) => error,
        pty_process::Error::Rustix(error) => error.into(),
    }
}
