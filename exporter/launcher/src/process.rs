//! Small processes: forks of the keeper that run one function.

use std::{
    ffi::CStr,
    fs, io,
    os::fd::{AsRawFd, BorrowedFd, RawFd},
    panic::{AssertUnwindSafe, catch_unwind},
};

use rustix::{
    process::{Pid, WaitOptions, WaitStatus},
    thread::set_name,
};

use crate::signals::SignalSet;

/// The largest descriptor that is closed if `/proc` does not list them.
const MAX_DESCRIPTOR: RawFd = 1024;

/// The exit code of a fork that panicked.
const PANICKED: i32 = 101;

/// Sets the name of this process that `ps` and `pkill` read, of at most 15 bytes.
pub fn rename_process(name: &CStr) {
    // The name is for operators only.
    let _ = set_name(name);
}

/// Forks a process that blocks all signals, closes every descriptor except these, runs `work`, and exits. The calling
/// process must have one thread only.
///
/// # Errors
/// The system call fails.
pub(crate) fn fork(keep: &[BorrowedFd<'_>], work: impl FnOnce()) -> io::Result<Pid> {
    let keep: Vec<RawFd> = keep.iter().map(AsRawFd::as_raw_fd).collect();
    // SAFETY: no other thread exists whose locks the child could inherit.
    let pid = unsafe { libc::fork() };
    if pid == 0 {
        let done = catch_unwind(AssertUnwindSafe(|| {
            let _ = SignalSet::all().set_as_mask();
            close_all_except(&keep);
            work();
        }));
        // SAFETY: `_exit` has no precondition. The child has not returned to the frames that it shares with its parent.
        unsafe { libc::_exit(if done.is_ok() { 0 } else { PANICKED }) };
    }
    match Pid::from_raw(pid) {
        Some(pid) if pid.as_raw_nonzero().get() > 0 => Ok(pid),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Closes all descriptors of a fork except these: a lock or a pipe of the parent must not live longer in the child.
fn close_all_except(keep: &[RawFd]) {
    for fd in open_descriptors() {
        if !keep.contains(&fd) {
            // SAFETY: nothing in the child uses the descriptor: its work owns those of `keep`, and it ends without drops.
            unsafe { libc::close(fd) };
        }
    }
}

/// Returns the open descriptors of this process.
pub(crate) fn open_descriptors() -> Vec<RawFd> {
    match fs::read_dir("/proc/self/fd") {
        Ok(entries) => {
            let names = entries.flatten().map(|entry| entry.file_name());
            names.filter_map(|name| name.to_str()?.parse().ok()).collect()
        }
        Err(_) => (0..MAX_DESCRIPTOR).collect(),
    }
}

/// Returns the next child that has exited, including orphans that the kernel gave to process 1.
pub(crate) fn reap() -> Option<(Pid, WaitStatus)> {
    rustix::process::wait(WaitOptions::NOHANG).ok().flatten()
}

/// Returns the exit code that a shell reports for a status.
pub(crate) fn exit_code(status: WaitStatus) -> u8 {
    let code = status
        .exit_status()
        .or_else(|| status.terminating_signal().map(|signal| 128 + signal));
    code.and_then(|code| u8::try_from(code).ok()).unwrap_or(u8::MAX)
}
