//! Memory that is asked for before it is needed.
//!
//! Trees come in the order of time, which is not that of their spans' bytes, so each span would be waited for. A load that nobody
//! uses does not help: the processor gets no further than some hundred instructions past it. A hint does, and makes a tenth of
//! the time of a conversion.

#![allow(unsafe_code, reason = "the hint is an instruction")]

/// How much memory comes at once.
const CACHE_LINE: usize = 64;

/// Asks for bytes without waiting for them.
#[inline]
pub(super) fn ask_for(bytes: &[u8]) {
    bytes.chunks(CACHE_LINE).for_each(hint);
}

#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn hint(line: &[u8]) {
    use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
    // SAFETY: any address may be given: nothing is read that the program sees, and nothing can fail.
    unsafe { _mm_prefetch::<_MM_HINT_T0>(line.as_ptr().cast()) };
}

/// Elsewhere the language has no such hint yet.
#[cfg(not(target_arch = "x86_64"))]
#[inline(always)]
fn hint(line: &[u8]) {
    std::hint::black_box(line.first());
}
