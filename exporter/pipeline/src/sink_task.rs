//! The task of one sink: owns its account, its queue and its worker, from its start to its report.

use std::{fmt, sync::Arc, time::Duration};

use tokio::{sync::oneshot, task::JoinHandle};

use crate::{
    Problem, Requirement, Sink, SinkReport, SinkRoute, SinkTaskConfig, SourceSet,
    clock::Instant,
    disk::DiskQueue,
    drain::{Drain, DrainRaiser},
    ledger::Account,
    queue::{QueueReceiver, QueueSender, queue},
    successor::Successor,
    worker::Worker,
};

/// The message of batches that are lost because their sink was never opened.
const NEVER_OPENED: &str = "the sink could not be opened";

/// A running sink, or the queue of a sink that is not open yet. A task that is dropped before its end stops at once, and
/// its batches count as abandoned.
pub(crate) struct SinkTask {
    account: Arc<Account>,
    queue: Arc<QueueSender>,
    config: SinkTaskConfig,
    drain: DrainRaiser,
    /// The channel that passes the sink to the worker; `None` once the sink is open.
    opening: Option<oneshot::Sender<Box<dyn Sink>>>,
    successor: Successor,
    worker: JoinHandle<Result<(), Problem>>,
}

impl SinkTask {
    /// Starts the queue of a sink that is not open yet. The sink has at least `grace` to finish.
    pub(crate) fn expect(
        account: Arc<Account>,
        route: SinkRoute,
        config: SinkTaskConfig,
        grace: Duration,
    ) -> Self {
        let drain = DrainRaiser::new();
        let (sender, receiver) = queue(&config, route, Arc::clone(&account));
        let (opening, opened) = oneshot::channel();
        let successor = Successor::default();
        let work = work(
            opened,
            receiver,
            Arc::clone(&account),
            config.clone(),
            drain.drain(),
            successor.clone(),
            grace,
        );
        Self {
            account,
            queue: Arc::new(sender),
            config,
            drain,
            opening: Some(opening),
            successor,
            worker: tokio::spawn(work),
        }
    }

    /// Starts the worker of a sink.
    pub(crate) fn start(
        sink: Box<dyn Sink>,
        requirement: Requirement,
        config: SinkTaskConfig,
        grace: Duration,
    ) -> Self {
        let signals = sink.signals();
        let route = SinkRoute {
            signals,
            sources: SourceSet::All,
            requirement,
        };
        let mut task = Self::expect(Account::new(sink.name()), route, config, grace);
        task.open(sink);
        task
    }

    /// Returns whether the sink is not open yet.
    pub(crate) fn is_unopened(&self) -> bool {
        self.opening.is_some()
    }

    /// Returns whether the task expects a sink with this route and these settings.
    pub(crate) fn is_expecting(&self, route: &SinkRoute, config: &SinkTaskConfig) -> bool {
        self.is_unopened() && self.queue.route() == route && self.config == *config
    }

    /// Opens the sink, which receives the queued batches.
    pub(crate) fn open(&mut self, sink: Box<dyn Sink>) {
        if let Some(opening) = self.opening.take() {
            // An error means that the worker has ended, and its batches are counted.
            let _ = opening.send(sink);
        }
    }

    /// Returns the name of the sink.
    pub(crate) fn name(&self) -> &str {
        self.account.name()
    }

    /// Returns the account of the sink.
    pub(crate) fn account(&self) -> Arc<Account> {
        Arc::clone(&self.account)
    }

    /// Returns the queue in front of the sink.
    pub(crate) fn queue(&self) -> Arc<QueueSender> {
        Arc::clone(&self.queue)
    }

    /// Closes the queue; the queued batches are sent until the deadline.
    pub(crate) fn close(&mut self, deadline: Instant) {
        self.opening = None;
        self.queue.close();
        self.drain.raise(deadline);
    }

    /// Like [`close`](Self::close), for a sink that is removed while the pipeline runs.
    pub(crate) fn leave(&mut self, deadline: Instant) {
        self.account.leave();
        self.close(deadline);
    }

    /// Returns the disk queue, or `None` if the sink has none.
    pub(crate) fn disk(&self) -> Option<&DiskQueue> {
        self.config.disk.as_ref()
    }

    /// Passes the batches that the sink has no time to deliver to the queue of `successor`, instead of dropping them.
    pub(crate) fn replace_by(&self, successor: &Self) {
        self.successor.set(successor.queue(), successor.successor.clone());
    }

    /// Waits for the end of a closed task.
    pub(crate) async fn end(mut self) -> SinkReport {
        let finished = (&mut self.worker).await;
        SinkReport {
            counts: self.account.counts(),
            finished: finished
                .unwrap_or_else(|failed| Err(Problem::new(format!("its worker failed: {failed}")))),
        }
    }
}

/// Waits until the sink is open, and runs its worker until the drain is over.
async fn work(
    opened: oneshot::Receiver<Box<dyn Sink>>,
    mut queue: QueueReceiver,
    account: Arc<Account>,
    config: SinkTaskConfig,
    mut drain: Drain,
    successor: Successor,
    grace: Duration,
) -> Result<(), Problem> {
    let Ok(sink) = opened.await else {
        queue.close();
        // The batches in a disk queue stay there.
        queue.stop();
        while let Some(queued) = queue.next().await {
            successor.take_over(queued, NEVER_OPENED);
        }
        let Some(disk) = &config.disk else {
            return Ok(());
        };
        return disk.close(&account, drain.end(grace).await).await;
    };
    let worker = Worker::new(sink, queue, account, config, drain, successor);
    worker.run(grace).await
}

impl Drop for SinkTask {
    fn drop(&mut self) {
        self.queue.close();
        self.worker.abort();
        if let Some(disk) = self.disk() {
            disk.release(&self.account);
        }
    }
}

impl fmt::Debug for SinkTask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SinkTask")
            .field("name", &self.name())
            .finish_non_exhaustive()
    }
}
