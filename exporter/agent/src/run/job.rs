//! Job control: Ctrl-Z and `fg`, as they would be without us.
//!
//! A trainer on a terminal of its own has a session of its own, in which no shell could wake it again, so Linux does not let
//! its terminal stop it. We stop it in its place, and ourselves with it, for the shell to see.

use std::{fs, os::fd::OwnedFd};

use rustix::{
    process::{
        Pid, Signal, getpgid, getpgrp, getppid, getsid, kill_current_process_group, kill_process_group,
    },
    termios::{LocalModes, SpecialCodeIndex, tcgetattr, tcgetpgrp},
};

use super::{
    signals::signal_sets,
    terminal::{SavedSettings, is_in_foreground},
};

/// The trainer as a job of the shell that started us.
pub(super) struct Job {
    trainer: Pid,
    terminal: OwnedFd,
}

impl Job {
    /// A trainer on `terminal`.
    pub(super) fn new(trainer: Pid, terminal: OwnedFd) -> Self {
        Self { trainer, terminal }
    }

    /// Suspends the job where that is what was typed.
    pub(super) fn notice(&self, typed: &[u8]) {
        if self.is_suspended_by(typed) && self.would_stop() && has_shell() {
            // We are among those who get it, and stop the trainer then.
            let _ = kill_current_process_group(Signal::TSTP);
        }
    }

    /// Whether the trainer's terminal takes one of the keys for the wish to suspend.
    fn is_suspended_by(&self, typed: &[u8]) -> bool {
        tcgetattr(&self.terminal).is_ok_and(|settings| {
            settings.local_modes.contains(LocalModes::ISIG)
                && typed.contains(&settings.special_codes[SpecialCodeIndex::VSUSP])
        })
    }

    /// Whether the trainer itself is what the key would stop: no job of a shell that it is, nothing that handles the signal.
    fn would_stop(&self) -> bool {
        tcgetpgrp(&self.terminal) == Ok(self.trainer) && !has_own_way(self.trainer)
    }
}

/// Whether a process does something of its own when it is asked to stop.
fn has_own_way(process: Pid) -> bool {
    let status = format!("/proc/{}/status", process.as_raw_nonzero());
    let status = fs::read_to_string(status).unwrap_or_default();
    let handled = signal_sets(&status, &["SigIgn:", "SigCgt:"]);
    handled & (1 << (Signal::TSTP.as_raw() - 1)) != 0
}

/// Stops a trainer on a terminal of its own, where somebody could wake us again, and gives our terminal back.
pub(super) fn suspend(trainer: Pid, settings: Option<&SavedSettings>) {
    if !has_shell() {
        return;
    }
    let signal = if has_own_way(trainer) {
        Signal::TSTP
    } else {
        Signal::STOP
    };
    // Whoever is gone in between needs no signal, and a terminal that is gone no settings.
    let _ = kill_process_group(trainer, signal);
    if let Some(settings) = settings.filter(|_| is_in_foreground()) {
        let _ = settings.put_back();
    }
}

/// Stops ourselves as a program does that has never heard of job control, until we are woken.
pub(super) fn stop_ourselves() {
    // SAFETY: all zeros are a valid `sigaction`, whose action is `SIG_DFL`: no code of ours runs by it. What was set before is
    // restored completely, by the one thread that changes it. `raise` is for this thread, so it has worked when it returns.
    unsafe {
        let default: libc::sigaction = std::mem::zeroed();
        let mut ours: libc::sigaction = std::mem::zeroed();
        if libc::sigaction(libc::SIGTSTP, &default, &mut ours) == 0 {
            libc::raise(libc::SIGTSTP);
            libc::sigaction(libc::SIGTSTP, &ours, std::ptr::null_mut());
        }
    }
}

/// Wakes the trainer, and gives it the keys again where the terminal is ours again.
pub(super) fn resume(trainer: Pid, settings: Option<&SavedSettings>) {
    if let Some(settings) = settings.filter(|_| is_in_foreground()) {
        // As above.
        let _ = settings.take_keys();
    }
    let _ = kill_process_group(trainer, Signal::CONT);
}

/// Whether a shell of our session would see that we have stopped, and could wake us: without one we would not be stopped
/// (POSIX: an orphaned process group).
fn has_shell() -> bool {
    let (group, session) = (getpgrp(), getsid(None));
    let mut parent = getppid();
    while let Some(pid) = parent {
        if getsid(Some(pid)) != session {
            return false;
        }
        if getpgid(Some(pid)) != Ok(group) {
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
