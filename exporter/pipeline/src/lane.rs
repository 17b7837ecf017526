//! The lane of one sink: its account, its queue and its worker, from its start to its report.

use std::{fmt, sync::Arc};

use tokio::task::JoinHandle;

use crate::{
    PipelineConfig, Sink, SinkReport,
    clock::Instant,
    drain::DrainRaiser,
    ledger::Account,
    queue::{QueueSender, queue},
    worker::Worker,
};

/// A sink at work. Dropped before its end, it stops at once, and what was inside counts as abandoned.
pub(crate) struct Lane {
    name: String,
    account: Arc<Account>,
    queue: Arc<QueueSender>,
    drain: DrainRaiser,
    worker: JoinHandle<Result<(), String>>,
}

impl Lane {
    /// Starts the worker of a sink.
    pub(crate) fn start(sink: Box<dyn Sink>, config: &PipelineConfig) -> Self {
        let name = sink.name().to_owned();
        let drain = DrainRaiser::new();
        let account = Account::new(name.as_str());
        let (sender, receiver) = queue(config.queue, sink.signals(), Arc::clone(&account));
        let worker = Worker::new(
            sink,
            receiver,
            Arc::clone(&account),
            config.retry.clone(),
            drain.drain(),
        );
        Self {
            name,
            account,
            queue: Arc::new(sender),
            drain,
            worker: tokio::spawn(worker.run(config.finish_grace)),
        }
    }

    /// The name of the sink.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Its books.
    pub(crate) fn account(&self) -> Arc<Account> {
        Arc::clone(&self.account)
    }

    /// The way to it.
    pub(crate) fn queue(&self) -> Arc<QueueSender> {
        Arc::clone(&self.queue)
    }

    /// Lets nothing more in; what is queued has until the deadline.
    pub(crate) fn close(&self, deadline: Instant) {
        self.queue.close();
        self.drain.raise(deadline);
    }

    /// As [`close`](Self::close), while the other lanes go on.
    pub(crate) fn leave(&self, deadline: Instant) {
        self.account.leave();
        self.close(deadline);
    }

    /// Waits for the end of a closed lane.
    pub(crate) async fn end(mut self) -> SinkReport {
        let finished = (&mut self.worker).await;
        SinkReport {
            counts: self.account.counts(),
            finished: finished.unwrap_or_else(|failed| Err(format!("its worker failed: {failed}"))),
        }
    }
}

impl Drop for Lane {
    fn drop(&mut self) {
        self.queue.close();
        self.worker.abort();
    }
}

impl fmt::Debug for Lane {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lane")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}
