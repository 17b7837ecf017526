//! Typed keys on their way from the outer terminal to the terminal of the trainer, without waiting for either.

use std::{
    fs::File,
    io::{self, Read, Write},
    os::fd::{AsFd, BorrowedFd, OwnedFd},
};

use rustix::event::PollFlags;

use crate::{arrivals::Millis, job::Job, terminal::is_in_foreground};

/// The interval at which a background process checks whether it is in the foreground again.
const IN_BACKGROUND: Millis = 200;

/// The keys of the standard input.
pub(crate) struct Keys {
    outer: File,
    terminal: File,
    job: Job,
    /// The keys that the terminal of the trainer has not accepted yet.
    typed: Vec<u8>,
    /// The time of the next read.
    due: Millis,
    is_open: bool,
}

impl Keys {
    /// Creates the keys of a job on `terminal`, which is non-blocking.
    ///
    /// # Errors
    /// The limit on descriptors is reached.
    pub(crate) fn new(terminal: OwnedFd, job: Job) -> io::Result<Self> {
        Ok(Self {
            outer: io::stdin().as_fd().try_clone_to_owned()?.into(),
            terminal: terminal.into(),
            job,
            typed: Vec::new(),
            due: 0,
            is_open: true,
        })
    }

    /// Returns the descriptor to wait for, and its event; `None` before the next read is due.
    pub(crate) fn awaited(&self, now: Millis) -> Option<(BorrowedFd<'_>, PollFlags)> {
        if !self.typed.is_empty() {
            Some((self.terminal.as_fd(), PollFlags::OUT))
        } else {
            (self.is_open && self.due <= now).then(|| (self.outer.as_fd(), PollFlags::IN))
        }
    }

    /// Returns the time of the next read if it is later than `now`.
    pub(crate) fn due(&self, now: Millis) -> Option<Millis> {
        (self.is_open && self.due > now).then_some(self.due)
    }

    /// Reads or writes after the awaited event. Does not read in the background: the keys belong to other jobs, and a read
    /// would stop the process.
    pub(crate) fn pass(&mut self, event: PollFlags, now: Millis) {
        if self.typed.is_empty() {
            if !is_in_foreground() {
                self.due = now + IN_BACKGROUND;
                return;
            }
            let mut buffer = [0; 1024];
            match self.outer.read(&mut buffer) {
                Ok(len @ 1..) => self.typed.extend_from_slice(&buffer[..len]),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                // Without a key, the terminal is gone only if it is hung up.
                Ok(_) => self.is_open = !event.contains(PollFlags::HUP),
                Err(_) => self.is_open = false,
            }
        }
        if !self.typed.is_empty() {
            self.write();
        }
    }

    fn write(&mut self) {
        match self.terminal.write(&self.typed) {
            Ok(written) => {
                let written: Vec<u8> = self.typed.drain(..written).collect();
                self.job.observe(&written);
            }
            Err(error) if [io::ErrorKind::Interrupted, io::ErrorKind::WouldBlock].contains(&error.kind()) => {
            }
            Err(_) => (self.is_open, self.typed) = (false, Vec::new()),
        }
    }
}
