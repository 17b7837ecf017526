//! Our terminal while a trainer runs on a terminal of its own: what is typed goes through unread, and all is put back.

use std::{
    io::{self, IsTerminal},
    os::fd::AsFd,
};

use rustix::termios::{
    OptionalActions, OutputModes, Termios, Winsize, tcgetattr, tcgetpgrp, tcgetwinsize, tcsetattr,
    tcsetwinsize,
};

/// A terminal whose keys all go to the trainer; put back when it is dropped.
pub(super) struct RawTerminal {
    original: Termios,
}

impl RawTerminal {
    /// Takes the keys of the terminal on the standard input; nothing where there is none, or where it belongs to another
    /// job: a job in the background must not touch its terminal.
    pub(super) fn take() -> io::Result<Option<Self>> {
        let stdin = io::stdin();
        if !stdin.is_terminal() || tcgetpgrp(&stdin).ok() != Some(rustix::process::getpgrp()) {
            return Ok(None);
        }
        let original = tcgetattr(&stdin)?;
        let mut raw = original.clone();
        raw.make_raw();
        tcsetattr(&stdin, OptionalActions::Now, &raw)?;
        Ok(Some(Self { original }))
    }
}

impl Drop for RawTerminal {
    fn drop(&mut self) {
        // A terminal that is gone needs nothing put back.
        let _ = tcsetattr(io::stdin(), OptionalActions::Drain, &self.original);
    }
}

/// Gives the trainer's terminal the settings of ours. Where ours still works on what is written, the trainer's must not,
/// so that nothing is done twice and the bytes stay those of the trainer.
pub(super) fn prepare(trainers: impl AsFd, ours: Option<&RawTerminal>) -> io::Result<()> {
    let settings = match ours {
        Some(ours) => ours.original.clone(),
        None => {
            let mut settings = tcgetattr(&trainers)?;
            settings.output_modes.remove(OutputModes::OPOST);
            settings
        }
    };
    Ok(tcsetattr(trainers, OptionalActions::Now, &settings)?)
}

/// Gives the trainer's terminal the size of ours.
pub(super) fn copy_size(trainers: impl AsFd, ours: impl AsFd) -> io::Result<()> {
    let size: Winsize = tcgetwinsize(ours)?;
    Ok(tcsetwinsize(trainers, size)?)
}
