//! Signals of the keeper: blocked, and read as events, so that they interrupt nothing and keep their order.

use std::{
    fs::File,
    io::{self, Read},
    mem::MaybeUninit,
    os::fd::{AsFd, BorrowedFd, FromRawFd, OwnedFd},
    ptr,
    sync::atomic::{AtomicBool, Ordering},
};

use libc::{
    SIGABRT, SIGALRM, SIGCHLD, SIGCONT, SIGHUP, SIGINT, SIGIO, SIGPROF, SIGPWR, SIGQUIT, SIGRTMAX, SIGRTMIN,
    SIGTERM, SIGTSTP, SIGURG, SIGUSR1, SIGUSR2, SIGVTALRM, SIGWINCH, SIGXCPU, SIGXFSZ,
};

/// The signals that are forwarded, in addition to those of real time.
const FORWARDED: [i32; 17] = [
    SIGHUP, SIGINT, SIGQUIT, SIGABRT, SIGUSR1, SIGUSR2, SIGALRM, SIGTERM, SIGTSTP, SIGCONT, SIGWINCH, SIGURG,
    SIGXCPU, SIGVTALRM, SIGPROF, SIGPWR, SIGIO,
];

/// The size of `signalfd_siginfo`.
const EVENT_BYTES: usize = 128;

/// Whether [`ignore_file_size_signal`] changed the action of SIGXFSZ.
static FILE_SIZE_SIGNAL_WAS_DEFAULT: AtomicBool = AtomicBool::new(false);

/// A set of signals.
#[derive(Clone, Copy)]
pub(crate) struct SignalSet(libc::sigset_t);

impl SignalSet {
    /// Returns the set of these signals.
    pub(crate) fn from_signals(signals: impl IntoIterator<Item = i32>) -> Self {
        let mut set = MaybeUninit::uninit();
        // SAFETY: `sigemptyset` initializes the set; `sigaddset` rejects numbers that are no signals.
        unsafe {
            libc::sigemptyset(set.as_mut_ptr());
            for signal in signals {
                libc::sigaddset(set.as_mut_ptr(), signal);
            }
            Self(set.assume_init())
        }
    }

    /// Returns the set of all signals; Linux delivers SIGKILL and SIGSTOP also while they are blocked.
    pub(crate) fn all() -> Self {
        Self::from_signals(1..=SIGRTMAX())
    }

    /// Returns the set of the signals that a keeper handles: those that it forwards, and SIGCHLD. A signal that was ignored
    /// at the start (`nohup`) stays ignored, also for the trainer.
    pub(crate) fn handled() -> Self {
        let forwarded = FORWARDED.into_iter().chain(SIGRTMIN()..=SIGRTMAX());
        let forwarded = forwarded.filter(|signal| !is_ignored(*signal));
        Self::from_signals(forwarded.chain([SIGCHLD]))
    }

    /// Blocks the signals of the set, and returns the previous mask.
    pub(crate) fn block(&self) -> io::Result<Self> {
        self.change_mask(libc::SIG_BLOCK)
    }

    /// Unblocks the signals of the set.
    pub(crate) fn unblock(&self) -> io::Result<Self> {
        self.change_mask(libc::SIG_UNBLOCK)
    }

    /// Blocks the signals of the set and no others.
    pub(crate) fn set_as_mask(&self) -> io::Result<Self> {
        self.change_mask(libc::SIG_SETMASK)
    }

    fn change_mask(&self, how: i32) -> io::Result<Self> {
        let mut previous = MaybeUninit::uninit();
        // SAFETY: both pointers are valid sets; the call initializes the previous mask if it succeeds.
        match unsafe { libc::pthread_sigmask(how, &self.0, previous.as_mut_ptr()) } {
            // SAFETY: as above.
            0 => Ok(Self(unsafe { previous.assume_init() })),
            error => Err(io::Error::from_raw_os_error(error)),
        }
    }
}

/// A signal that arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Received {
    pub(crate) signal: i32,
    /// Whether the kernel sent it, for example because of a key of the terminal, and not a process.
    pub(crate) is_from_kernel: bool,
}

/// Reads blocked signals of the calling process.
pub(crate) struct SignalReader(File);

impl SignalReader {
    /// Starts to read the signals of a set, which must be blocked.
    pub(crate) fn new(set: &SignalSet) -> io::Result<Self> {
        // SAFETY: the set is valid, and -1 asks for a new descriptor.
        let fd = unsafe { libc::signalfd(-1, &set.0, libc::SFD_CLOEXEC | libc::SFD_NONBLOCK) };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the call returned a new descriptor, which nothing else owns.
        Ok(Self(File::from(unsafe { OwnedFd::from_raw_fd(fd) })))
    }

