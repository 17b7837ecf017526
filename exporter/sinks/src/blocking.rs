//! Runs blocking work of a sink on Tokio's blocking pool.

use std::sync::{Arc, Mutex, PoisonError};

/// Runs `work` on the blocking pool, so that a long computation, a slow disk or a slow pipe reader delays no
/// other task.
///
/// # Errors
/// A panic of `work`.
pub async fn blocking<S: Send + 'static, T: Send + 'static>(
    state: &Arc<Mutex<S>>,
    work: impl FnOnce(&mut S) -> T + Send + 'static,
) -> Result<T, String> {
    let state = Arc::clone(state);
    let work = move || work(&mut state.lock().unwrap_or_else(PoisonError::into_inner));
    let done = tokio::task::spawn_blocking(work).await;
    done.map_err(|error| format!("the writer stopped: {error}"))
}
