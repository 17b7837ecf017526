//! The CPU time of the calls themselves: the overhead of the fake, which a measurement of its caller must subtract.
//!
//! `fakeNvmlSpentNanos`, which no real driver has, starts the count with its first call. Sleeping is not counted, because the
//! kernel's CPU clock of a thread does not count it.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use nvml_wrapper_sys::bindings::{nvmlReturn_enum_NVML_SUCCESS as SUCCESS, nvmlReturn_t};

use super::Reply;

static COUNTS: AtomicBool = AtomicBool::new(false);
static NANOS: AtomicU64 = AtomicU64::new(0);

/// Returns the CPU time in nanoseconds of all calls since the first call of this function.
#[unsafe(no_mangle)]
pub extern "C" fn fakeNvmlSpentNanos() -> u64 {
    COUNTS.store(true, Ordering::Relaxed);
    NANOS.load(Ordering::Relaxed)
}

/// Makes a call, and counts its CPU time if counting has started.
pub(super) fn count(call: impl FnOnce() -> Reply) -> nvmlReturn_t {
    let began = COUNTS.load(Ordering::Relaxed).then(thread_nanos);
    let reply = call();
    if let Some(began) = began {
        NANOS.fetch_add(thread_nanos().saturating_sub(began), Ordering::Relaxed);
    }
    reply.err().unwrap_or(SUCCESS)
}

/// Returns the CPU time of this thread.
fn thread_nanos() -> u64 {
    let mut taken = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: the pointer points to a valid `timespec`.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut taken) };
    taken.tv_sec as u64 * 1_000_000_000 + taken.tv_nsec as u64
}
