//! What the calls themselves take of the processor: the fake's own work, which a measurement of its caller must not count.
//!
//! `fakeNvmlSpentNanos`, which no driver has, begins to count when it is first asked. What a call sleeps is not counted, as
//! the kernel's clock of a thread does not.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use nvml_wrapper_sys::bindings::{nvmlReturn_enum_NVML_SUCCESS as SUCCESS, nvmlReturn_t};

use super::Reply;

static COUNTS: AtomicBool = AtomicBool::new(false);
static NANOS: AtomicU64 = AtomicU64::new(0);

/// The nanoseconds of the processor that all calls have taken since this was asked first.
#[unsafe(no_mangle)]
pub extern "C" fn fakeNvmlSpentNanos() -> u64 {
    COUNTS.store(true, Ordering::Relaxed);
    NANOS.load(Ordering::Relaxed)
}

/// Makes a call, and counts what it takes where somebody wants to know.
pub(super) fn count(call: impl FnOnce() -> Reply) -> nvmlReturn_t {
    let began = COUNTS.load(Ordering::Relaxed).then(thread_nanos);
    let reply = call();
    if let Some(began) = began {
        NANOS.fetch_add(thread_nanos().saturating_sub(began), Ordering::Relaxed);
    }
    reply.err().unwrap_or(SUCCESS)
}

/// What this thread has taken of the processor.
fn thread_nanos() -> u64 {
    let mut taken = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: the pointer is to a place for the answer.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut taken) };
    taken.tv_sec as u64 * 1_000_000_000 + taken.tv_nsec as u64
}