    /// Returns the next signal, or `None` without one.
    pub(crate) fn next(&self) -> Option<Received> {
        let mut event = [0; EVENT_BYTES];
        let read = (&self.0).read(&mut event).ok()?;
        let field = |at: usize| event.get(at..at + 4)?.try_into().ok().map(i32::from_ne_bytes);
        (read == EVENT_BYTES).then_some(())?;
        Some(Received {
            signal: field(0)?,
            is_from_kernel: field(8)? > 0,
        })
    }
}

impl AsFd for SignalReader {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// The mask and the actions that a trainer would have without `run`.
#[derive(Clone, Copy)]
pub(crate) struct OriginalSignals {
    mask: SignalSet,
    is_child_signal_ignored: bool,
}

impl OriginalSignals {
    /// Blocks the signals of `handled`, and returns the state before. Takes the default action for SIGCHLD, because the
    /// system discards the exit status of children if the signal is ignored.
    pub(crate) fn replace_by(handled: &SignalSet) -> io::Result<Self> {
        let is_child_signal_ignored = is_ignored(SIGCHLD);
        set_action(SIGCHLD, libc::SIG_DFL);
        Ok(Self {
            mask: handled.block()?,
            is_child_signal_ignored,
        })
    }

    /// Restores the state, in a child before it executes its program.
    pub(crate) fn restore(&self) -> io::Result<()> {
        if self.is_child_signal_ignored {
            set_action(SIGCHLD, libc::SIG_IGN);
        }
        if FILE_SIZE_SIGNAL_WAS_DEFAULT.load(Ordering::Relaxed) {
            set_action(SIGXFSZ, libc::SIG_DFL);
        }
        self.mask.set_as_mask().map(drop)
    }
}

/// Ignores SIGXFSZ in this process: a write beyond the limit on the size of files (`ulimit -f`) fails with EFBIG instead.
/// A trainer gets the original action.
pub fn ignore_file_size_signal() {
    FILE_SIZE_SIGNAL_WAS_DEFAULT.store(!is_ignored(SIGXFSZ), Ordering::Relaxed);
    set_action(SIGXFSZ, libc::SIG_IGN);
}

/// Stops this process with the default action of SIGTSTP, until it is resumed.
pub(crate) fn suspend_self() {
    let stop = SignalSet::from_signals([SIGTSTP]);
    // SAFETY: `raise` has no precondition. The signal is pending until it is unblocked, and then has its default action.
    unsafe { libc::raise(SIGTSTP) };
    if stop.unblock().is_ok() {
        let _ = stop.block();
    }
}

/// Sends a signal to a process; one that is gone needs none.
pub(crate) fn send(process: rustix::process::Pid, signal: i32) {
    // SAFETY: `kill` has no precondition.
    unsafe { libc::kill(process.as_raw_nonzero().get(), signal) };
}

/// Sends a signal to a process group; one that is gone needs none.
pub(crate) fn send_to_group(group: rustix::process::Pid, signal: i32) {
    // SAFETY: `killpg` has no precondition.
    unsafe { libc::killpg(group.as_raw_nonzero().get(), signal) };
}

fn is_ignored(signal: i32) -> bool {
    let mut action = MaybeUninit::<libc::sigaction>::zeroed();
    // SAFETY: the call changes nothing and writes the current action; all zeros are a valid action if it fails.
    unsafe {
        libc::sigaction(signal, ptr::null(), action.as_mut_ptr());
        action.assume_init().sa_sigaction == libc::SIG_IGN
    }
}

fn set_action(signal: i32, action: libc::sighandler_t) {
    // SAFETY: the action is `SIG_IGN` or `SIG_DFL`, so no handler is installed.
    unsafe { libc::signal(signal, action) };
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Signals for a thread are read by that thread only, so tests in parallel do not interfere.
    #[test]
    fn blocked_signal_is_read_with_its_origin() {
        let set = SignalSet::from_signals([SIGUSR2]);
        let previous = set.block().unwrap();
        let reader = SignalReader::new(&set).unwrap();
        assert_eq!(reader.next(), None);
        // SAFETY: the signal is blocked in this thread.
        unsafe { libc::raise(SIGUSR2) };
        let expected = Received {
            signal: SIGUSR2,
            is_from_kernel: false,
        };
        assert_eq!((reader.next(), reader.next()), (Some(expected), None));
        previous.set_as_mask().unwrap();
    }
}
