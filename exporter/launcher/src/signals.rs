//! Forwards signals to the trainer.

use std::{
    fs, io,
    os::fd::OwnedFd,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicI32, Ordering},
    },
    thread,
};

use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use signal_hook::{
    consts::{SIGCONT, SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGTSTP, SIGUSR1, SIGUSR2, SIGWINCH},
    iterator::{SignalsInfo, exfiltrator::WithOrigin},
    low_level::siginfo::Origin,
};

use super::{
    job,
    terminal::{SavedSettings, copy_size},
    trainer::Trainer,
};

const PASSED: [i32; 9] = [
    SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGTSTP, SIGCONT, SIGWINCH,
];

/// The signals that arrived since [`HeldSignals::hold`], kept for the trainer.
pub struct HeldSignals(SignalsInfo<WithOrigin>);

/// Forwards signals to a trainer, each with the reach that its sender gave it.
#[derive(Clone, Default)]
pub struct SignalForwarder {
    trainer: Arc<Mutex<Option<Pid>>>,
    /// The exit code once the trainer has ended; -1 before.
    ended: Arc<AtomicI32>,
}

impl HeldSignals {
    /// Starts to collect signals; those that arrive before the start of the trainer are kept for it. A signal that was
    /// ignored at the start (`nohup`) stays ignored, also for the trainer.
    ///
    /// # Errors
    /// The system call that sets a handler fails.
    pub fn hold() -> io::Result<Self> {
        let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
        let ignored = signal_sets(&status, &["SigIgn:"]);
        let passed = PASSED.iter();
        SignalsInfo::new(passed.filter(|signal| ignored & (1 << (**signal - 1)) == 0)).map(Self)
    }
}

impl SignalForwarder {
    /// Forwards signals to the trainer from now on, including those that arrived before.
    pub fn start(signals: HeldSignals, trainer: &Trainer) -> Self {
        let forwarder = Self {
            trainer: Arc::new(Mutex::new(Some(trainer.pid()))),
            ended: Arc::new(AtomicI32::new(-1)),
        };
        let (terminal, settings) = (trainer.terminal(), trainer.saved_settings());
        let passing = forwarder.clone();
        thread::spawn(move || passing.pass(signals.0, terminal.as_ref(), settings.as_ref()));
        forwarder
    }

    /// Stops forwarding, because the process id of the trainer may soon belong to another process.
    pub fn forget_trainer(&self) {
        *self.trainer.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// Sets the exit code after the end of the trainer: from now on, a signal to end does not wait for the drain.
    pub fn set_exit_code(&self, code: u8) {
        self.ended.store(i32::from(code), Ordering::Relaxed);
    }

    fn pass(
        &self,
        mut signals: SignalsInfo<WithOrigin>,
        terminal: Option<&OwnedFd>,
        settings: Option<&SavedSettings>,
    ) {
        for origin in &mut signals {
            let ended = self.ended.load(Ordering::Relaxed);
            if ended >= 0 && [SIGINT, SIGTERM, SIGHUP, SIGQUIT].contains(&origin.signal) {
                std::process::exit(ended);
            }
            match (origin.signal, terminal) {
                (SIGWINCH, Some(terminal)) => copy_window(terminal),
                (SIGWINCH, None) => {}
                (SIGCONT, Some(terminal)) => {
                    copy_window(terminal);
                    self.resume(settings);
                }
                (SIGTSTP, Some(_)) => {
                    self.suspend(settings);
                    job::suspend_self();
                }
                (SIGTSTP, None) => {
                    self.pass_one(&origin, false);
                    job::suspend_self();
                }
                _ => self.pass_one(&origin, terminal.is_some()),
            }
        }
    }

    fn suspend(&self, settings: Option<&SavedSettings>) {
        let trainer = self.trainer.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(trainer) = *trainer {
            job::suspend(trainer, settings);
        }
    }

    fn resume(&self, settings: Option<&SavedSettings>) {
        let trainer = self.trainer.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(trainer) = *trainer {
            job::resume(trainer, settings);
        }
    }

    fn pass_one(&self, origin: &Origin, has_own_terminal: bool) {
        let trainer = self.trainer.lock().unwrap_or_else(PoisonError::into_inner);
        let (Some(pid), Some(signal)) = (*trainer, Signal::from_named_raw(origin.signal)) else {
            return;
        };
        let is_from_terminal = origin.process.is_none();
        // The signal is not needed if the trainer has ended in the meantime.
        let _ = match (is_from_terminal, has_own_terminal) {
            // The terminal has signalled its foreground process group, including the trainer.
            (true, false) => Ok(()),
            (true, true) => kill_process_group(pid, signal),
            (false, _) => kill_process(pid, signal),
        };
    }
}

/// Copies the window size to the trainer's terminal; a terminal that is gone has no size.
fn copy_window(terminal: &OwnedFd) {
    drop(copy_size(terminal, io::stdout()).or_else(|_| copy_size(terminal, io::stderr())));
}

/// Returns the union of the signal sets of these names in `/proc/PID/status`; empty if they are missing.
pub(crate) fn signal_sets(status: &str, names: &[&str]) -> u64 {
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
