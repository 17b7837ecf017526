//! Sinks that a reload removed: drained in the background, so that neither their successors nor a signal wait for them.

use pulsetrain_pipeline::{BoxFuture, SinkReport};
use tokio::task::JoinSet;

use super::{report, task::Task};

/// Sinks that are drained, and whether one of them lost something.
#[derive(Default)]
pub(super) struct DrainingSinks {
    tasks: JoinSet<(SinkReport, bool)>,
    exclusive: usize,
    has_lost: bool,
}

impl DrainingSinks {
    /// Waits for the report of a sink in the background, then ends its server. `is_exclusive` is whether it holds a port
    /// or a file until then.
    pub(super) fn add(
        &mut self,
        drained: BoxFuture<'static, SinkReport>,
        server: Option<Task>,
        is_exclusive: bool,
    ) {
        self.exclusive += usize::from(is_exclusive);
        self.tasks.spawn(async move {
            let report = drained.await;
            if let Some(server) = server {
                server.end().await;
            }
            (report, is_exclusive)
        });
    }

    /// Whether a port or a file is still held.
    pub(super) fn holds_something(&self) -> bool {
        self.exclusive > 0
    }

    /// Waits until a sink has ended, and reports what it lost; pending forever without one.
    pub(super) async fn next(&mut self) {
        match self.tasks.join_next().await {
            Some(ended) => self.note(ended.ok()),
            None => std::future::pending().await,
        }
    }

    /// Waits for all of them; returns whether one lost something.
    pub(super) async fn finish(mut self) -> bool {
        while let Some(ended) = self.tasks.join_next().await {
            self.note(ended.ok());
        }
        self.has_lost
    }

    /// Nothing came back from a task that panicked: its sink may have lost something.
    fn note(&mut self, ended: Option<(SinkReport, bool)>) {
        let (has_lost, is_exclusive) = ended.map_or((true, true), |(ended, is_exclusive)| {
            (report(&ended), is_exclusive)
        });
        self.has_lost |= has_lost;
        self.exclusive = self.exclusive.saturating_sub(usize::from(is_exclusive));
    }
}
