//! Runs blocking work of a sink on Tokio's blocking pool.

use std::sync::{Arc, Mutex, PoisonError};

use pulsetrain_pipeline::Problem;
use tokio::task::JoinError;

/// The error of blocking work that panicked or was cancelled.
#[derive(Debug, thiserror::Error)]
#[error("the writer stopped: {0}")]
pub struct WriterStopped(#[from] JoinError);

impl From<WriterStopped> for Problem {
    fn from(stopped: WriterStopped) -> Self {
        Self::new(stopped.to_string())
    }
}

/// Runs `work` on the blocking pool, so that a long computation, a slow disk or a slow pipe reader delays no
/// other task.
///
/// # Errors
/// A panic of `work`.
pub async fn blocking<S: Send + 'static, T: Send + 'static>(
    state: &Arc<Mutex<S>>,
    work: impl FnOnce(&mut S) -> T + Send + 'static,
) -> Result<T, WriterStopped> {
    let state = Arc::clone(state);
    let work = move || work(&mut state.lock().unwrap_or_else(PoisonError::into_inner));
    Ok(tokio::task::spawn_blocking(work).await?)
}
