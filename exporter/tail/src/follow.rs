//! Follows logs while they are written: a source that never ends by itself.
//!
//! [`TailSource`] follows every file that a path, a directory or a pattern names, now or later, through rotation, truncation and
//! restarts (`followed_file`). The system or a timer wakes it (`wakeup`, `watch`). A parser that panics ends only its own file
//! (`followed_file/failure`). [`Checkpointer`] stores how far each file is read and delivered, so that a follower that was killed
//! resumes after its last acknowledged batch.

mod candidates;
mod checkpoint_notice;
mod checkpoint_store;
mod checkpointer;
mod config;
mod context;
mod event;
mod followed_file;
mod follower;
mod identity;
mod links;
mod pattern_walk;
mod poll_report;
mod rotated;
mod run_reader;
mod status;
mod wakeup;
mod watch;

use std::sync::Arc;

use pulsetrain_pipeline::{BoxFuture, CancellationToken, Ingress, Problem, Source};

pub(super) use self::rotated::log_of;
pub use self::{
    checkpoint_notice::CheckpointNotice,
    checkpointer::{Checkpointer, OpenMode},
    config::{AtStop, TailConfig},
    context::JOINED_BYTES,
    event::TailEvent,
    poll_report::PollReport,
    status::{LogState, LogStatus, TailStatus},
};
use self::{follower::Follower, wakeup::Wakeup};
pub use candidates::followed_files;

/// Follows logs until it is stopped.
///
/// Batches wait for the required sinks and not for slow best-effort ones. While sinks lag, fewer and larger batches are sent,
/// and a long backlog stays in its file: the file is the queue.
pub struct TailSource {
    name: String,
    config: TailConfig,
    checkpointer: Checkpointer,
    on_event: Box<dyn FnMut(TailEvent) + Send>,
    on_poll: Box<dyn FnMut(PollReport) + Send>,
    status: Arc<TailStatus>,
}

impl TailSource {
    /// Creates a source for the files in `config`. It resumes from the checkpoints and updates them. Sources of one pipeline
    /// share a checkpointer. `on_event` receives messages for the user.
    pub fn new(
        config: TailConfig,
        checkpointer: Checkpointer,
        on_event: impl FnMut(TailEvent) + Send + 'static,
    ) -> Self {
        let inputs: Vec<String> = config
            .inputs
            .iter()
            .map(|input| input.display().to_string())
            .collect();
        Self {
            name: format!("follow {}", inputs.join(" ")),
            config,
            checkpointer,
            on_event: Box::new(on_event),
            on_poll: Box::new(drop),
            status: Arc::default(),
        }
    }

    /// Sends a report of each poll that found a changed file or failed to `on_poll`.
    #[must_use]
    pub fn measured(self, on_poll: impl FnMut(PollReport) + Send + 'static) -> Self {
        Self {
            on_poll: Box::new(on_poll),
            ..self
        }
    }

    /// Returns the gauges of the source.
    pub fn status(&self) -> Arc<TailStatus> {
        Arc::clone(&self.status)
    }
}

impl Source for TailSource {
    fn name(&self) -> &str {
        &self.name
    }

    fn run(
        self: Box<Self>,
        ingress: Ingress,
        stop: CancellationToken,
    ) -> BoxFuture<'static, Result<(), Problem>> {
        Box::pin(async move {
            let wakeup = Wakeup::new();
            let stopped = Arc::clone(&wakeup);
            let stopping = tokio::spawn(async move {
                stop.cancelled().await;
                stopped.notify_stop();
            });
            let _guard = StopGuard(stopping, Arc::clone(&wakeup));
            tokio::task::spawn_blocking(move || Follower::new(*self, ingress, wakeup).run())
                .await
                .map_err(|panic| Problem::new(format!("following failed: {panic}")))
        })
    }
}

/// Stops the thread and the task when the source ends or is cancelled.
struct StopGuard(tokio::task::JoinHandle<()>, Arc<Wakeup>);

impl Drop for StopGuard {
    fn drop(&mut self) {
        self.0.abort();
        self.1.notify_stop();
    }
}

#[cfg(test)]
mod tests;
