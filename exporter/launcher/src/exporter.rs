//! The exporter on the side of the keeper: started in a session of its own, and informed of the end of the trainer.

use std::{
    fmt,
    fs::File,
    io::{self, Write},
    os::{
        fd::{AsRawFd, BorrowedFd, OwnedFd, RawFd},
        unix::process::CommandExt,
    },
    process::{Command, Stdio},
};

use rustix::{
    io::{FdFlags, fcntl_setfd},
    pipe::{PipeFlags, pipe_with},
    process::{Pid, setsid},
};

use crate::{
    process::open_descriptors,
    signals::{SignalSet, send},
};

/// The pipes that an exporter inherits, as text for its command line.
#[derive(Debug)]
pub struct Handover(Vec<RawFd>);

impl fmt::Display for Handover {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let pipes: Vec<String> = self.0.iter().map(RawFd::to_string).collect();
        f.write_str(&pipes.join(","))
    }
}

/// A running exporter.
pub(crate) struct Exporter {
    pid: Pid,
    /// The standard input of the exporter.
    control: File,
}

impl Exporter {
    /// Starts the exporter that `command` returns for the ends of these pipes. No signal to the group, the session or the
    /// terminal of the trainer reaches it, and it inherits no other descriptor than its output.
    ///
    /// # Errors
    /// The program cannot be executed.
    pub(crate) fn start(command: impl FnOnce(&Handover) -> Command, pipes: &[OwnedFd]) -> io::Result<Self> {
        let (control_end, control) = pipe_with(PipeFlags::CLOEXEC)?;
        let inherited: Vec<RawFd> = pipes.iter().map(AsRawFd::as_raw_fd).collect();
        let mut command = command(&Handover(inherited.clone()));
        command.stdin(Stdio::from(control_end));
        let prepare = move || {
            setsid()?;
            SignalSet::all().set_as_mask()?;
            for fd in open_descriptors().into_iter().filter(|fd| *fd > 2) {
                let flags = if inherited.contains(&fd) {
                    FdFlags::empty()
                } else {
                    FdFlags::CLOEXEC
                };
                // SAFETY: the descriptor is used only in this iteration. One that is closed already returns an error.
                let _ = fcntl_setfd(unsafe { BorrowedFd::borrow_raw(fd) }, flags);
            }
            Ok(())
        };
        // SAFETY: the keeper has one thread only, so its child may do what a process may do.
        let child = unsafe { command.pre_exec(prepare) }.spawn()?;
        Ok(Self {
            pid: Pid::from_child(&child),
            control: control.into(),
        })
    }

    pub(crate) fn pid(&self) -> Pid {
        self.pid
    }

    /// Sends the exit code of the trainer.
    pub(crate) fn end(&self, code: u8) {
        // An exporter that has ended needs no message.
        let _ = (&self.control).write_all(&[code]);
    }

    /// Makes the exporter exit at once.
    pub(crate) fn abort(&self) {
        // It reads one exit code, and then the byte to abort.
        let _ = (&self.control).write_all(&[0, 0]);
    }

    pub(crate) fn kill(&self) {
        send(self.pid, libc::SIGKILL);
    }
}
