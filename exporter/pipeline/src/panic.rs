//! Panics of sinks, sources and the disk queue, caught and returned as errors.

use std::{
    any::Any,
    future::poll_fn,
    panic::{AssertUnwindSafe, catch_unwind},
    task::Poll,
};

use crate::{BoxFuture, Problem};

/// Starts a future and runs it to completion. A panic in the call or in the future is returned as an error with its
/// message.
///
/// After a panic, the data of the future may be inconsistent, but is memory-safe.
pub(crate) async fn caught<'a, T>(start: impl FnOnce() -> BoxFuture<'a, T>) -> Result<T, Problem> {
    let mut future = catch_unwind(AssertUnwindSafe(start)).map_err(|panic| problem(&*panic))?;
    poll_fn(
        |context| match catch_unwind(AssertUnwindSafe(|| future.as_mut().poll(context))) {
            Ok(poll) => poll.map(Ok),
            Err(panic) => Poll::Ready(Err(problem(&*panic))),
        },
    )
    .await
}

/// Returns the problem of a panic: `panicked: index out of bounds`.
pub(crate) fn problem(panic: &(dyn Any + Send)) -> Problem {
    let message = panic.downcast_ref::<&str>().copied();
    let message = message.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    Problem::new(format!("panicked: {}", message.unwrap_or("no message")))
}

#[cfg(test)]
mod tests {
    use std::panic::resume_unwind;

    use super::*;

    #[tokio::test]
    async fn panic_before_and_inside_the_future_is_returned_as_its_message() {
        let before = caught::<()>(|| resume_unwind(Box::new("before"))).await;
        assert_eq!(before, Err("panicked: before".into()));
        let inside = caught::<()>(|| {
            Box::pin(async {
                tokio::task::yield_now().await;
                resume_unwind(Box::new("inside".to_owned()))
            })
        });
        assert_eq!(inside.await, Err("panicked: inside".into()));
        assert_eq!(caught(|| Box::pin(async { 7 })).await, Ok(7));
    }
}
