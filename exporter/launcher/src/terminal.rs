//! The outer terminal while a trainer runs on its own terminal: keys are forwarded unprocessed, and the settings are
//! restored at the end.

use std::{
    io::{self, IsTerminal},
    os::fd::AsFd,
};

use rustix::{
    process::Pid,
    termios::{
        OptionalActions, OutputModes, SpecialCodeIndex, Termios, Winsize, tcgetattr, tcgetwinsize, tcsetattr,
        tcsetwinsize,
    },
};

/// A terminal whose keys all go to the trainer; its settings are restored on drop.
pub(crate) struct RawTerminal {
    settings: SavedSettings,
}

/// The settings of the terminal before its keys were passed to the trainer.
#[derive(Clone)]
pub(crate) struct SavedSettings(Termios);

impl RawTerminal {
    /// Passes the keys of the terminal on the standard input to the trainer. Returns `None` without a terminal, or if it
    /// belongs to another job: a background job must not change its terminal.
    pub(crate) fn take() -> io::Result<Option<Self>> {
        if !io::stdin().is_terminal() || !is_in_foreground() {
            return Ok(None);
        }
        let settings = SavedSettings(tcgetattr(io::stdin())?);
        settings.take_keys()?;
        Ok(Some(Self { settings }))
    }

    /// Returns the settings, to restore the terminal temporarily.
    pub(crate) fn settings(&self) -> SavedSettings {
        self.settings.clone()
    }
}

impl SavedSettings {
    /// Passes the keys to the trainer. A read without a key returns at once.
    pub(crate) fn take_keys(&self) -> io::Result<()> {
        let mut raw = self.0.clone();
        raw.make_raw();
        raw.special_codes[SpecialCodeIndex::VMIN] = 0;
        raw.special_codes[SpecialCodeIndex::VTIME] = 0;
        Ok(tcsetattr(io::stdin(), OptionalActions::Now, &raw)?)
    }

    /// Restores the terminal.
    pub(crate) fn put_back(&self) -> io::Result<()> {
        Ok(tcsetattr(io::stdin(), OptionalActions::Drain, &self.0)?)
    }
}

impl Drop for RawTerminal {
    fn drop(&mut self) {
        if is_in_foreground() {
            // A terminal that is gone needs no restore.
            let _ = self.settings.put_back();
        }
    }
}

/// Returns whether this process is in the foreground of the terminal on the standard input.
pub(crate) fn is_in_foreground() -> bool {
    // SAFETY: the calls have no precondition. Linux returns 0 for a group whose leader is in another PID namespace, which
    // `rustix` does not allow.
    let (foreground, ours) = unsafe { (libc::tcgetpgrp(libc::STDIN_FILENO), libc::getpgrp()) };
    foreground == ours
}

/// Returns the process group of this process, or `None` if its leader is in another PID namespace.
pub(crate) fn process_group() -> Option<Pid> {
    // SAFETY: as above.
    Pid::from_raw(unsafe { libc::getpgrp() })
}

/// Copies the settings of the outer terminal to the trainer's terminal. If the outer terminal still processes its output,
/// processing is disabled on the trainer's terminal, so that it is not done twice and the bytes stay unchanged.
pub(crate) fn prepare(trainers: impl AsFd, ours: Option<&RawTerminal>) -> io::Result<()> {
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

/// Copies the size of the outer terminal to the trainer's terminal.
pub(crate) fn copy_size(trainers: impl AsFd, ours: impl AsFd) -> io::Result<()> {
    let size: Winsize = tcgetwinsize(ours)?;
    Ok(tcsetwinsize(trainers, size)?)
}

/// Copies the size of the outer terminal, which is on one of the output streams; a terminal that is gone has no size.
pub(crate) fn copy_window(trainers: impl AsFd) {
    let sized = copy_size(&trainers, io::stdout()).or_else(|_| copy_size(&trainers, io::stderr()));
    drop(sized);
}
