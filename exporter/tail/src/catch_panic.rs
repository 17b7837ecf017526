//! Catches the panic of a parser, so that it ends one input and no other.

use std::{
    any::Any,
    panic::{AssertUnwindSafe, catch_unwind},
};

/// Calls `read` and returns its result, or the message of its panic for
/// [`TailError::panicked`](crate::TailError::panicked).
///
/// After a panic, the state of the parser is memory-safe but may be inconsistent. The caller drops the parser.
///
/// # Errors
/// The message of the panic.
pub fn catch_panic<T>(read: impl FnOnce() -> T) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(read)).map_err(|panic| message(&*panic).to_owned())
}

fn message(panic: &(dyn Any + Send)) -> &str {
    let literal = panic.downcast_ref::<&str>().copied();
    literal
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("no message")
}
