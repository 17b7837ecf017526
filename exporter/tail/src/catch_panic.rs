//! Catches the panic of a parser, so that it ends one input and no other.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    thread,
};

/// Calls `read` and returns its result, or its panic for [`TailError::panicked`](crate::TailError::panicked).
///
/// After a panic, the state of the parser is memory-safe but may be inconsistent. The caller drops the parser.
///
/// # Errors
/// The panic.
pub fn catch_panic<T>(read: impl FnOnce() -> T) -> thread::Result<T> {
    catch_unwind(AssertUnwindSafe(read))
}
