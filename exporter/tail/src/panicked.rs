//! Catches the panic of a parser: it ends the reading of one input, and the other inputs go on.

use std::{
    any::Any,
    panic::{AssertUnwindSafe, catch_unwind},
};

/// Runs a piece of the reading of an input.
///
/// What the piece worked on is memory-safe after a panic, but may be in the middle of a record: the caller drops the parser.
///
/// # Errors
/// The message of the panic, for [`TailError::panicked`](crate::TailError::panicked).
pub fn caught<T>(read: impl FnOnce() -> T) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(read)).map_err(|panic| message(&*panic).to_owned())
}

fn message(panic: &(dyn Any + Send)) -> &str {
    let literal = panic.downcast_ref::<&str>().copied();
    literal
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("no message")
}
