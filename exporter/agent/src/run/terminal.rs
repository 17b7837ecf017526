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
    settings: SavedSettings,
}

/// The settings that our terminal had before the trainer had its keys.
#[derive(Clone)]
pub(super) struct SavedSettings(Termios);

impl RawTerminal {
    /// Takes the keys of the terminal on the standard input; `None` without a terminal, or if it belongs to another
    /// job: a job in the background must not touch its terminal.
    pub(super) fn take() -> io::Result<Option<Self>> {
        if !io::stdin().is_terminal() || !is_in_foreground() {
            return Ok(None);
        }
        let settings = SavedSettings(tcgetattr(io::stdin())?);
        settings.take_keys()?;
        Ok(Some(Self { settings }))
    }

    /// The settings, for those who put the terminal back for a while.
    pub(super) fn settings(&self) -> SavedSettings {
        self.settings.clone()
    }
}

impl SavedSettings {
    /// Gives the keys to the trainer.
    pub(super) fn take_keys(&self) -> io::Result<()> {
        let mut raw = self.0.clone();
        raw.make_raw();
        Ok(tcsetattr(io::stdin(), OptionalActions::Now, &raw)?)
    }

    /// Puts the terminal back.
    pub(super) fn put_back(&self) -> io::Result<()> {
        Ok(tcsetattr(io::stdin(), OptionalActions::Drain, &self.0)?)
    }
}

impl Drop for RawTerminal {
    fn drop(&mut self) {
        if is_in_foreground() {
            // A terminal that is gone needs nothing put back.
            let _ = self.settings.put_back();
        }
    }
}

/// Whether the terminal on the standard input is for us to use now.
pub(super) fn is_in_foreground() -> bool {
    tcgetpgrp(io::stdin()).ok() == Some(rustix::process::getpgrp())
}

/// Gives the trainer's terminal the settings of ours. Where ours still works on what is written, the trainer's must not,
/// so that nothing is done twice and the bytes stay those of the trainer.
pub(super) fn prepare(trainers: impl AsFd, ours: Option<&RawTerminal>) -> io::Result<()> {
    let settings = match ours {
        Some(ours) => ours.settings.0.clone(),
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
