//! Job control: Ctrl-Z and `fg` behave as they would without `run`.
//!
//! A trainer on its own terminal has its own session, without a shell that could resume it, so Linux does not let its
//! terminal stop it. `run` stops the trainer itself, and then itself, so that the shell notices.

use std::{fs, os::fd::OwnedFd};

use rustix::{
    process::{Pid, Signal, getpgid, getppid, getsid, kill_current_process_group, kill_process_group},
    termios::{LocalModes, SpecialCodeIndex, tcgetattr, tcgetpgrp},
};

use crate::terminal::{SavedSettings, is_in_foreground, process_group};

/// The trainer as a job of the parent shell.
pub(crate) struct Job {
    trainer: Pid,
    terminal: OwnedFd,
}

impl Job {
    /// Creates the job of a trainer on `terminal`.
    pub(crate) fn new(trainer: Pid, terminal: OwnedFd) -> Self {
        Self { trainer, terminal }
    }

    /// Suspends the job if the suspend key was typed.
    pub(crate) fn observe(&self, typed: &[u8]) {
        if self.is_suspended_by(typed) && self.stops_on_suspend_key() && has_shell() {
            // This process is in the group as well, and stops the trainer when it receives the signal.
            let _ = kill_current_process_group(Signal::TSTP);
        }
    }

    /// Returns whether the settings of the trainer's terminal make one of the keys the suspend key.
    fn is_suspended_by(&self, typed: &[u8]) -> bool {
        tcgetattr(&self.terminal).is_ok_and(|settings| {
            settings.local_modes.contains(LocalModes::ISIG)
                && typed.contains(&settings.special_codes[SpecialCodeIndex::VSUSP])
        })
    }

    /// Returns whether the key would stop the trainer itself: it is in the foreground of its terminal, and does not
    /// handle the signal.
    fn stops_on_suspend_key(&self) -> bool {
        tcgetpgrp(&self.terminal) == Ok(self.trainer) && !overrides_stop_signal(self.trainer)
    }
}

/// Returns whether a process ignores or handles the stop signal.
fn overrides_stop_signal(process: Pid) -> bool {
    let status = format!("/proc/{}/status", process.as_raw_nonzero());
    let status = fs::read_to_string(status).unwrap_or_default();
    let handled = signal_sets(&status, &["SigIgn:", "SigCgt:"]);
    handled & (1 << (Signal::TSTP.as_raw() - 1)) != 0
}

/// Stops a trainer on its own terminal if a shell could resume `run`, and restores the outer terminal.
pub(crate) fn suspend(trainer: Pid, settings: Option<&SavedSettings>) {
    if !has_shell() {
        return;
    }
    let signal = if overrides_stop_signal(trainer) {
        Signal::TSTP
    } else {
        Signal::STOP
    };
    // A process that is gone needs no signal, and a terminal that is gone needs no settings.
    let _ = kill_process_group(trainer, signal);
    if let Some(settings) = settings.filter(|_| is_in_foreground()) {
        let _ = settings.put_back();
    }
}

/// Resumes the trainer, and passes the keys to it again if this process is in the foreground.
pub(crate) fn resume(trainer: Pid, settings: Option<&SavedSettings>) {
    if let Some(settings) = settings.filter(|_| is_in_foreground()) {
        // The terminal may be gone, as above.
        let _ = settings.take_keys();
    }
    let _ = kill_process_group(trainer, Signal::CONT);
}

/// Returns whether a shell of the same session would notice a stop, and could resume the process. Without one, the stop
/// signal has no effect (POSIX: an orphaned process group).
fn has_shell() -> bool {
    let mut parent = getppid();
    if parent.is_none() {
        return false;
    }
    let (group, session) = (process_group(), getsid(None));
    while let Some(pid) = parent {
        if getsid(Some(pid)) != session {
            return false;
        }
        if getpgid(Some(pid)).ok() != group {
            return true;
        }
        parent = parent_of(pid);
    }
    false
}

fn parent_of(process: Pid) -> Option<Pid> {
    let status = fs::read_to_string(format!("/proc/{}/status", process.as_raw_nonzero())).ok()?;
    let parent = status.lines().find_map(|line| line.strip_prefix("PPid:"))?;
    Pid::from_raw(parent.trim().parse().ok()?)
}

/// Returns the union of the signal sets of these names in `/proc/PID/status`; empty if they are missing.
fn signal_sets(status: &str, names: &[&str]) -> u64 {
    let set = |name: &&str| {
        let set = status.lines().find_map(|line| line.strip_prefix(*name))?;
        u64::from_str_radix(set.trim(), 16).ok()
    };
    names.iter().filter_map(set).fold(0, |all, set| all | set)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signal_dispositions_are_read_from_the_process_status() {
        let status = "Name:\tpulsetrain\nSigIgn:\t0000000000001001\nSigCgt:\t2\n";
        assert_eq!(signal_sets(status, &["SigIgn:"]), 0x1001);
        assert_eq!(signal_sets(status, &["SigIgn:", "SigCgt:"]), 0x1003);
        assert_eq!(signal_sets("Name:\tpulsetrain\n", &["SigIgn:"]), 0);
    }
}
