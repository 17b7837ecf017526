//! Following of logs while they are written: a source that never ends by itself.
//!
//! [`TailSource`] looks after every file that a path, a directory or a pattern names, now or later, through rotation,
//! truncation and restarts (`tail/stream.rs`), woken by the system or by the clock (`tail/bell.rs`, `tail/watch.rs`).
//! A parser that panics ends the reading of its file and no other (`tail/stream/failed.rs`).
//! [`Positions`] remembers how far every file is read and delivered, so that a follower that was killed goes on where its
//! batches ended: nothing is lost, and nothing is said twice.

mod bell;
mod candidates;
mod config;
mod event;
mod follower;
mod identity;
mod measured;
mod notice;
mod outlet;
mod positions;
mod reading;
mod rotated;
mod saved;
mod status;
mod stream;
mod watch;

use std::sync::Arc;

use pulsetrain_pipeline::{BoxFuture, Door, Source, Stop};

pub(super) use self::rotated::log_of;
use self::{bell::Bell, follower::Follower};
pub use self::{
    config::{AtStop, TailConfig},
    event::TailEvent,
    measured::TailReading,
    notice::PositionsNotice,
    positions::{OutputStart, Positions},
    status::TailStatus,
};

/// Follows logs until it is told to stop.
///
/// Batches are offered and never wait for a slow sink; while the sinks lag behind, what is read is sent in fewer and larger
/// batches, and of a long backlog no more is read than they can take: the file is the buffer.
pub struct TailSource {
    name: String,
    config: TailConfig,
    positions: Positions,
    on_event: Box<dyn FnMut(TailEvent) + Send>,
    on_reading: Box<dyn FnMut(TailReading) + Send>,
    status: Arc<TailStatus>,
}

impl TailSource {
    /// A source of what `config` names. It goes on where `positions` say, and keeps them up to date; sources that feed the
    /// same pipeline share them. `on_event` is told what a user may want to know.
    pub fn new(
        config: TailConfig,
        positions: Positions,
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
            positions,
            on_event: Box::new(on_event),
            on_reading: Box::new(drop),
            status: Arc::default(),
        }
    }

    /// The same source; `on_reading` is told of every look at a file that had changed.
    #[must_use]
    pub fn measured(self, on_reading: impl FnMut(TailReading) + Send + 'static) -> Self {
        Self {
            on_reading: Box::new(on_reading),
            ..self
        }
    }

    /// What the source is at, for health checks and telemetry.
    pub fn status(&self) -> Arc<TailStatus> {
        Arc::clone(&self.status)
    }
}

impl Source for TailSource {
    fn name(&self) -> &str {
        &self.name
    }

    fn run(self: Box<Self>, door: Door, stop: Stop) -> BoxFuture<'static, Result<(), String>> {
        Box::pin(async move {
            let bell = Bell::new();
            let stopped = Arc::clone(&bell);
            let stopping = tokio::spawn(async move {
                stop.wait().await;
                stopped.ring_for_stop();
            });
            let _ended = EndsWith(stopping, Arc::clone(&bell));
            tokio::task::spawn_blocking(move || Follower::new(*self, door, bell).run())
                .await
                .unwrap_or_else(|panic| Err(format!("following failed: {panic}")))
        })
    }
}

/// Ends the thread and the task when the source ends, or is cancelled.
struct EndsWith(tokio::task::JoinHandle<()>, Arc<Bell>);

impl Drop for EndsWith {
    fn drop(&mut self) {
        self.0.abort();
        self.1.ring_for_stop();
    }
}

#[cfg(test)]
mod tests;
