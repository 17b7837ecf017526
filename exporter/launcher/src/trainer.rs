//! The trainer as a child process: on its own terminal if `run` is on one, otherwise with pipes.

use std::{
    ffi::OsString,
    io::{self, IsTerminal},
    os::{
        fd::{AsFd, OwnedFd},
        unix::process::CommandExt,
    },
    process::{Command, Stdio},
};

use pty_process::blocking::{self, Pts};
use rustix::{
    fs::{OFlags, fcntl_getfl, fcntl_setfl},
    process::Pid,
};

use crate::{
    copier::Stream,
    job::Job,
    keys::Keys,
    signals::OriginalSignals,
    terminal::{self, RawTerminal, SavedSettings},
};

/// The ends of the output of a trainer that has not been started.
pub(crate) struct Outlets {
    stdout: Option<OwnedFd>,
    stderr: Option<OwnedFd>,
    terminal: Option<Terminal>,
}

/// A terminal for the trainer.
struct Terminal {
    controlling: OwnedFd,
    trainers: Pts,
    outer: Option<RawTerminal>,
}

/// A running trainer.
pub(crate) struct Trainer {
    pid: Pid,
    /// The controlling side of its terminal.
    terminal: Option<OwnedFd>,
    /// The outer terminal, while its keys go to the trainer.
    outer: Option<RawTerminal>,
    keys: Option<Keys>,
}

impl Outlets {
    /// Returns whether the trainer gets a terminal of its own.
    pub(crate) fn have_terminal() -> bool {
        io::stdout().is_terminal() || io::stderr().is_terminal()
    }

    /// Opens pipes or a terminal, and returns the streams to copy.
    ///
    /// # Errors
    /// The limit on descriptors is reached, or the terminal cannot be opened.
    pub(crate) fn open() -> io::Result<(Self, Vec<Stream>)> {
        let mut outlets = Self::inherited();
        if Self::have_terminal() {
            outlets.terminal = Some(Terminal::open()?);
        }
        let controlling = outlets
            .terminal
            .as_ref()
            .map(|terminal| terminal.controlling.try_clone());
        let mut controlling = controlling.transpose()?;
        let stdout = stream(&io::stdout(), &mut controlling, &mut outlets.stdout)?;
        let stderr = stream(&io::stderr(), &mut controlling, &mut outlets.stderr)?;
        Ok((outlets, stdout.into_iter().chain(stderr).collect()))
    }

    /// Returns the outlets of a trainer that inherits its output.
    pub(crate) fn inherited() -> Self {
        Self {
            stdout: None,
            stderr: None,
            terminal: None,
        }
    }
}

/// Returns the stream to `to`: from the terminal of the trainer, unless another stream has it, or from a new pipe, whose
/// end for the trainer becomes `end`.
fn stream(
    to: &(impl AsFd + IsTerminal),
    controlling: &mut Option<OwnedFd>,
    end: &mut Option<OwnedFd>,
) -> io::Result<Option<Stream>> {
    let from = if to.is_terminal() {
        let Some(controlling) = controlling.take() else {
            return Ok(None);
        };
        controlling
    } else {
        let (from, write) = io::pipe()?;
        *end = Some(write.into());
        from.into()
    };
    Ok(Some(Stream {
        from: from.into(),
        to: to.as_fd().try_clone_to_owned()?.into(),
    }))
}

impl Terminal {
    fn open() -> io::Result<Self> {
        let (pty, pts) = blocking::open().map_err(io_error)?;
        let outer = RawTerminal::take()?;
        terminal::prepare(&pts, outer.as_ref())?;
        if io::stdout().is_terminal() {
            terminal::copy_size(&pty, io::stdout())?;
        } else {
            terminal::copy_size(&pty, io::stderr())?;
        }
        let controlling = OwnedFd::from(pty);
        // The keeper writes keys without waiting.
        fcntl_setfl(&controlling, fcntl_getfl(&controlling)? | OFlags::NONBLOCK)?;
        Ok(Self {
            controlling,
            trainers: pts,
            outer,
        })
    }
}

impl Trainer {
    /// Starts `command` with these variables added to its environment, and with the signals that `run` was started with.
    ///
    /// # Errors
    /// The program cannot be executed.
    pub(crate) fn start(
        command: &[OsString],
        variables: &[(&str, String)],
        outlets: Outlets,
        signals: OriginalSignals,
    ) -> io::Result<Self> {
        let (program, arguments) = command.split_first().ok_or(io::ErrorKind::InvalidInput)?;
        let variables = variables.iter().map(|(name, value)| (name, value));
        let prepare = move || signals.restore();
        let Some(terminal) = outlets.terminal else {
            let mut command = Command::new(program);
            command.args(arguments).envs(variables);
            command.stdout(outlets.stdout.map_or_else(Stdio::inherit, Stdio::from));
            command.stderr(outlets.stderr.map_or_else(Stdio::inherit, Stdio::from));
            // SAFETY: the calls set signal actions and the mask of the child only.
            let child = unsafe { command.pre_exec(prepare) }.spawn()?;
            return Ok(Self {
                pid: Pid::from_child(&child),
                terminal: None,
                outer: None,
                keys: None,
            });
        };
        let mut command = blocking::Command::new(program).args(arguments).envs(variables);
        if terminal.outer.is_none() {
            command = command.stdin(Stdio::inherit());
        }
        if let Some(end) = outlets.stdout {
            command = command.stdout(end);
        }
        if let Some(end) = outlets.stderr {
            command = command.stderr(end);
        }
        // SAFETY: as above.
        let command = unsafe { command.pre_exec(prepare) };
        let child = command.spawn(terminal.trainers).map_err(io_error)?;
        Self::on_terminal(Pid::from_child(&child), terminal.controlling, terminal.outer)
    }

    fn on_terminal(pid: Pid, controlling: OwnedFd, outer: Option<RawTerminal>) -> io::Result<Self> {
        let keys = match &outer {
            Some(_) => {
                let job = Job::new(pid, controlling.try_clone()?);
                Some(Keys::new(controlling.try_clone()?, job)?)
            }
            None => None,
        };
        Ok(Self {
            pid,
            terminal: Some(controlling),
            outer,
            keys,
        })
    }

    pub(crate) fn pid(&self) -> Pid {
        self.pid
    }

    /// Returns the controlling side of the trainer's terminal, if it has one.
    pub(crate) fn terminal(&self) -> Option<&OwnedFd> {
        self.terminal.as_ref()
    }

    /// Returns the settings of the outer terminal, if its keys go to the trainer.
    pub(crate) fn saved_settings(&self) -> Option<SavedSettings> {
        self.outer.as_ref().map(RawTerminal::settings)
    }

    /// Returns the keys of the outer terminal.
    pub(crate) fn keys(&mut self) -> Option<&mut Keys> {
        self.keys.as_mut()
    }

    /// Restores the outer terminal.
    pub(crate) fn give_back_terminal(&mut self) {
        self.keys = None;
        self.outer = None;
        self.terminal = None;
    }
}

fn io_error(error: pty_process::Error) -> io::Error {
    match error {
        pty_process::Error::Io(error) => error,
        pty_process::Error::Rustix(error) => error.into(),
    }
}
