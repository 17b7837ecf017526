//! Measures the processor time of this thread, which excludes other work on the machine.

use std::hint::black_box;

/// Runs `work` and returns the processor time of this thread.
pub(crate) fn timed<T>(work: impl FnOnce() -> T) -> (f64, T) {
    let before = thread_seconds();
    let result = black_box(work());
    (thread_seconds() - before, result)
}

fn thread_seconds() -> f64 {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: `time` is a valid place for the clock's reading, and the call does nothing else.
    let status = unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut time) };
    assert_eq!(status, 0);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}
