//! Sinks that a reload removed. They are drained in the background, so that neither their successors nor a signal wait
//! for them.

use pulsetrain_pipeline::{BoxFuture, SinkReport};
use tokio::task::JoinSet;

use super::{report, task::Task};

/// The draining sinks, and whether one of them had losses.
#[derive(Default)]
pub(super) struct DrainingSinks {
    tasks: JoinSet<(SinkReport, bool)>,
    exclusive: usize,
    has_lost: bool,
}

impl DrainingSinks {
    /// Waits for the report of a sink in the background, then ends its server. With `is_exclusive`, the sink holds a port
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

    /// Returns whether a sink still holds a port or a file.
    pub(super) fn has_exclusive_sink(&self) -> bool {
        self.exclusive > 0
    }

    /// Waits until a sink has ended, and reports its losses; stays pending without one.
    pub(super) async fn next(&mut self) {
        match self.tasks.join_next().await {
            Some(ended) => self.record(ended.ok()),
            None => std::future::pending().await,
        }
    }

    /// Waits for all sinks, and returns whether one had losses.
    pub(super) async fn finish(mut self) -> bool {
        while let Some(ended) = self.tasks.join_next().await {
            self.record(ended.ok());
        }
        self.has_lost
    }

    /// Records the end of a sink. A task that panicked has no report, so its sink counts as having losses.
    fn record(&mut self, ended: Option<(SinkReport, bool)>) {
        let (has_lost, is_exclusive) = ended.map_or((true, true), |(ended, is_exclusive)| {
            (report(&ended), is_exclusive)
        });
        self.has_lost |= has_lost;
        self.exclusive = self.exclusive.saturating_sub(usize::from(is_exclusive));
    }
}
